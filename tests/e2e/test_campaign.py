"""A campaign from the command line, as its user meets it: from `init` to `apply`, with the crash in between."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import How, Settings, read_campaign, search
from orchestrator.domain.ending import Ending
from orchestrator.ledger import Missing
from tests.started import Started, completed

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "COLUMNS": "110"}


def blastdoor(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return completed(*words, env=ENVIRONMENT)


def said(*words: str | Path, code: int = 0) -> str:
    ran = blastdoor(*words)
    assert ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout if code == 0 else ran.stderr


def told(*words: str | Path) -> Any:
    return json.loads(said(*words, "--json"))


SHAPE = ("--attempts", "6", "--seed", "3", "--width", "2", "--depth", "1", "--islands", "2", "--migrate", "2")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter task after six attempts, on two islands."""
    folder = tmp_path_factory.mktemp("e2e") / "curve"
    said("init", folder)
    said(
        "run",
        folder,
        *["--attempts", "6", "--seed", "3", "--width", "2", "--depth", "1", "--islands", "2", "--migrate", "2"],
    )
    return folder


def test_what_the_run_left(task: Path) -> None:
    """Everything that prints works on the finished campaign, and its JSON agrees with itself."""
    status = told("status", task)
    tree = told("tree", task)
    assert len(tree["nodes"] if isinstance(tree, dict) else tree) == 7
    best = told("show", "best", task)
    assert best["node"]["kept"] if "node" in best else best["kept"]
    assert "diff --git a/params.json" in said("diff", "best", "--from", "1", task)
    assert "kept" in said("chart", task)
    assert "# " in said("report", task)
    assert status["population"]["islands"] == 2
    with read_campaign(task) as reading:
        assert {node.island for node in reading.state.nodes.values()} == {0, 1, 2}
        assert reading.state.run.migrated >= 2


def test_the_ledger_is_proven(task: Path, tmp_path: Path) -> None:
    """A head that was kept proves the chain; an export proves itself; the table has a line for each node."""
    head = tmp_path / "head.json"
    said("ledger", "head", "--out", head, task)
    assert "as they were written" in said("ledger", "verify", "--head", head, task)
    said("export", "--jsonl", tmp_path / "l.jsonl", "--csv", tmp_path / "n.csv", task)
    assert len((tmp_path / "n.csv").read_text().splitlines()) == 8
    lines = (task / ".blastdoor" / "metrics.csv").read_text().splitlines()
    assert lines[0].startswith("iteration,node,score (lower is better)")
    assert len(lines) == 8


def test_replay_and_guards(task: Path) -> None:
    """A deterministic score stands when it is run again."""
    assert "stands" in said("replay", "best", task)
    said("guards", "best", task)


def test_shell(task: Path) -> None:
    """An identical chamber: the candidate's files and no network."""
    shown = said("shell", "best", task, "-c", "ls; cat /proc/net/route | wc -l; pwd")
    assert "params.json" in shown
    assert "judge" not in shown
    assert "/work/src" in shown


def test_a_change_of_ones_own(task: Path) -> None:
    """Injected, it becomes a node with a verdict; one outside the editable files is invalid; both are told."""
    good = task.parent / "good.diff"
    good.write_text('params.json\n```json\n{"neighbours": 9, "width": 0.4, "kernel": "gauss", "slope": true}\n```\n')
    said("inject", "--diff", good, "--describe", "by hand", task)
    said("resume", task, "--attempts", "8")
    with read_campaign(task) as reading:
        mine = [node for node in reading.state.nodes.values() if node.role == "injected"]
        assert [(node.description, node.ending) for node in mine] == [("by hand", "scored")]
        assert reading.holder is None


