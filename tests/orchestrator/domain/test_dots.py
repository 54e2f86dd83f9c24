"""Dots: of each node that is over what a chart draws of it, kept up with every change."""

import json
import random
from collections.abc import Mapping

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.census import Census, read_sort
from orchestrator.domain.dots import Dot, Dots, DotsLine, block_of, dot_of, take_dots
from orchestrator.domain.ending import Ending
from orchestrator.domain.folding import fold
from orchestrator.domain.lines import NodeLine, line_reader
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from tests.orchestrator.domain.test_census import AT, campaign, ended, taken_again, told, verdict

Rows = Mapping[tuple[str, str], str]
MANY = {f"m{number}": 1.0 for number in range(9)}


def at(order: int = 7, name: str = "1.1", **more: object) -> Node:
    return ended(name, opened_order=order, **more)


def blocks_of(rows: Rows) -> dict[str, Dots]:
    return {name: Dots.model_validate_json(body) for (kind, name), body in rows.items() if kind == "dots"}


def assert_whole(state: State) -> None:
    """The blocks are those of all nodes, and every node that could have a dot is told once, by it or by its line."""
    rows = state.rows()
    assert blocks_of(rows) == take_dots(state.nodes.values())
    for again in (state, State.from_rows(rows), State.from_rows(rows, at_once=False)):
        known = again.dotted()
        assert known is not None
        dots, others = known
        assert sorted([*(dot.node for dot in dots), *(node.id for node in others)]) == sorted(state.nodes)
        every = filter(None, map(dot_of, state.nodes.values()))
        assert sorted(dots) == sorted(dot for dot in every if dot.scores is not None)


@pytest.mark.parametrize(
    ("node", "scores"),
    [
        (at(), {"score": 1.0}),
        (at(kept=True, role=Role.CONTROL, verdict=verdict(suspect=("score",))), {"score": 1.0}),
        (at(role=Role.BASELINE, finding="pass", verdict=verdict(tasks={"a": 2.0})), {"score": 1.0}),
        (at(verdict=verdict(metrics={"score": float("nan"), "speed": 2.0})), {"speed": 2.0}),
        (at(verdict=verdict(metrics=MANY)), None),
        (at(verdict=None, ending=Ending.BUILD_FAILED), {}),
        (at(ending=Ending.INVALID, verdict=verdict(valid=False)), {}),
    ],
)
def test_a_dot(node: Node, scores: dict[str, float] | None) -> None:
    """It has what a chart draws of a node, from its record and from its line, and as it is written."""
    dot = dot_of(node)
    assert dot is not None
    assert (dot.opened_order, dot.node, dot.scores) == (7, "1.1", scores)
    sort = read_sort(dot.sort)
    assert (sort.phase, sort.role, sort.ending, sort.kept) == (node.phase, node.role, node.ending, node.kept)
    written = Dots(dots=(dot,)).model_dump_json()
    assert line_reader(DotsLine, Dots)(written).dots == (dot,)
    assert Dots.model_validate_json(written).dots == (dot,)
    if scores is None or "speed" not in scores:  # what is no number is no JSON either
        assert dot_of(line_reader(NodeLine, Node)(node.model_dump_json())) == dot


@pytest.mark.parametrize(
    "more",
    [
        {"phase": Phase.OPEN, "ending": None},
        {"phase": Phase.QUARANTINED},
        {"trials": 2},
        {"measured": ("1.2-3",)},
        {"asking": 1},
        {"opened_order": 0},
        {"verdict": verdict(valid=False)},
    ],
    ids=str,
)
def test_no_dot(more: dict[str, object]) -> None:
    """Where the score is not that of its own verdict alone, or where it changes still."""
    assert dot_of(ended("1.1", **{"opened_order": 7, **more})) is None


def test_blocks() -> None:
    """They sort by their names as dots by their orders; a dot that is replaced or taken out leaves the others."""
    dots = [Dot(order, f"1.{order}", "1/search/failed/", {}) for order in (3, 20, 100, 99_999)]
    assert sorted(map(block_of, dots)) == list(map(block_of, dots))
    block = Dots().with_dot("1.20", dots[1]).with_dot("1.3", dots[0])
    assert block.dots == (dots[0], dots[1])
    better = dots[0]._replace(sort="1/search/scored/kept//c")
    assert block.with_dot("1.3", better).dots == (better, dots[1])
    assert block.with_dot("1.3", None).dots == (dots[1],)


