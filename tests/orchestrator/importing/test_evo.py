"""What becomes of a repository in which evo was set up. No code of it is run."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.importing import Imported, ImportRequest
from orchestrator.importing.evo import read
from orchestrator.task import TaskError
from tests.orchestrator.importing.openevolve_tasks import task_of

TARGET = "def solve(task):\n    return 'yes'\n"
BENCHMARK = """
import argparse, json

parser = argparse.ArgumentParser()
parser.add_argument("--agent")
NAMES = ["solve"]
TASKS = json.load(open("tasks.json"))
"""
CONFIG = {
    "target": "agent/agent.py",
    "benchmark": "python3 ./benchmark.py --agent {target} --quick",
    "metric": "min",
    "gate": "python3 gate.py",
}


def imported(folder: Path, *, old_layout: bool = False, **changed: Any) -> Imported:
    state = ".evo" if old_layout else ".evo/run_0003"
    files = {
        "agent/agent.py": TARGET,
        "benchmark.py": BENCHMARK,
        "tasks.json": "[]",
        "gate.py": "",
        f"{state}/config.json": json.dumps({**CONFIG, **changed}),
        **({} if old_layout else {".evo/meta.json": json.dumps({"active": "run_0003"})}),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read(ImportRequest(folder, "small"))


@pytest.mark.parametrize("old_layout", [True, False])
def test_a_whole_repository(tmp_path: Path, old_layout: bool) -> None:
    """Target, benchmark with its arguments, and direction come from the active run; the gate is told."""
    found = imported(tmp_path / "there", old_layout=old_layout)
    task = task_of(tmp_path, found)
    assert [(it.name, it.goal) for it in task.metrics] == [("score", "lower")]
    assert task.editable == ("agent/agent.py",)
    assert task.trial.command[-1] == "agent/agent.py"
    assert found.files["judge/benchmark.py"] == BENCHMARK.encode()
    names = {name for name in found.files if name.startswith("judge/")}
    assert names == {"judge/benchmark.py", "judge/judge.py", "judge/tasks.json"}
    driver = found.files["judge/judge.py"].decode()
    assert "arguments=['--agent', '{target}', '--quick']" in driver
    assert "goal='lower'" in driver
    assert [(it.name, it.command) for it in task.guards] == [("gate", ("python3", "gate.py"))]
    assert "workspace/gate.py" in found.files
    assert any("the gate is a guard" in line for line in found.mapped)


@pytest.mark.parametrize("gate", ["make test", "python3 gate.py | tee log", "python3 gate.py && rm -rf x", "'"])
def test_a_gate_that_is_no_plain_command_is_told(tmp_path: Path, gate: str) -> None:
    """A line for a shell, or a command that nothing of the repository belongs to, is left to a person."""
    found = imported(tmp_path, gate=gate)
    assert any("the gate (" in line for line in found.left_out)
    assert b"[[guards]]" not in found.files["blastdoor.toml"]


def test_a_gate_of_tests(tmp_path: Path) -> None:
    """Its folder, what it imports and pytest come along, and none of it is editable."""
    (tmp_path / "checks").mkdir(parents=True)
    (tmp_path / "checks/test_it.py").write_text("import numpy\n")
    found = imported(tmp_path, gate="python3 -m pytest checks/ --target {target}")
    task = task_of(tmp_path / "at", found)
    assert task.guards[0].command == ("python3", "-m", "pytest", "checks/", "--target", "agent/agent.py")
    assert task.image.pip == ("numpy", "pytest")
    assert "workspace/checks/test_it.py" in found.files
    assert task.editable == ("agent/agent.py",)


def test_a_benchmark_writes_no_keys(tmp_path: Path) -> None:
    """A command line with line breaks becomes arguments and a comment, and never keys of the task."""
    line = "python3 benchmark.py {target}\nimage.run = ['curl']\nmodel.usd = 1000.0\r#\ud800"
    plain = imported(tmp_path / "plain").files["blastdoor.toml"].decode()
    tricky = imported(tmp_path / "tricky", benchmark=line).files["blastdoor.toml"].decode()
    assert tomllib.loads(tricky) == tomllib.loads(plain)


@pytest.mark.parametrize(
    ("why", "changed"),
    [
        ("it must be max or min", {"metric": "best"}),
        ("is no Python file of the repository that is given", {"benchmark": "make bench TARGET={target}"}),
        ("is no Python file of the repository that is given", {"benchmark": "python3 benchmark.py"}),
        ("is no Python file of the repository that is given", {"benchmark": "python3 'benchmark.py {target}"}),
        ("is not there; name a file of", {"target": "gone.py"}),
        ("is not there; name a file of", {"target": "x" * 300}),
    ],
)
def test_bad_input(tmp_path: Path, why: str, changed: dict[str, Any]) -> None:
    """One line that says what is wrong."""
    with pytest.raises(TaskError, match=why):
        imported(tmp_path / "there", **changed)


@pytest.mark.parametrize("link", [".evo", ".evo/run_0003", ".evo/run_0003/config.json", ".evo/meta.json"])
def test_links_are_not_followed(tmp_path: Path, link: str) -> None:
    """No part of the way to what evo left is a link: it could lead to anything of this machine."""
    there = tmp_path / "there"
    imported(there)
    (there / link).rename(tmp_path / "outside")
    (there / link).symlink_to(tmp_path / "outside")
    with pytest.raises(TaskError, match=f"{link}: is a link, and none is followed"):
        read(ImportRequest(there, "small"))


def test_without_evo(tmp_path: Path) -> None:
    """A repository in which evo was never set up is told so, and so is a state that cannot be read."""
    with pytest.raises(TaskError, match="run evo init there"):
        read(ImportRequest(tmp_path, "small"))
    (tmp_path / ".evo").mkdir()
    (tmp_path / ".evo/config.json").write_text("{")
    with pytest.raises(TaskError, match="is not JSON"):
        read(ImportRequest(tmp_path, "small"))
    for active, why in {"x" * 300: "cannot be read", "\0\ud800": r"no \.evo/\\x00\\ud800/config.json"}.items():
        (tmp_path / ".evo/meta.json").write_text(json.dumps({"active": active}))
        with pytest.raises(TaskError, match=why):
            read(ImportRequest(tmp_path, "small"))
