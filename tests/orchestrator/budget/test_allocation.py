"""Who is paid for next: evolution while users struggle, verification while there is gaming, and floors for both."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.budget.allocation import Allocator, RoleShare, Split, UserResult
from orchestrator.domain.model_use import ModelRole

USER, EVOLVER, VERIFIER = ModelRole.USER, ModelRole.EVOLVER, ModelRole.VERIFIER
SPLIT = Split(RoleShare(0.1, 0.02, 0.5), RoleShare(0.1, 0.02, 0.2))
NOBODY = {USER: 0, EVOLVER: 0, VERIFIER: 0}

RESULTS = st.lists(
    st.builds(
        UserResult,
        microdollars=st.integers(0, 10**9),
        kept=st.booleans(),
        gain=st.none() | st.floats(0, 1e9),
        usable=st.booleans(),
        gamed=st.booleans(),
        playbook=st.none() | st.integers(1, 3),
    ),
    max_size=60,
)
SPENT = st.fixed_dictionaries({role: st.integers(0, 10**9) for role in ModelRole})


def kept(gain: float = 1.0) -> UserResult:
    return UserResult(1000, kept=True, gain=gain, playbook=1)


IDLE = UserResult(1000, playbook=1)
REFUSED = UserResult(1000, usable=False, playbook=1)
GAMED = UserResult(1000, usable=False, gamed=True, playbook=1)


def evolvers_share(results: Sequence[UserResult]) -> float:
    return Allocator(SPLIT).shares(results)[EVOLVER]


def test_to_begin_with() -> None:
    """Without results the shares are those of the task, and users get the rest."""
    shares = Allocator(SPLIT).shares([])
    assert shares == pytest.approx({USER: 0.8, EVOLVER: 0.1, VERIFIER: 0.1})


@given(RESULTS)
def test_floors_caps_and_the_sum(results: list[UserResult]) -> None:
    """Whatever happens, the shares sum to 1, and each is between its floor and its cap."""
    shares = Allocator(SPLIT).shares(results)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert 0.02 - 1e-9 <= shares[EVOLVER] <= 0.5 + 1e-9
    assert 0.02 - 1e-9 <= shares[VERIFIER] <= 0.2 + 1e-9
    assert shares[USER] >= 0.3 - 1e-9


@given(RESULTS, st.floats(1e-6, 1e6))
def test_no_scale(results: list[UserResult], factor: float) -> None:
    """Scores in other units lead to the same shares."""
    others = [replace(it, gain=None if it.gain is None else it.gain * factor) for it in results]
    before, after = Allocator(SPLIT).shares(results), Allocator(SPLIT).shares(others)
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)


@given(RESULTS, SPENT)
def test_the_same_again(results: list[UserResult], spent: dict[ModelRole, int]) -> None:
    """The same results and dollars give the same answer, in one piece or one after the other."""
    course = Allocator(SPLIT).after(results)
    assert Allocator(SPLIT).next_role(spent, results) is course.next_role(spent)
    assert Allocator(SPLIT).why(results) == course.why


def test_struggle_funds_evolution() -> None:
    """No improvement, refused changes and falling gains each raise its share; gains as usual lower it to the floor."""
    carried = evolvers_share([kept()] * 20)
    assert carried == pytest.approx(0.02)
    assert evolvers_share([kept()] * 20 + [IDLE] * 20) > 0.2
    assert evolvers_share([kept()] * 20 + [REFUSED] * 10) > 0.2
    falling = [kept(0.7**step) for step in range(30)]
    assert evolvers_share([IDLE, *falling] * 3) > evolvers_share([IDLE, *[kept()] * 30] * 3) == pytest.approx(0.02)


def test_relief_starves_it() -> None:
    """Once users get on again, evolution is back at its floor."""
    assert evolvers_share([IDLE] * 20 + [kept()] * 20) == pytest.approx(0.02)


def test_evolution_that_brings_nothing() -> None:
    """Where users struggle on and no new version comes, it gets less and less; a new version renews the hope."""
    long = evolvers_share([IDLE] * 200)
    assert 0.02 < long < evolvers_share([IDLE] * 20) / 2
    renewed = [IDLE] * 200 + [replace(IDLE, playbook=2), replace(IDLE, playbook=3), replace(IDLE, playbook=4)]
    assert evolvers_share(renewed) > long * 1.5


def test_gaming_funds_verification() -> None:
    """More of it where it finds something; gaming is no struggle that evolution could help."""
    shares = Allocator(SPLIT).shares([GAMED] * 10)
    assert shares[VERIFIER] == pytest.approx(0.2, abs=0.01)
    assert shares[EVOLVER] == pytest.approx(0.1, abs=0.01)
    assert Allocator(SPLIT).shares([kept()] * 40)[VERIFIER] == pytest.approx(0.02, abs=0.005)


def test_turns_follow_the_shares() -> None:
    """Over many turns each role gets its share of the dollars."""
    course = Allocator(Split(RoleShare(0.3, 0.3, 0.3), RoleShare(0.1, 0.1, 0.1))).after([])
    spent = dict(NOBODY)
    for _ in range(3000):
        role = course.next_role(spent)
        spent[role] += 1000
        if role is USER:
            course.hear(kept())
    total = sum(spent.values())
    assert spent[EVOLVER] / total == pytest.approx(0.3, abs=0.01)
    assert spent[VERIFIER] / total == pytest.approx(0.1, abs=0.01)


def test_a_change_of_shares_is_no_debt() -> None:
    """After a long struggle, the floor holds from the first result on: evolution is not shut out to even things up."""
    course = Allocator(SPLIT).after([IDLE] * 30)
    spent = dict(NOBODY)
    spent[USER] = 30_000
    while course.is_due(EVOLVER, spent):
        spent[EVOLVER] += 100
    for _ in range(60):
        course.hear(kept())
        spent[USER] += 1000
    assert course.shares[EVOLVER] == pytest.approx(0.02)
    assert course.is_due(EVOLVER, spent)


def test_hard_caps() -> None:
    """No role gets past its share of the whole campaign's dollars, whatever it has earned."""
    allocator = Allocator(replace(SPLIT, microdollars=100_000))
    course = allocator.after([IDLE] * 300)
    assert course.is_due(EVOLVER, {USER: 300_000, EVOLVER: 49_999, VERIFIER: 0})
    assert not course.is_due(EVOLVER, {USER: 300_000, EVOLVER: 50_000, VERIFIER: 0})
    assert not course.is_due(VERIFIER, {USER: 300_000, EVOLVER: 0, VERIFIER: 20_000})


