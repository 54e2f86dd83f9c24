"""An imported task on a real engine: the evaluator in one chamber, the program that it believes to load in another."""

from pathlib import Path

import pytest

from orchestrator.importing import ImportRequest, write_task
from orchestrator.importing.openevolve import read
from orchestrator.loop.rehearsal import rehearse
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts
from tests.orchestrator.importing.openevolve_tasks import write

pytestmark = pytest.mark.docker

# Loads the program twice: by its name, and in another Python; and looks for what belongs to the other side.
EVALUATOR = """
import os
import subprocess
import sys

CHILD = "import runpy, sys; print(runpy.run_path(sys.argv[1])['solve'](20))"


def evaluate(program_path):
    sys.path.insert(0, os.path.dirname(program_path))
    program = __import__(os.path.basename(program_path)[:-3])
    told = subprocess.run([sys.executable, "-c", CHILD, program_path], capture_output=True, check=True, timeout=300)
    inside = "initial_program.py" in open(program_path).read() or os.path.exists("initial_program.py")
    return {"combined_score": program.solve(1) + float(told.stdout), "inside": float(inside), "seen": program.seen()}
"""
PROGRAM = """
import os


def solve(x):
    return x + 0.25


def seen():
    return sum("evaluator.py" in names for _, _, names in os.walk("/work"))
"""


async def test_a_task_is_imported_and_judged(tmp_path: Path) -> None:
    """The evaluator runs unchanged, its child process too, and neither side has the other's files."""
    source = write(tmp_path / "there", evaluator__py=EVALUATOR, initial_program__py=PROGRAM, config__yaml=None)
    folder = tmp_path / "task"
    write_task(read(ImportRequest(source, "small")), folder)
    task, settings = load_task(folder), Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:
        run = await rehearse(await make_parts(task, snapshot(task, folder), site))
    assert run.scored, (run.reason, run.log, run.judgement)
    assert run.judgement
    assert run.judgement.result
    assert run.judgement.result.metrics == {"combined_score": 21.5, "inside": 0.0, "seen": 0.0}
    assert run.functions == ("seen", "solve")
