"""What makes a champion, and what must never be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.chance import levels_of
from orchestrator.domain.fingerprint import DEFAULT_BINDS, FIELDS, cohort_of, difference
from orchestrator.domain.metric import Goal, Metric, Ranking, Rule
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, NotComparable, Verdict, better, decide

SCORE = Ranking((Metric("score"),))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def verdict(score: float, **changes: object) -> Verdict:
    given = {"metrics": {"score": score}, "tier": Tier.DATA, "mode": Mode.SUBMIT, "cohort": "c"}
    return Verdict.model_validate({**given, **changes})


@pytest.mark.parametrize(("score", "kept"), [(2, True), (1, False), (0, False)])
def test_strictly_better_is_kept_and_a_tie_is_not(score: float, kept: bool) -> None:
    """A tie changes nothing: the champion stays."""
    assert decide(verdict(score), verdict(1), SCORE).kept is kept


def test_tie_with_a_smaller_change() -> None:
    """The smaller change wins a tie of all metrics, and nothing else: neither a worse score nor a doubtful one."""
    assert decide(verdict(1), verdict(1), SCORE, smaller=True).why == "as good as the champion, and a smaller change"
    assert not decide(verdict(0.9), verdict(1), SCORE, smaller=True).kept
    assert not decide(verdict(1, suspect=("score",)), verdict(1), SCORE, smaller=True).kept
    assert not decide(verdict(1, tier=Tier.SHARED), verdict(1), SCORE, smaller=True).kept
    two = Ranking((Metric("score"), Metric("time", Goal.LOWER)), Rule.PARETO)
    old, new = ({"score": 1.0, "time": time} for time in (1.0, 2.0))
    assert not decide(verdict(1, metrics=new), verdict(1, metrics=old), two, smaller=True).kept
    assert decide(verdict(1, metrics=old), verdict(1, metrics=old), two, smaller=True).kept


def test_standing() -> None:
    """One order for what has to be sorted: left to right, or the weighted sum; Pareto has none."""
    metrics = (Metric("score", weight=2.0), Metric("time", Goal.LOWER, weight=3.0))
    values = {"score": 5.0, "time": 1.0}
    assert Ranking(metrics).standing(values) == (5.0, -1.0)
    assert Ranking(metrics, Rule.WEIGHTED).standing(values) == (7.0,)
    with pytest.raises(ValueError, match="no single order"):
        Ranking(metrics, Rule.PARETO).standing(values)


def test_a_metric_that_decides_before_the_others() -> None:
    """It counts first, wherever it stands; the order of the rest stays as it is."""
    ranking = Ranking((Metric("score"), Metric("time", Goal.LOWER), Metric("stages", before=True)))
    early, late = {"score": 9.0, "time": 1.0, "stages": 1.0}, {"score": 2.0, "time": 5.0, "stages": 2.0}
    assert ranking.better(late, early)
    assert not ranking.better(early, late)
    assert ranking.better({**late, "time": 4.0}, late)
    assert ranking.standing(late) == (2.0, 2.0, -5.0)
    assert levels_of([early, None, late], ranking) == [(1.0, 9.0, -1.0), (), (2.0, 2.0, -5.0)]


def test_modes_are_never_ranked_against_each_other() -> None:
    """B6: tune and submit, neither way round, and a tune verdict makes no champion at all. D3: what is held out not
    even against its own kind: only the ladder answers for it. D2: nor are cohorts; never silently.
    """
    tuned, held = verdict(2, mode=Mode.TUNE), verdict(2, mode=Mode.HELDOUT)
    for pair, why in (
        ((tuned, verdict(1)), "tune"),
        ((verdict(1), tuned), "tune"),
        ((held, verdict(1)), "ladder"),
        ((verdict(1), held), "ladder"),
        ((held, tuned), "ladder"),
        ((held, held), "ladder"),
        ((verdict(2, cohort="other"), verdict(1)), "cohort"),
    ):
        with pytest.raises(NotComparable, match=why):
            better(*pair, SCORE)
        with pytest.raises(NotComparable):
            decide(*pair, SCORE)
    with pytest.raises(NotComparable, match="promote"):
        decide(tuned, tuned, SCORE)


def test_a_lower_tier_needs_the_flag() -> None:
    """A4: a shared verdict does not replace one of tier data, however good it is."""
    shared = verdict(9, tier=Tier.SHARED)
    assert not decide(shared, verdict(1), SCORE).kept
    assert decide(shared, verdict(1), SCORE, lower_tier=True).kept
    assert decide(verdict(2), verdict(1, tier=Tier.SHARED), SCORE).kept


def test_what_is_too_good_or_not_valid_is_never_kept() -> None:
    """T38: past the ceiling it is flagged; a candidate without a solution has no score to win with."""
    assert not decide(verdict(9, suspect=("score",)), verdict(1), SCORE).kept
    assert not decide(verdict(9, valid=False), verdict(1), SCORE).kept
    ranking = Ranking((Metric("score", ceiling=5), Metric("time", Goal.LOWER, ceiling=1)))
    assert ranking.too_good({"score": 6, "time": 0.5}) == ["score", "time"]
    assert ranking.too_good({"score": 5, "time": 1}) == []


def test_rules() -> None:
    """C6: the second metric decides only between equals of the first. Weights add up. Under Pareto, better in one and
    worse in another is not better. The goal turns the comparison round.
    """
    metrics = (Metric("a", weight=1), Metric("b", Goal.LOWER, weight=3))
    for rule, new, old, kept in (
        (Rule.LEXICOGRAPHIC, (2, 9), (1, 0), True),
        (Rule.LEXICOGRAPHIC, (1, 0), (1, 9), True),
        (Rule.LEXICOGRAPHIC, (1, 9), (1, 0), False),
        (Rule.WEIGHTED, (0, -1), (2, 0), True),
        (Rule.WEIGHTED, (2, 0), (0, -1), False),
        (Rule.PARETO, (0, -1), (2, 0), False),
        (Rule.PARETO, (2, -1), (2, 0), True),
    ):
        one, other = (dict(zip("ab", map(float, values), strict=True)) for values in (new, old))
        assert Ranking(metrics, rule).better(one, other) is kept, (rule, new, old)


@pytest.mark.parametrize("rule", list(Rule))
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=3))
def test_better_is_an_order(rule: Rule, points: list[tuple[float, float]]) -> None:
    """Never better than itself, never both ways, and transitive: a champion cannot be beaten in a circle."""
    ranking = Ranking((Metric("a", weight=0.5), Metric("b", Goal.LOWER)), rule)
    x, y, z = ({"a": a, "b": b} for a, b in points)
    assert not ranking.better(x, x)
    assert not (ranking.better(x, y) and ranking.better(y, x))
    if ranking.better(x, y) and ranking.better(y, z):
        assert ranking.better(x, z)


def test_targets() -> None:
    """Reached when every target is; never where none is set."""
    ranking = Ranking((Metric("a", target=2), Metric("b", Goal.LOWER, target=1), Metric("c")))
    assert ranking.reached({"a": 2, "b": 1, "c": 0})
    assert not ranking.reached({"a": 2, "b": 1.1, "c": 0})
    assert not SCORE.reached({"score": 9})


@pytest.mark.parametrize("field", FIELDS)
def test_a_cohort_is_what_binds(field: str) -> None:
    """A field that binds makes another cohort when it changes; one that does not bind makes none."""
    print_, changed = dict.fromkeys(FIELDS, "a"), {**dict.fromkeys(FIELDS, "a"), field: "b"}
    same = cohort_of(print_, SCORE.binds) == cohort_of(changed, SCORE.binds)
    assert same is (field not in DEFAULT_BINDS)
    assert difference(print_, changed) == [field]


H200 = {"gpu": "NVIDIA H200", "gpu_count": "1", "gpu_memory": "143771 MiB", "gpu_driver": "580.159.04", "cuda": "13.0"}


@pytest.mark.parametrize(
    "other",
    [
        {},
        H200 | {"gpu": "NVIDIA H100 80GB HBM3"},
        H200 | {"gpu": "NVIDIA H200; NVIDIA H200", "gpu_count": "2"},
        H200 | {"gpu_memory": "71885 MiB"},
        H200 | {"gpu_driver": "570.86.15"},
        H200 | {"cuda": "12.8"},
    ],
)
def test_cohorts_differ_by_the_gpu(other: dict[str, str]) -> None:
    """Another GPU, more of them, less memory, another driver or CUDA, or none at all: never ranked together."""
    assert cohort_of(H200, SCORE.binds) == cohort_of(dict(H200), SCORE.binds)
    assert cohort_of(H200, SCORE.binds) != cohort_of(other, SCORE.binds)


def test_times_that_drown() -> None:
    """Only measured times are held against the jitter of their channel, and what is equal to it still counts."""
    ranking = Ranking((Metric("score"), Metric("seconds", Goal.LOWER, timing=True)))
    assert ranking.drowned({"score": 0.0, "seconds": 0.1}, 0.1) == []
    assert ranking.drowned({"score": 0.0, "seconds": 0.1}, 0.11) == ["seconds"]
    assert ranking.drowned({"score": 0.0, "seconds": -1.0}, 0.0) == ["seconds"]
