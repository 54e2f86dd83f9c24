"""The heartbeat of a trial: who told of steps and falls silent is ended early, and nobody lives longer for telling."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.loop.heartbeat import Silence
from orchestrator.task import TaskError
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import TUNE, Virtual, make_site, ran, scripted, write_task
from tests.orchestrator.loop.test_pruning import GOOD, last, pruning, reporting


def task(tmp_path: Path, *more: str, wall: str = "30s", beat: str = "3s") -> Path:
    stall = f'[stall]\nheartbeat = "{beat}"\n'
    return write_task(tmp_path / "task", stall, *more, limits=f'[limits]\nwall = "{wall}"\ngrace = "0.2s"\n')


def test_silent_after_steps(tmp_path: Path, virtual: Virtual) -> None:
    """It is told to stop and timed out, which is charged; the reports stay on record, and nothing is refunded."""
    session = virtual.run(ran(task(tmp_path), None, reporting(4, 0.1, 0.2, hangs=True), {"value": 5}))
    node, trial = last(session, 1)
    assert (node.ending, trial.reason, session.charged) == (Ending.TIMED_OUT, "no report for 3 s", 2)
    assert trial.reports
    assert trial.reports.points == ((0, 0.1), (1, 0.2))
    assert session.of(e.Refunded) == []
    assert last(session, 2)[0].ending is Ending.SCORED


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ({"hangs": True, "deaf": True}, "no report for 3 s; ignored the order to stop"),
        ({"babble": "same"}, "no report for 3 s"),
        ({"babble": "steps"}, "over its limit of 30 s"),
    ],
)
def test_t76_who_is_ended(tmp_path: Path, virtual: Virtual, point: dict[str, Any], reason: str) -> None:
    """All pay: who ignores the order, says the same step again, or tells of new ones past the limit."""
    session = virtual.run(ran(task(tmp_path), None, reporting(4, 0.1, **point)))
    node, trial = last(session, 1)
    assert (node.ending, node.stalls, session.charged, trial.reason) == (Ending.TIMED_OUT, 0, 1, reason)
    assert trial.reports
    assert (trial.reports.count > 10) == (point.get("babble") == "steps")


def test_who_tells_of_no_steps(tmp_path: Path, virtual: Virtual) -> None:
    """A trial without reports has no heartbeat that could stop, however long it says nothing."""
    session = virtual.run(ran(task(tmp_path), None, {"value": 4, "takes": 9.0}))
    assert last(session, 1)[0].ending is Ending.SCORED


def test_beside_pruning(tmp_path: Path, virtual: Virtual) -> None:
    """Whichever comes first ends a trial: the rule, or its silence; a spared one falls silent like any other."""
    bad, hung = reporting(4, 0.1, 0.2, 0.3, hangs=True), reporting(5, 0.1, 0.5, 0.8, hangs=True)
    session = virtual.run(ran(task(tmp_path, pruning(spare=0.0)), None, *GOOD, bad, hung))
    assert last(session, 3)[0].ending is Ending.PRUNED
    node, trial = last(session, 4)
    assert (node.ending, trial.reason) == (Ending.TIMED_OUT, "no report for 3 s")
    assert trial.pruning
    assert not trial.pruning.cut


def test_every_trial_has_one(tmp_path: Path, virtual: Virtual) -> None:
    """Tune trials, too; the baseline as well, and then the campaign says what is wrong with the task."""
    drafts = [{"value": 2, "tuned": 1}, reporting(3, 0.1, hangs=True)]
    session = virtual.run(ran(task(tmp_path, TUNE), None, drafts))
    [silent] = [it for it in session.state.trials_of("1.1") if it.ending]
    assert (silent.purpose, silent.ending) == (Purpose.TUNE, Ending.TIMED_OUT)
    assert last(session, 1)[0].params == {"value": 2, "tuned": 1}


async def test_backend_that_can_not_stop(tmp_path: Path) -> None:
    """It is refused before anything is run, in one line that says what to do."""
    site = make_site(Script())
    backend: Any = site.backend
    backend.capabilities = replace(backend.capabilities, stop=False)
    with pytest.raises(TaskError, match=r"stall\.heartbeat needs a backend that can stop a trial"):
        await ran(task(tmp_path), site=site)


@pytest.mark.parametrize("mode", ["relay", "shared"])
async def test_judges_beside_the_candidate(tmp_path: Path, mode: str) -> None:
    """Where the judge is there at the same time, no trial can be told to stop; the task is refused and says so."""
    folder = task(tmp_path)
    text = (folder / "blastdoor.toml").read_text()
    (folder / "blastdoor.toml").write_text(text.replace("[judge]\n", f"[judge]\nmode = {json.dumps(mode)}\n"))
    with pytest.raises(TaskError, match=r"stall\.heartbeat: needs judge\.mode"):
        await ran(folder)


async def test_heartbeat_longer_than_the_limit(tmp_path: Path) -> None:
    """It could never do anything, which is worth a warning."""
    async with scripted(task(tmp_path, wall="3s")) as session:
        assert [it for it in session.bench.task.warnings if "heartbeat" in it]


def test_silence() -> None:
    """Nothing is due before the first step; each step puts it off by the limit and no further."""
    silence = Silence(30.0)
    assert silence.left(1000.0) is None
    silence.beat(1000.0)
    assert silence.left(1029.0) == 1.0
    silence.beat(1029.0)
    assert silence.left(1060.0) == -1.0
