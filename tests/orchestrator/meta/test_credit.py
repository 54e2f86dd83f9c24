"""What an attempt earns, and to whom."""

from dataclasses import replace

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.meta.credit import Came, Credit, Crediting, Earned, Price, outcome
from orchestrator.proposers import Tried
from tests.orchestrator.meta.results import arm, ended


def earned(credit: Credit, *results: Tried) -> list[Earned]:
    return [it for result in results for it in credit.earned(result)]


@pytest.mark.parametrize(
    ("ending", "came"),
    [
        (Ending.FAILED, Came.BROKEN),
        (Ending.TIMED_OUT, Came.BROKEN),
        (Ending.INVALID, Came.INVALID),
        (Ending.PRUNED, Came.PRUNED),
        (Ending.TAMPERED, Came.CHEAT),
    ],
)
def test_endings_without_a_score_have_their_own_readings(ending: Ending, came: Came) -> None:
    """A pruned change is not a broken one, and a cheat is worth less than either."""
    assert outcome(ended(1, None, ending=ending)) == (came, 0.0)
    (pruned,), (found,) = (
        earned(Credit(Crediting.LIFT), ended(1, None, chosen=arm("a"), ending=it)) for it in (Ending.PRUNED, ending)
    )
    assert found.advantage <= pruned.advantage


@pytest.mark.parametrize(
    ("merits", "before", "came"),
    [
        (None, (1.0,), Came.BROKEN),
        ((1.0,), (1.0,), Came.SAME),
        ((1.0,), None, Came.SAME),
        ((0.9,), (1.0,), Came.WORSE),
        ((1.1,), (1.0,), Came.BETTER),
        ((1.0, 3.0), (1.0, 2.0), Came.BETTER),
        ((0.9, 3.0), (1.0, 2.0), Came.WORSE),
    ],
)
def test_outcomes_beside_the_parent(
    merits: tuple[float, ...] | None, before: tuple[float, ...] | None, came: Came
) -> None:
    """The first metric that differs from the parent's decides."""
    assert outcome(replace(ended(1, None), merits=merits, parent_merits=before))[0] is came


def test_gains_have_no_scale() -> None:
    """The same search in other units earns the same."""
    gains = [0.1, -1.0, 0.4, 0.0, 0.05, 2.0]
    ours = earned(Credit(Crediting.LIFT), *(ended(n, gain, chosen=arm("a")) for n, gain in enumerate(gains, 1)))
    theirs = earned(Credit(Crediting.LIFT), *(ended(n, gain * 1e6, chosen=arm("a")) for n, gain in enumerate(gains, 1)))
    assert ours == theirs


def test_repeats_count_before_the_first_run() -> None:
    """A lucky first score that its repeats did not hold is no gain; a score without repeats counts half."""
    lucky = replace(ended(1, 5.0, chosen=arm("a")), certified=(-1.0,), parent_certified=(0.0,), screened=True)
    assert outcome(lucky)[0] is Came.WORSE
    (once,) = earned(Credit(Crediting.LIFT), replace(ended(1, 5.0, chosen=arm("a")), screened=True))
    (sure,) = earned(Credit(Crediting.LIFT), lucky)
    assert (once.weight, sure.weight) == (0.5, 1.0)


def test_a_stepping_stone_earns_by_lineage_alone() -> None:
    """A neutral change whose child is better gets a share of that gain; by lift it gets none."""
    stone, child = ended(1, 0.0, chosen=arm("a")), ended(2, 3.0, chosen=arm("b"), parent="1.1")
    by_lift = earned(Credit(Crediting.LIFT), stone, child)
    by_lineage = earned(Credit(Crediting.LINEAGE), stone, child)
    assert [it.drawn.arms["slot"].option for it in by_lift] == ["a", "b"]
    assert [it.drawn.arms["slot"].option for it in by_lineage] == ["a", "b", "a"]
    assert 0 < by_lineage[2].advantage < by_lineage[1].advantage


def test_a_gain_is_set_against_its_price() -> None:
    """Of two arms that gain alike, the one that costs ten times as much has the smaller advantage."""
    results = [
        ended(n, float(n % 4 < 2) * n, chosen=arm("ab"[n % 2]), usd=(0.1, 1.0)[n % 2], parent=f"1.{n}")
        for n in range(1, 41)
    ]
    found = earned(Credit(Crediting.LIFT, Price.USD), *results)
    sums = {name: sum(it.advantage for it in found if it.drawn.arms["slot"].option == name) for name in "ab"}
    assert sums["a"] > 0 > sums["b"]
    free = [replace(result, usd=0.0) for result in results]
    advantages = [[it.advantage for it in earned(Credit(Crediting.LIFT, price), *free)] for price in Price]
    assert advantages[0] == advantages[1] == advantages[2]
