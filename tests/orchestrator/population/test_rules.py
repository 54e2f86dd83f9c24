"""Each rule draws from the members alone, by the seed, in whatever order they came, and at a bounded cost."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from orchestrator.population import Member, ParentContext, ParentRule
from orchestrator.population.archive import MOST_CELLS, Archive
from orchestrator.population.making import Outside
from orchestrator.population.rules import Best, BestAtTasks, Novelty, Tournament
from orchestrator.task import ArchiveSpec, FeatureSpec

BASELINE = Member("1", 0, (0.0,), {"a": 0.0, "b": 0.0}, {"score": 0.0, "size": 5.0})
GRID = ArchiveSpec(features={"size": FeatureSpec(low=0, high=10, bins=5)})
RULES: dict[str, Callable[[], ParentRule]] = {
    "best": Best,
    "tasks": BestAtTasks,
    "tournament": Tournament,
    "novelty": Novelty,
    "archive over tasks": lambda: Archive(ParentContext(baseline=BASELINE)),
    "archive over features": lambda: Archive(ParentContext(GRID, BASELINE)),
}


def members(count: int, seed: int = 1) -> list[Member]:
    rng = random.Random(seed)
    found = []
    for at in range(1, count + 1):
        tasks = {"a": float(rng.randint(-2, 2)), "b": float(rng.randint(-2, 2))}
        score = sum(tasks.values())
        found.append(Member(f"1.{at}", at, (score,), tasks, {"score": score, "size": rng.uniform(-2, 12)}))
    return found


def draws(rule: ParentRule, count: int = 200) -> list[str | None]:
    return [rule.draw(f"seed/{at}") for at in range(count)]


@pytest.mark.parametrize("name", RULES)
def test_the_order_of_members_does_not_matter(name: str) -> None:
    """A resume adds them in another order, and draws the same."""
    found, other = RULES[name](), RULES[name]()
    given = [BASELINE, *members(80)]
    for member in given:
        found.add(member)
    for member in random.Random(3).sample(given, len(given)):
        other.add(member)
    assert draws(found) == draws(other)


@pytest.mark.parametrize("name", RULES)
def test_nothing_to_draw_from(name: str) -> None:
    """Then it is the island's best, whatever that is."""
    assert set(draws(RULES[name](), 3)) == {None}


def test_tournament() -> None:
    """Better ones are drawn more often; the worst two never win."""
    rule = Tournament()
    for at in range(1, 11):
        rule.add(Member(f"1.{at}", at, (float(at),)))
    counts = Counter(draws(rule, 2000))
    assert counts["1.10"] > counts["1.7"] > counts["1.4"] > 0
    assert not {"1.1", "1.2"} & counts.keys()


def test_novelty() -> None:
    """One that is far from a crowd is drawn more often than any of the crowd, though it is worse."""
    rule = Novelty()
    for at in range(1, 10):
        rule.add(Member(f"1.{at}", at, (5.0,), {"a": 1.0 + at / 100, "b": 1.0}))
    rule.add(Member("1.10", 10, (1.0,), {"a": 0.0, "b": -7.0}))
    counts = Counter(draws(rule, 500))
    assert counts.most_common(1)[0][0] == "1.10"
    huge = Novelty()
    for at, value in enumerate((1e308, -1e308, 3.0), 1):
        huge.add(Member(f"1.{at}", at, (value,), {}, {"score": value}))
    assert set(draws(huge, 50)) <= {"1.1", "1.2", "1.3"}


def test_archive_keeps_the_best_of_each_cell() -> None:
    """Each filled cell is drawn alike; what is beyond the bounds is in the last bin; what is not told is in none."""
    rule = Archive(ParentContext(GRID))
    for at, (size, score) in enumerate([(1, 3.0), (1.5, 9.0), (99, 1.0), (-99, 4.0), (5, 2.0)], 1):
        rule.add(Member(f"1.{at}", at, (score,), {}, {"size": float(size), "score": score}))
    rule.add(Member("1.9", 9, (100.0,), {}, {"score": 100.0}))
    assert {cell: member.node for cell, member in rule.cells.items()} == {(0,): "1.2", (4,): "1.3", (2,): "1.5"}
    counts = Counter(draws(rule, 600))
    assert all(150 < count < 250 for count in counts.values())


def test_archive_over_tasks() -> None:
    """Worse, like or better than the baseline in each task: what gives something up for another is kept."""
    rule = Archive(ParentContext(baseline=BASELINE))
    for at, (one, other) in enumerate([(1, 1), (5, -1), (-1, 5), (0, 0), (6, -2)], 1):
        rule.add(Member(f"1.{at}", at, (float(one + other),), {"a": float(one), "b": float(other)}))
    assert {member.node for member in rule.cells.values()} == {"1.1", "1.2", "1.3", "1.4"}


def test_an_archive_is_bounded() -> None:
    """Of more cells than are kept, those with the best members stay, in whatever order they came."""
    spec = ArchiveSpec(features={"x": FeatureSpec(low=0, high=40, bins=40), "y": FeatureSpec(low=0, high=40, bins=40)})
    given = [
        Member(f"1.{at}", at, (float(at % 977),), {}, {"x": float(at % 40), "y": float(at // 40 % 40)})
        for at in range(1, 1500)
    ]
    kept = []
    for order in (given, given[::-1]):
        rule = Archive(ParentContext(spec))
        for member in order:
            rule.add(member)
        kept.append({cell: member.node for cell, member in rule.cells.items()})
    assert len(kept[0]) == MOST_CELLS
    assert kept[0] == kept[1]


def test_a_rule_of_others_that_fails() -> None:
    """Branches start at the best then; so they do where it draws what is no member."""

    class Wrong:
        def add(self, member: Member) -> None:
            raise RuntimeError("oh")

        def draw(self, seed: str) -> str | None:
            if seed == "1":
                raise RuntimeError("oh")
            return "1.99" if seed == "2" else "1.1"

    rule = Outside(Wrong(), "the rule")
    rule.add(Member("1.1", 1, (1.0,)))
    assert [rule.draw(str(at)) for at in range(1, 4)] == [None, None, "1.1"]
    with pytest.raises(TypeError, match="no draw"):
        Outside(type("Half", (), {"add": lambda *_: None})(), "the rule")