def test_a_task_that_changed_is_told_to_start_a_new_run(task: Path, tmp_path: Path) -> None:
    """Nothing is run and nothing is lost; the new run then has its own baseline."""
    copy = tmp_path / "copy"
    shutil.copytree(task, copy)
    (copy / "judge" / "judge.py").write_text((copy / "judge" / "judge.py").read_text() + "\n# stricter\n")
    assert "--new-run" in said("resume", copy, code=2)
    said("run", copy, "--new-run", "--attempts", "1")
    with read_campaign(copy) as reading:
        assert set(reading.state.runs) == {"1", "2"}
        assert reading.state.nodes["2"].verdict
        reading.ledger.verify()


def test_apply_writes_the_winner_into_the_workspace(task: Path, tmp_path: Path) -> None:
    """And takes it out again; a file that is neither what the run began with nor what was applied is not touched."""
    copy = tmp_path / "copy"
    shutil.copytree(task, copy)
    began = (copy / "workspace" / "params.json").read_bytes()
    said("apply", "best", copy)
    with read_campaign(copy) as reading:
        champion = reading.state.champion()
        assert champion
        wanted = reading.candidates.read(champion.id)["params.json"].data
        assert (copy / "workspace" / "params.json").read_bytes() == wanted
    said("apply", "1", copy)
    assert (copy / "workspace" / "params.json").read_bytes() == began
    (copy / "workspace" / "params.json").write_text("{}")
    assert "params.json" in said("apply", "1.1", copy, code=2)
    assert (copy / "workspace" / "params.json").read_text() == "{}"


def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to that within five minutes")


def nodes_ended(task: Path) -> int:
    try:
        with read_campaign(task) as reading:
            return sum(node.ending is not None for node in reading.state.nodes.values())
    except Missing:
        return 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_and_resumed(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C ends it cleanly with exit code 130; `kill -9` loses nothing either; a resume finishes it."""
    task = tmp_path / "t"
    said("init", task)
    # So slow that it is at work whenever it is stopped.
    running = Started("run", task, "--attempts", "6", "--width", "2", "--rate", "12/min", env=ENVIRONMENT)
    until(lambda: nodes_ended(task) >= 1)
    assert "works on this campaign" in said("resume", task, code=2)
    running.send_signal(number)
    assert running.wait(timeout=300) == (130 if number is signal.SIGINT else -9)
    said("resume", task, "--rate", "20/s")
    with read_campaign(task) as reading:
        ended = [node for node in reading.state.nodes.values() if node.role == "search"]
        assert [node.ending for node in ended] == [Ending.SCORED] * 6
        assert not reading.accounts.holds
        reading.ledger.verify()


def test_python_in_ten_lines(tmp_path: Path) -> None:
    """The documented way from Python gives what the command line gives."""
    task = tmp_path / "t"
    said("init", task)
    heard: list[str] = []
    settings = Settings(docker_host=os.environ.get("BLASTDOOR_DOCKER_HOST"))
    finished = asyncio.run(
        search(task, attempts=2, seed=5, settings=settings, observer=lambda event, _: heard.append(event.kind))
    )
    assert finished.champion
    assert heard.count("attempt ended") == 3
    assert asyncio.run(search(task, how=How.RESUME, attempts=3, settings=settings)).champion


@pytest.mark.parametrize(
    ("name", "seed", "width"),
    [
        ("circle_packing", "1", "2"),
        pytest.param("matmul_discovery", "3", "1", marks=pytest.mark.touching("examples")),
        pytest.param("digits", "1", "2", marks=pytest.mark.touching("examples")),
        pytest.param("tuning", "1", "2", marks=pytest.mark.touching("examples")),
    ],
)
def test_examples_run(tmp_path: Path, name: str, seed: str, width: str) -> None:
    """Each example has a baseline, beats it within a few attempts, and its judge is outside."""
    task = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, task, ignore=shutil.ignore_patterns(".blastdoor", "__pycache__"))
    said("run", task, "--attempts", "4", "--seed", seed, "--width", width)
    with read_campaign(task) as reading:
        champion = reading.state.champion()
        assert champion
        assert champion.id != "1"
        assert champion.verdict
        assert champion.verdict.tier == "data"
