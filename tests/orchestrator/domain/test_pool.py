"""Which nodes make up a pool: merit and disagreement, in the said trade-off."""

import pytest

from orchestrator.domain.pool import choose, disagreement, shortlist
from orchestrator.domain.records import Node, Role, Run
from orchestrator.domain.tier import USUAL
from orchestrator.domain.verdict import Mode, Verdict

RUN = Run(
    number=1, task="", digests={}, seed=0, proposer="", control=None, width=1, depth=1, why="", root="1", cohort="c"
)


def node(name: str, score: float, **tasks: float) -> Node:
    verdict = Verdict(metrics={"score": score}, tasks=tasks, tier=USUAL, mode=Mode.SUBMIT, cohort="c")
    return Node(id=name, parent="1", role=Role.SEARCH, number=1, verdicts={"c": verdict})


# The best first: three that are alike, and one that is good at another task.
NODES = [
    node("1.1", 0.9, a=1.0, b=0.8),
    node("1.2", 0.8, a=0.9, b=0.7),
    node("1.3", 0.7, a=0.8, b=0.6),
    node("1.4", 0.5, a=0.0, b=1.0),
]


@pytest.mark.parametrize(("diversity", "chosen"), [(0.0, ["1.1", "1.2"]), (0.5, ["1.1", "1.4"]), (1.0, ["1.1", "1.4"])])
def test_trade_off(diversity: float, chosen: list[str]) -> None:
    """The best is always there; at 0 the next best follows, beyond that what is unlike."""
    assert [it.node for it in choose(NODES, RUN, {}, 2, diversity)] == chosen


def test_by_what_they_left() -> None:
    """Without tasks, outputs tell who is unlike: one that left nearly the same as the best comes last."""
    nodes = [node(f"1.{number}", 1.0 - number / 10) for number in (1, 2, 3)]
    outputs = {"1.1": {"p.csv": b"1\n2\n3\n4\n"}, "1.2": {"p.csv": b"1\n2\n3\n5\n"}, "1.3": {"p.csv": b"4\n3\n2\n1\n"}}
    chosen = choose(nodes, RUN, outputs, 3, 0.8)
    assert [it.node for it in chosen] == ["1.1", "1.3", "1.2"]
    assert [it.distance for it in chosen] == [None, 1.0, 0.25]


def test_fewer_than_wanted() -> None:
    """All of them, where the pool would be larger; nothing where there is nothing."""
    assert len(choose(NODES, RUN, {}, 64, 0.5)) == 4
    assert choose([], RUN, {}, 5, 0.5) == []


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        (b"1\n2\n3\n4\n", b"1\n2\n3\n5\n", 0.25),
        (b"0.5,1.5\n", b"0.5,3.0\n", 0.25),
        (b"10\n", b"11\n", 1.0),
        (b"a b c", b"a b", 1 / 3),
        (b"", b"", 0.0),
        (b"nan inf -inf 1e999", b"1.5 2.5 3.5 4.5", 1.0),
        (b"\xff\xfe" * 9, b"\x00", 1.0),
    ],
)
def test_disagreement(one: bytes, other: bytes, share: float) -> None:
    """Value by value: classes and counts are alike or not, numbers by how far they are apart; no byte breaks it."""
    assert disagreement({"x": one}, {"x": other}) == [pytest.approx(share)]


def test_disagreement_of_files() -> None:
    """A file that only one of them left differs as a whole. Where the outputs are gone, nothing is said."""
    assert disagreement({"x": b"1", "y": b"1"}, {"x": b"1"}) == [0.5]
    assert disagreement(None, {"x": b"1"}) == []
    assert disagreement({}, {}) == []


def test_shortlist_has_specialists() -> None:
    """However poor it is on the whole, the best at a task is looked at."""
    many = [node(f"1.{number}", 1.0 - number / 100, a=1.0) for number in range(1, 30)]
    poor = node("1.40", 0.0, a=0.0, b=1.0)
    found = {it.id for it in shortlist([*many, poor], RUN, 2)}
    assert found == {*(f"1.{number}" for number in range(1, 9)), "1.40"}
