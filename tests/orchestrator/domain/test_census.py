"""The census: plain nodes by their number, the others by their names, kept up with every change."""

import json

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.census import Census, Counted, Notable, read_sort, sort_key, take_census
from orchestrator.domain.ending import Ending
from orchestrator.domain.folding import fold
from orchestrator.domain.lines import NodeLine, line_reader
from orchestrator.domain.records import Campaign, HeldOut, Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict

AT = "2026-01-01T00:00:00+00:00"
COHORT = "a/b"


def verdict(**more: object) -> Verdict:
    told = {"metrics": {"score": 1.0}, "tier": Tier.DATA, "mode": Mode.SUBMIT, "cohort": COHORT, **more}
    return Verdict.model_validate(told)


def ended(name: str = "1.1", **more: object) -> Node:
    told = {"id": name, "parent": "1", "role": Role.SEARCH, "number": 1, "phase": Phase.ENDED, "trials": 1}
    return Node.model_validate({**told, "ending": Ending.SCORED, "verdict": verdict(), **more})


def campaign(epoch: int = 1) -> State:
    state = State()
    state.new("campaign", "campaign", Campaign(id="c", name="flat", version="1", epoch=epoch))
    return state


def told(counted: Counted) -> tuple[object, ...]:
    return counted.plain, [node.id for node in counted.notable], tuple(counted.last)


def taken_again(state: State) -> tuple[object, ...]:
    census, notable = take_census(state.nodes.values())
    return told(Counted.of(census, notable))


@pytest.mark.parametrize(
    "node",
    [
        ended(),
        ended(kept=True, role=Role.CONTROL),
        ended(verdict=verdict(suspect=("score",))),
        ended("7.1", verdict=None, ending=Ending.BUILD_FAILED),
    ],
)
def test_a_plain_node(node: Node) -> None:
    """All that is told of it is its sort, which has it under the node's own names."""
    line = line_reader(NodeLine, Node)(node.model_dump_json())
    key = sort_key(node)
    assert key is not None
    assert sort_key(line) == key
    sort = read_sort(key)
    assert (sort.phase, sort.role, sort.ending, sort.kept) == (node.phase, node.role, node.ending, node.kept)
    assert str(sort.run) == node.id.split(".")[0]
    assert (sort.verdict is None) == (node.verdict is None)
    if sort.verdict and node.verdict:
        assert (sort.verdict.cohort, bool(sort.verdict.suspect)) == (COHORT, bool(node.verdict.suspect))


@pytest.mark.parametrize(
    "more",
    [
        {"phase": Phase.OPEN, "ending": None},
        {"phase": Phase.QUARANTINED},
        {"trials": 2},
        {"finding": "pass"},
        {"measured": ("1.2-3",)},
        {"asking": 1},
        {"heldout": {COHORT: HeldOut(query=1, better=True, released=1.0, step=0.1)}},
        {"role": Role.BASELINE},
        {"role": Role.MINIMISED},
        {"verdict": verdict(tasks={"a": 1.0})},
    ],
    ids=str,
)
def test_a_notable_node(more: dict[str, object]) -> None:
    """One that is not over, or of which a view says more than how it ended, is named."""
    assert sort_key(ended("1.1", **more)) is None


def test_one_that_is_queued_again() -> None:
    """It is no longer among the last; where too few of them are known then, nobody says who was last."""
    state = campaign()
    for number in range(1, 13):
        state.new("node", f"1.{number}", ended(f"1.{number}", ended_order=number, phase=Phase.OPEN, ending=None))
        state.set_node(f"1.{number}", phase=Phase.ENDED, ending=Ending.SCORED)
    assert state.counted().last_ended(3) == ("1.10", "1.11", "1.12")
    fold(state, e.AttemptReleased(node="1.11", by="ann"), AT)
    assert state.counted().last_ended(3) == ("1.9", "1.10", "1.12")
    assert state.counted().of_run(1).last_ended(9) == ["1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.12"]
    assert state.counted().last_ended(10) is None
    assert [node.id for node in state.counted().notable] == ["1.11"]


def test_a_session_that_kept_none() -> None:
    """What a session of an older version left behind is not believed: it is taken again, and what is wrong goes."""
    state = campaign(epoch=4)
    state.new("node", "1.1", ended())
    rows = state.rows() | {("census", "census"): Census(epoch=3, plain={"1/search/failed/": 9}).model_dump_json()}
    rows |= {("notable", "1.9"): Notable(role=Role.SEARCH).model_dump_json()}
    short = {key: body for key, body in rows.items() if key[0] != "node"}
    assert State.rows_to_glance(short) is None
    assert State.rows_to_glance({key: body for key, body in short.items() if key[0] != "census"}) is None
    later = Census(form=99, epoch=4).model_dump(mode="json") | {"unknown": True}
    assert State.rows_to_glance({**short, ("census", "census"): json.dumps(later)}) is None
    read = State.from_rows(rows, at_once=False)
    assert read.touched == set()
    assert told(read.counted()) == taken_again(state)
    assert read.touched == {("census", "census"), ("notable", "1.9")}
    assert read.row(("notable", "1.9")) is None
    assert State.rows_to_glance(read.rows()) == {"node": []}


def test_the_next_session() -> None:
    """What was counted before it holds on."""
    state = campaign(epoch=4)
    state.new("node", "1.1", ended())
    state.new("node", "1.2", ended("1.2", phase=Phase.OPEN, ending=None))
    state.set_campaign(epoch=5)
    census = Census.model_validate_json(state.rows()["census", "census"])
    assert (census.epoch, census.plain) == (5, {"1/search/scored///a/b": 1})
    assert State.rows_to_glance(state.rows()) == {"node": ["1.2"]}
    assert state.notable_names(Role.SEARCH) == ["1.2"]
    assert state.notable_names(Role.MINIMISED) == []