@pytest.mark.parametrize("seed", range(12))
def test_kept_up(seed: int) -> None:
    """After any changes, dots and census are those of all nodes, whether folded on or read from rows in between."""
    draw, state, order = random.Random(seed), campaign(), 0
    names: list[str] = []
    for number in range(1, 200):
        if not names or draw.random() < 0.4:
            names.append(f"1.{number}")
            role = draw.choice(list(Role))
            opened = len(names)
            fold(state, e.AttemptOpened(node=names[-1], parent="1", role=role, number=number, order=opened), AT)
        name, order = draw.choice(names), order + 1
        match draw.randint(0, 8):
            case 0:
                state.set_node(name, finding=draw.choice([None, "flag"]), asking=draw.choice([None, 1]))
            case 1:
                judged = [None, verdict(), verdict(tasks={"a": 1.0}), verdict(metrics={"score": draw.random()})]
                judged.append(verdict(metrics=MANY))
                state.set_node(name, verdict=draw.choice(judged))
            case 2 if state.nodes[name].phase is not Phase.ENDED:
                fold(state, e.AttemptQuarantined(node=name, ending=Ending.STALLED, why="still"), AT)
            case 3:
                state.set_node(name, trials=draw.randint(0, 2), measured=draw.choice([(), ("1-1",)]))
            case 4:
                state = State.from_rows(state.rows(), at_once=draw.random() < 0.5)
            case 5:
                state.set_node(name, kept=draw.random() < 0.5)
            case _:
                ending = draw.choice(list(Ending))
                fold(state, e.AttemptEnded(node=name, ending=ending, kept=draw.random() < 0.2, order=order), AT)
    assert_whole(state)
    for again in (state, State.from_rows(state.rows(), at_once=False)):
        assert told(again.counted()) == taken_again(state)


def test_a_change_writes_a_block() -> None:
    """However many nodes there are, what is written for one that ends is its block; one without dots is no row."""
    state = campaign()
    for number in range(1, 101):
        state.new("node", f"1.{number}", at(number, f"1.{number}"))
    assert len(blocks_of(state.rows())) == 7
    state.touched.clear()
    state.set_node("1.40", kept=True)
    assert {key for key in state.touched if key[0] == "dots"} == {("dots", block_of(_dot(40)))}
    copied = state.copy()
    state.set_node("1.40", kept=False)
    assert_whole(copied)
    last = ("dots", block_of(_dot(100)))
    for number in range(96, 101):
        assert state.row(last)
        fold(state, e.AttemptReleased(node=f"1.{number}", by="ann"), AT)
    assert (state.row(last), last in state.touched) == (None, True)
    assert_whole(state)


def _dot(order: int) -> Dot:
    dot = dot_of(at(order))
    assert dot is not None
    return dot


def test_sessions_that_kept_none() -> None:
    """Of a ledger where an older version went on, dots are not believed; they are taken again by one who changes it."""
    state = campaign(epoch=4)
    state.new("node", "1.1", at(1))
    state.new("node", "1.2", at(40, "1.2", role=Role.BASELINE))
    rows = state.rows()
    census = json.loads(rows["census", "census"])
    assert census.pop("dotted")
    rows["census", "census"] = json.dumps(census)
    rows["notable", "1.2"] = '{"role":"baseline"}'
    rows["dots", "000000009"] = Dots(dots=(Dot(150, "1.9", "1/search/failed/", {}),)).model_dump_json()
    read = State.from_rows(rows, at_once=False)
    assert read.dotted() is None
    assert told(read.counted()) == told(state.counted())
    assert read.touched == set()
    read.set_campaign(epoch=5)
    assert_whole(read)
    assert read.row(("dots", "000000009")) is None
    assert {("dots", "000000009"), ("dots", "000000000"), ("notable", "1.2")} <= read.touched
    assert State.rows_to_glance(read.rows()) == {"node": ["1.2"]}
    assert State.rows_to_glance(read.rows(), dotted=True) == {"node": []}
    assert State.rows_to_glance(rows, dotted=True) == {"node": ["1.2"]}
    left_behind = Census.model_validate_json(read.rows()["census", "census"]).model_copy(update={"epoch": 4})
    assert State.from_rows({**read.rows(), ("census", "census"): left_behind.model_dump_json()}).dotted() is None


@pytest.mark.parametrize("node", [ended("1.2"), at(2, "1.2", verdict=verdict(valid=False))], ids=["unnumbered", "odd"])
def test_one_without_a_dot(node: Node) -> None:
    """Where a node that is only counted has none, nobody says that the dots are all."""
    state = campaign()
    state.new("node", "1.1", at(1))
    assert state.dotted() is not None
    state.new("node", "1.2", node)
    assert state.dotted() is None


def test_one_with_many_scores() -> None:
    """The others are drawn from their dots, and it from its line, which is among what is read at a glance."""
    state = campaign()
    state.new("node", "1.1", at(1))
    state.new("node", "1.2", at(2, "1.2", verdict=verdict(metrics=MANY)))
    state.new("node", "1.3", at(3, "1.3", role=Role.BASELINE, verdict=verdict(metrics=MANY)))
    assert_whole(state)
    rows = state.rows()
    dots, others = State.from_rows(rows, at_once=False).dotted() or ([], [])
    assert [dot.node for dot in dots] == ["1.1"]
    assert sorted(node.id for node in others) == ["1.2", "1.3"]
    named = State.rows_to_glance(rows, dotted=True)
    assert named is not None
    assert sorted(named["node"]) == ["1.2", "1.3"]
    assert State.rows_to_glance(rows) == {"node": ["1.3"]}
