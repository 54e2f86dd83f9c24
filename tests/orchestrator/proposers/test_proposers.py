"""Grid, random and what people bring."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.change import Tree
from orchestrator.domain.proposal import Proposal
from orchestrator.proposers import Brief, Exhausted, Grid, Injected, Random
from orchestrator.proposers.space import draw, grid, random_point, resampled, steps
from orchestrator.task import Bool, Choice, Float, Int, Parameter, is_point

SPACE: dict[str, Parameter] = {
    "kind": Choice(values=("hex", "square")),
    "rate": Float(low=0.01, high=100, log=True, points=3),
    "rows": Int(low=1, high=7, step=3),
    "flag": Bool(),
}


def brief(number: int = 1, **changes: object) -> Brief:
    fixed = {"node": "1.1", "parent": "1", "number": number, "seed": 7, "tree": Tree()}
    return Brief(**{**fixed, **changes})  # type: ignore[arg-type]


def points(proposals: object) -> list[dict[str, object]]:
    return [dict(proposal.params or {}) for proposal in proposals]  # type: ignore[attr-defined]


def test_steps_of_each_kind() -> None:
    """A grid takes every value of a choice, a switch and a stepped range, and evenly spread points of a real one."""
    assert steps(SPACE["kind"]) == ["hex", "square"]
    assert steps(SPACE["flag"]) == [False, True]
    assert list(steps(SPACE["rows"])) == [1, 4, 7]
    assert steps(SPACE["rate"]) == pytest.approx([0.01, 1, 100])
    assert steps(Int(low=0, high=100, points=3)) == [0, 50, 100]
    assert steps(Float(low=0, high=1, points=1)) == [0.5]


@pytest.mark.parametrize("each", [1, 5])
async def test_the_grid_is_every_point_once(each: int) -> None:
    """In order, none twice and none left out, however many an attempt takes; then it says that it is through."""
    everything, seen, number = Grid(SPACE, per_attempt=each), list[dict[str, object]](), 1
    while everything.exhausted(number) is None:
        seen += points(await everything.propose(brief(number, count=each)))
        number += 1
    assert number == 2 + 35 // each
    assert seen == [grid(SPACE).at(index) for index in range(2 * 3 * 3 * 2)]
    assert len({tuple(point.items()) for point in seen}) == len(seen) == grid(SPACE).size
    with pytest.raises(Exhausted, match="all 36 points"):
        await everything.propose(brief(number))


async def test_random_is_the_same_on_every_resume() -> None:
    """Seed and number decide alone; another seed or number draws another point, and so does each of several at once."""
    proposer = Random(SPACE)
    first = points(await proposer.propose(brief(1)))
    assert first == points(await Random(SPACE).propose(brief(1)))
    assert first != points(await proposer.propose(brief(2)))
    assert first != points(await proposer.propose(brief(1, seed=8)))
    several = points(await proposer.propose(brief(count=4)))
    assert len({tuple(point.items()) for point in several}) == 4


async def test_random_on_a_node_keeps_some_of_it() -> None:
    """Another point than the parent's, and over many draws every parameter is sometimes kept."""
    parent = grid(SPACE).at(0)
    kept: Counter[str] = Counter()
    for number in range(1, 60):
        (point,) = points(await Random(SPACE).propose(brief(number, parent_params=parent)))
        assert point != parent
        kept.update(name for name in parent if point[name] == parent[name])
    assert set(kept) == set(SPACE)


async def test_the_control_never_builds_on_a_node() -> None:
    """It is uniform over the space whatever its parent."""
    control = Random(SPACE, branching=False)
    (proposal,) = await control.propose(brief(3, parent_params=grid(SPACE).at(0)))
    assert (proposal.operator, points([proposal])) == ("random", points(await control.propose(brief(3))))


async def test_injected_proposes_nothing_by_itself() -> None:
    """It says so beforehand, and when it is asked all the same."""
    assert Injected().exhausted(1)
    with pytest.raises(Exhausted):
        await Injected().propose(brief())


@given(st.integers(), st.data())
def test_points_stay_inside(seed: int, data: st.DataObject) -> None:
    """Whatever is drawn, by grid or at random, is a value of the space."""
    rng = random.Random(seed)
    index = data.draw(st.integers(0, grid(SPACE).size - 1))
    for point in (random_point(SPACE, rng), grid(SPACE).at(index), resampled(SPACE, rng, grid(SPACE).at(index))):
        assert list(point) == list(SPACE)
        assert is_point(SPACE, point)


def test_a_range_that_its_step_does_not_divide() -> None:
    """The last value is the last step inside the range."""
    uneven = Int(low=1, high=6, step=2)
    assert {draw(uneven, random.Random(seed)) for seed in range(50)} == {1, 3, 5}


def test_a_proposal_is_a_point_or_a_text() -> None:
    """Never both, never neither."""
    for wrong in ({}, {"params": {}, "text": ""}):
        with pytest.raises(ValueError, match="either params or a text"):
            Proposal(operator="x", description="x", **wrong)
