"""Points by a model: read from bounded JSON, held against the space, and told back where they are outside."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.proposal import Value
from orchestrator.proposers import Unanswered
from orchestrator.proposers.llm import LlmParams
from orchestrator.proposers.llm.params import fitting, read_points
from orchestrator.task import Bool, Choice, Float, Int, Parameter
from orchestrator.task.conditions import is_point
from tests.orchestrator.proposers.llm.scripts import Past, ScriptedLine, brief_of, make_task, tried

SPACE: dict[str, Parameter] = {
    "kind": Choice(values=("hex", "square")),
    "rate": Float(low=0.01, high=100, log=True),
    "rows": Int(low=1, high=7, step=3, when={"kind": ("hex",)}),
    "flag": Bool(),
}
SPEC = {"file": "params.json", "space": {name: it.model_dump(mode="json") for name, it in SPACE.items()}}
TASK = make_task(editable=["params.json"], parameters=SPEC)
HEX: dict[str, Value] = {"kind": "hex", "rate": 1.5, "rows": 4, "flag": True}
SQUARE: dict[str, Value] = {"kind": "square", "rate": 0.5, "flag": False}


def proposer() -> LlmParams:
    return LlmParams(TASK, TASK.policy(), SPACE)


def said(*points: dict[str, Any], why: str = "it may help") -> str:
    return json.dumps({"points": [{"why": why, "point": point} for point in points]})


async def test_several_points_of_one_answer() -> None:
    """With the space, the goal and the past told, and a reason in each description."""
    past = Past(tried(1, merit=-0.123456, params=HEX), tried(2, params=SQUARE))
    line = ScriptedLine(said(HEX, SQUARE))
    found = await proposer().propose(brief_of(TASK, line, count=3, past=past))
    assert [it.params for it in found] == [HEX, SQUARE]
    assert found[0].description == "kind=hex, rate=1.5, rows=4, flag=True; it may help"
    assert found[0].operator == "llm-params"
    told = line.asked[0].text
    for wanted in (
        "- rate: a number from 0.01 to 100, by ratio",
        '- rows: a whole number from 1 to 7, in steps of 3; there only while kind is one of ["hex"]',
        '{"kind": "hex", "rate": 1.5, "rows": 4, "flag": true} -> error=0.1235',
        '{"kind": "square", "rate": 0.5, "flag": false} -> no score: failed',
        "Propose 3 points",
    ):
        assert wanted in told, wanted
    assert "def solve" not in told


@pytest.mark.parametrize(
    "form", ["{}", "Here they are:\n```json\n{}\n```\nGood luck.", "I think {} is best", "```\n{}\n```"]
)
async def test_json_wherever_it_stands(form: str) -> None:
    line = ScriptedLine(form.replace("{}", said(HEX)))
    [found] = await proposer().propose(brief_of(TASK, line))
    assert found.params == HEX


OUTSIDE = [
    ({**HEX, "rows": 5}, "5 is no value of rows"),
    ({**HEX, "rate": 1000}, "1000 is no value of rate"),
    ({**HEX, "rate": True}, "True is no value of rate"),
    ({**HEX, "kind": "round"}, "round is no value of kind"),
    ({**SQUARE, "rows": 4}, "rows is no parameter, or not there at this point"),
    ({"kind": "hex"}, "rate is missing"),
    ({**HEX, "more": 1}, "more is no parameter, or not there at this point"),
]


@pytest.mark.parametrize(("point", "why"), OUTSIDE)
async def test_what_is_outside_is_told_back_once(point: dict[str, Any], why: str) -> None:
    """With the reason; a point outside the space is never handed in, not even when nothing else comes."""
    line = ScriptedLine(said(point, HEX), said(SQUARE))
    found = await proposer().propose(brief_of(TASK, line, count=2))
    assert [it.params for it in found] == [HEX, SQUARE]
    assert why in line.asked[1].last
    with pytest.raises(Unanswered, match="asked twice"):
        await proposer().propose(brief_of(TASK, ScriptedLine(said(point), said(point))))


def test_whole_numbers_and_reals_are_taken_as_they_are_meant() -> None:
    """JSON does not tell 4 from 4.0."""
    assert fitting(SPACE, {**HEX, "rows": 4.0, "rate": 2}) == {**HEX, "rate": 2.0}
    assert isinstance(fitting(SPACE, {**HEX, "rate": True}), str)


@pytest.mark.parametrize(
    "text",
    [
        "no points at all",
        "[" * 100_000,
        '{"points": [{"point": {"rate": NaN}}]}',
        '{"points": 3}',
        '{"points": [{"why": "x"}]}',
        '{"points": [3, null, "x"]}',
        '{"points": [], "points": [{"point": {}}]}',
        '{"points": [{"point": {"rate": ' + "9" * 500 + "}}]}",
        '{"points": "' + "x" * (300 << 10) + '"}',
    ],
)
async def test_t54_what_is_no_answer(text: str) -> None:
    """Deep, endless, doubled or plain prose: bounded, told back once, and then the attempt is over."""
    assert read_points(text) == []
    with pytest.raises(Unanswered, match="no JSON object with points"):
        await proposer().propose(brief_of(TASK, ScriptedLine(text, text)))


values = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.none())


@given(st.dictionaries(st.sampled_from([*SPACE, "other"]), values))
def test_only_points_of_the_space_come_through(given_point: dict[str, Any]) -> None:
    found = fitting(SPACE, given_point)
    assert isinstance(found, str) or is_point(SPACE, found)
