"""A hostile or careless change costs its own attempt, never the campaign."""

import json
from pathlib import Path

import pytest

from orchestrator.change import File, Policy, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.loop.candidate import next_tree, point_in
from orchestrator.task import Bool, Choice, Float, Int, Parameter, Parameters
from orchestrator.wiring.reading import ask
from sandbox import Job, Refused, Unavailable
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, ran, scripted, write_task

SPACE: dict[str, Parameter] = {
    "rows": Int(low=1, high=9, step=2),
    "rate": Float(low=0, high=1),
    "kind": Choice(values=("a", "b")),
    "flag": Bool(),
}
POINT = Proposal(operator="grid", description="x", params={"rows": 3})


def tree(text: str) -> Tree:
    return Tree({"params.json": File(text.encode())})


def test_what_a_file_holds_of_the_space() -> None:
    """Values of the right type and range are taken over; all else is drawn again."""
    good = {"rows": 3, "rate": 0.5, "kind": "b", "flag": True}
    assert point_in(tree(json.dumps(good)), "params.json", SPACE) == good
    bad = {"rows": 4, "rate": 7, "kind": "\ud800", "flag": 1, "other": 5}
    assert point_in(tree(json.dumps(bad)), "params.json", SPACE) == {}
    assert point_in(tree('{"rows": true, "rate": "0.5", "kind": null}'), "params.json", SPACE) == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "no json", '{"x": NaN}', '{"x": 1e999}', "[" * 100_000, '{"x": ' + "9" * 5000 + "}"]
)
def test_a_parameters_file_that_is_no_object(text: str) -> None:
    """Whatever a candidate left there, a point can be written over it."""
    made = next_tree(tree(text), POINT, Policy(editable=("params.json",)), Parameters(file="params.json", space=SPACE))
    assert json.loads(made["params.json"].data) == {"rows": 3}


def test_a_path_that_no_repository_takes() -> None:
    """A change with a path of a hundred folders is refused, before it is stored."""
    path = "/".join(["d"] * 100) + "/f.py"
    with pytest.raises(Refusal, match="path too long"):
        apply_text(Tree(), f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n", Policy(editable=("**",)))


@pytest.mark.parametrize("field", ["operator", "description", "text"])
def test_half_a_character(field: str) -> None:
    """What cannot be written down cannot be proposed."""
    said = {"operator": "x", "description": "x", "text": "x", field: "\ud800"}
    with pytest.raises(ValueError, match=r"half a character|unicode"):
        Proposal(**said)


async def test_a_request_that_nobody_can_read(folder: Path) -> None:
    """It is answered and forgotten, as is an injection on an unknown node; the campaign goes on."""
    bodies = ["[]", "{}", "1", '"x"', "[" * 50_000, '{"text": "\\ud800"}', "{"]
    async with scripted(folder, None, {"value": 3}) as session:
        for body in bodies:
            session.bench.book.ledger.ask("inject", body, "2026-01-01T00:00:00+00:00")
        ask(folder, "inject", {"text": "x", "on": "9.9"})
        await session.run()
    assert session.nodes["1.1"].ending is Ending.SCORED
    assert session.state.campaign.request == len(bodies) + 1 == len(session.of(e.RequestTaken))
    assert not session.state.campaign.waiting


async def test_a_guard_that_the_engine_refuses_does_not_pass(tmp_path: Path) -> None:
    """The candidate is not kept, with the reason, and the next one is tried."""
    folder = write_task(tmp_path / "task", GUARD)
    script = Script()

    async def on_open(job: Job) -> None:
        if job.command[0] == "guard":
            raise Refused("more processors than there are")

    script.on_open = on_open
    node = (await ran(folder, script, {"value": 3}, {"value": 4})).nodes["1.1"]
    assert (node.ending, node.kept, "guard" in node.why) == (Ending.SCORED, False, True)


async def test_an_engine_that_gives_no_chamber_does_not_use_up_the_proposals(tmp_path: Path) -> None:
    """Two attempts are tried in turn, ever less often, and then the session ends."""
    folder = write_task(tmp_path / "task", "[stall]\nrefunds = 1\nin_a_row = 6\n")
    script = Script()

    async def on_open(job: Job) -> None:
        if len(script.commands) >= 2 and job.command[0] != "true":
            raise Unavailable("there is no room")

    script.on_open = on_open
    points = [{"value": number} for number in range(1, 40)]
    session = await ran(folder, script, *points, attempts=40)
    assert session.ends[-1].gave_up
    assert "6 attempts in a row ended free and cost $0.00" in session.reason
    assert [it.node for it in session.of(e.Proposed)] == ["1", "1.1", "1.2"]
    assert not session.of(e.AttemptQuarantined)
