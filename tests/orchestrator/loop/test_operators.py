"""Campaigns in which operators change code: the score is a function of what stands in the file."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.state import State
from orchestrator.proposers import Exhausted
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import ran, scripted, write_task

SOLVE = "RATE = 2.0  # to be found\n\n\ndef f(x, y):\n    if x < y:\n        return x * RATE\n    return y\n"
WANTED = 31.4


@dataclass
class Reading(Script):
    """The judge reads the number that is wanted; what has no such number fails."""

    async def program(self, guest: Guest) -> int:
        if guest.job.command[0] == "judge":
            score = -abs(float(guest.files["outputs/answer.txt"]) - WANTED)
            guest.out["result.json"] = json.dumps({"score": score}).encode()
            return 0
        if guest.job.command[0] == "true":
            return 0
        found = re.match(r"RATE = (-?[\d.e+-]+) ", guest.files["solve.py"].decode())
        if found is None:
            return 1
        guest.out["answer.txt"] = found[1].encode()
        return 0


def code_task(folder: Path, solve: str | bytes = SOLVE) -> Path:
    write_task(folder)
    task = folder / "blastdoor.toml"
    task.write_text(task.read_text().replace('"notes.txt"', '"solve.py"'))
    (folder / "workspace" / "solve.py").write_bytes(solve if isinstance(solve, bytes) else solve.encode())
    return folder


def history(state: State) -> list[tuple[object, ...]]:
    nodes = sorted((node for node in state.nodes.values() if node.parent), key=lambda node: node.number)
    return [(node.id, node.operator, node.description, node.drawn) for node in nodes]


async def test_a_campaign_finds_a_number(tmp_path: Path) -> None:
    """Every attempt is another tree, says what it did, and the number is found to one part in a hundred."""
    session = await ran(code_task(tmp_path), Reading(), proposer="operators", attempts=120, seed=1)
    state = session.state
    champion = state.champion()
    assert champion is not None
    assert champion.verdict is not None
    assert abs(champion.verdict.metrics["score"]) < WANTED / 100
    trees = [event.tree for event in session.of(e.Proposed) if event.draft]
    assert len(trees) == len(set(trees)) == 120
    assert all(node.description.endswith("of solve.py") for node in state.nodes.values() if node.parent)
    assert not any(event.refused for event in session.of(e.Proposed))


async def test_a_resume_goes_on_alike(tmp_path: Path) -> None:
    """Stopped and resumed, with a proposer that is new and nothing learnt yet: the same proposals as in one go, drawn
    under the same probabilities.
    """
    flags: dict[str, Any] = {"proposer": "operators", "attempts": 20, "seed": 5, "meta": "lift"}
    whole = history((await ran(code_task(tmp_path / "a"), Reading(), **flags)).state)
    task = code_task(tmp_path / "b")
    await ran(task, Reading(), **flags, stop=(e.AttemptEnded, 12))
    assert history((await ran(task, Reading(), how=How.RESUME)).state) == whole


async def test_several_drafts_of_one_attempt(tmp_path: Path) -> None:
    """Tuning compares different changes, and the best is promoted."""
    folder = code_task(tmp_path)
    with (folder / "blastdoor.toml").open("a") as task:
        task.write('\n[tune]\ntrials = 4\ncommand = ["tune"]\n')
    session = await ran(folder, Reading(), proposer="operators", attempts=5, seed=1)
    drafts = [event for event in session.of(e.Proposed) if event.draft]
    assert len(drafts) == 20
    assert len({draft.tree for draft in drafts}) == 20


async def test_a_file_with_nothing_to_change_ends_the_campaign(tmp_path: Path) -> None:
    """Nobody is charged, and the reason is said."""
    session = await ran(code_task(tmp_path, "RATE = x \n"), Script(), proposer="operators", attempts=5)
    assert "nothing new on 1" in session.reason
    assert session.charged == 0


@pytest.mark.parametrize("solve", [b"\0\1", b"", b"x = '\xff'\n"])
async def test_a_task_without_text_is_refused(tmp_path: Path, solve: bytes) -> None:
    """Before anything runs, and in one line."""
    folder = code_task(tmp_path, solve)
    task = folder / "blastdoor.toml"
    text = task.read_text().replace('editable = ["params.json", "solve.py"]', 'editable = ["solve.py"]')
    task.write_text(re.sub(r"\[parameters\].*?\n\n", "", text, flags=re.DOTALL))
    with pytest.raises(TaskError, match="needs text to change, and no editable file is text"):
        async with scripted(folder, proposer="operators"):
            raise Exhausted("never reached")


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize("kind", [e.Proposed, e.JudgingEnded])
async def test_a_search_that_learns_outlives_a_kill(tmp_path: Path, kind: type[e.Event]) -> None:
    """What is on disk at any moment, as after kill -9, goes on with the very draws of a campaign that nobody killed."""
    flags: dict[str, Any] = {"proposer": "operators", "attempts": 20, "seed": 5, "meta": "gradient", "width": 1}
    task, copy, seen = code_task(tmp_path / "task"), tmp_path / "copy", 0

    def take(_: e.Event) -> None:
        nonlocal seen
        seen += 1
        if seen == 14:
            shutil.copytree(task, copy)

    async with scripted(task, Reading(), credit="lineage", **flags) as session:
        session.when(kind, take, on_disk=True)
        await session.run()
        whole = history(session.state)
    session = await ran(copy, Reading(), how=How.RESUME)
    assert history(session.state) == whole
    assert any(knob for *_, drawn in whole for knob in getattr(drawn, "knobs", ()))
