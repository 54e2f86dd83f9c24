"""Small tasks in the format of OpenEvolve, written for these tests."""

from pathlib import Path

from orchestrator.importing import Imported, write_task
from orchestrator.task import Task, load_task
from orchestrator.task.snapshot import snapshot

PROGRAM = """
def helper(x):
    return x


# EVOLVE-BLOCK-START
def solve(x):
    return helper(x) + 1
# EVOLVE-BLOCK-END
"""
EVALUATOR = """
import importlib.util


def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return {"combined_score": program.solve(20) * 2.0, "calls": 1}
"""
CONFIG = """
max_iterations: 7
prompt:
  system_message: |
    Let solve(x) be large.
    Do not cheat.
evaluator:
  timeout: 20
"""
TASK = {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR, "config.yaml": CONFIG}


def write(folder: Path, **changed: str | None) -> Path:
    """The task with other files, by their names with __ for a dot; None leaves one out."""
    files: dict[str, str | None] = {**TASK, **{name.replace("__", "."): text for name, text in changed.items()}}
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def task_of(tmp_path: Path, found: Imported) -> Task:
    """Written, loaded, and of files that can be taken."""
    write_task(found, tmp_path / "here")
    task = load_task(tmp_path / "here")
    snapshot(task, tmp_path / "here")
    return task