def test_nobody_else() -> None:
    """Where nobody has another role, users get all of it."""
    allocator = Allocator(Split())
    assert allocator.shares([IDLE] * 9) == {USER: 1.0, EVOLVER: 0.0, VERIFIER: 0.0}
    assert allocator.next_role({USER: 5, EVOLVER: 0, VERIFIER: 0}, [IDLE] * 9) is USER
    assert allocator.why([]) == "users alone ask models"


def test_users_that_cost_nothing() -> None:
    """A verifier beside them is not shut out by a share of nothing."""
    course = Allocator(SPLIT).after([replace(IDLE, microdollars=0)] * 5)
    assert course.is_due(VERIFIER, {USER: 0, EVOLVER: 0, VERIFIER: 9_000})
    assert not course.is_due(EVOLVER, {USER: 0, EVOLVER: 0, VERIFIER: 0})


def test_why() -> None:
    """One line for a person, with the shares that follow."""
    assert Allocator(SPLIT).why([]).startswith("no results yet, so evolution gets 10%")
    assert Allocator(SPLIT).why([IDLE] * 10).startswith("users struggle, so")
    assert Allocator(SPLIT).why([IDLE] * 200).startswith("users struggle, though no new playbook has helped")
    assert Allocator(SPLIT).why([kept()] * 20).startswith("users get on, so evolution gets 2%")
    assert "signs of gaming in" in Allocator(SPLIT).why([GAMED] * 9)


@pytest.mark.parametrize("share", [(0.1, 0.2, 0.3), (0.4, 0.1, 0.3), (0.5, 0.5, 1.0)])
def test_shares_out_of_order(share: tuple[float, float, float]) -> None:
    """A floor above the share, a share above the cap, or all of the dollars for one are refused."""
    with pytest.raises(ValueError, match="floor <= share <= cap"):
        RoleShare(*share)


def test_caps_that_leave_nothing() -> None:
    """Users must be able to work."""
    with pytest.raises(ValueError, match="leave nothing for users"):
        Split(RoleShare(0.1, 0.0, 0.6), RoleShare(0.1, 0.0, 0.4))
