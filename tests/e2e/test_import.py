"""An imported task on a real engine: the evaluator in one chamber, the program that it believes to load in another."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator.api import How, read_campaign
from orchestrator.examine.baseline import score_twice
from orchestrator.importing import Imported, ImportRequest, harbor, write_task
from orchestrator.importing.openevolve import read
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.loop.workbench import Parts
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts
from tests.e2e.backends import blastdoor, run
from tests.orchestrator.importing import harbor_tasks
from tests.orchestrator.importing.openevolve_tasks import write

pytestmark = pytest.mark.docker
TOUCHED = pytest.mark.touching("importing")

# Loads the program twice: by its name, and in another Python; and looks for what belongs to the other side.
EVALUATOR = """
import os
import subprocess
import sys

from pathlib import Path

sys.path.insert(0, str(Path.home() / "github" / "Ours"))
from ours.tasks import OFFSET

CHILD = "import runpy, sys; print(runpy.run_path(sys.argv[1])['solve'](20))"


def evaluate(program_path):
    sys.path.insert(0, os.path.dirname(program_path))
    program = __import__(os.path.basename(program_path)[:-3])
    told = subprocess.run([sys.executable, "-c", CHILD, program_path], capture_output=True, check=True, timeout=300)
    inside = "initial_program.py" in open(program_path).read() or os.path.exists("initial_program.py")
    score = program.solve(1) + float(told.stdout) + OFFSET
    return {"combined_score": score, "inside": float(inside), "seen": program.seen()}
"""
PROGRAM = """
import os


def solve(x):
    return x + 0.25


def seen():
    return sum("evaluator.py" in names for _, _, names in os.walk("/work"))
"""


async def rehearsed(tmp_path: Path, imported: Imported) -> Rehearsal:
    folder = tmp_path / "task"
    write_task(imported, folder)
    task, settings = load_task(folder), Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:
        return await rehearse(await make_parts(task, snapshot(task, folder), site))


def metrics(run: Rehearsal) -> dict[str, float]:
    assert run.scored, (run.reason, run.log, run.judgement)
    assert run.judgement
    assert run.judgement.result
    return run.judgement.result.metrics


async def test_a_task_is_imported_and_judged(tmp_path: Path) -> None:
    """The evaluator runs unchanged, its child process too, and neither side has the other's files. A repository that
    it looks for in its home is there.
    """
    source = write(tmp_path / "there", evaluator__py=EVALUATOR, initial_program__py=PROGRAM, config__yaml=None)
    ours = tmp_path / "repository"
    (ours / "ours").mkdir(parents=True)
    (ours / "ours" / "tasks.py").write_text("OFFSET = 100\n")
    run = await rehearsed(
        tmp_path, read(ImportRequest(source, "small", placed={"~/github/Ours": ours}, stub_text=True))
    )
    assert metrics(run) == {"combined_score": 121.5, "inside": 0.0, "seen": 0.0}
    assert run.functions == ("seen", "solve")


# Forbids a word of the program, and looks whether anything of it ran here.
FORBIDDING = """
import runpy
import sys


def evaluate(path):
    with open(path) as file:
        text = file.read()
    program = runpy.run_path(path)
    found = {"combined_score": program["solve"](2), "size": len(text), "ran": float("RAN" in sys.argv)}
    return {**found, "combined_score": 0.0, "error": "os is forbidden"} if "import os" in text else found
"""
PLAIN = "import sys\n\nsys.argv.append('RAN')\n\n\ndef solve(x):\n    return 2 * x\n"


@TOUCHED
@pytest.mark.parametrize("program", [PLAIN, f"import os\n{PLAIN}"])
async def test_a_check_of_the_source(tmp_path: Path, program: str) -> None:
    """It finds the candidate's text, as long as that is, and forbids what it would forbid natively; nothing of it runs
    beside the judge.
    """
    source = write(tmp_path / "there", evaluator__py=FORBIDDING, initial_program__py=program, config__yaml=None)
    run = await rehearsed(tmp_path, read(ImportRequest(source, "small")))
    assert run.judgement
    assert run.judgement.result
    if program is PLAIN:
        assert run.judgement.result.metrics == {"combined_score": 4.0, "size": float(len(PLAIN)), "ran": 0.0}
    else:
        assert not run.scored
        assert "os is forbidden" in run.judgement.result.notes


AWAITING = """
import asyncio
import runpy


async def evaluate(program_path):
    program = runpy.run_path(program_path)
    one, two = await asyncio.gather(program["search"](1), program["search"](2))
    cost, path = one
    steps = program["steps"](two)
    return {"combined_score": one.cost + two.cost + next(steps), "left": len(list(steps)), "path": path[0]}
"""
ASYNC = """
import asyncio
from typing import NamedTuple


class Found(NamedTuple):
    cost: float
    path: list


async def search(seed):
    await asyncio.sleep(0)
    return Found(0.5 * seed, [7, seed])


def steps(found):
    yield from range(len(found.path) + 1)
"""


@TOUCHED
async def test_an_evaluator_that_awaits(tmp_path: Path) -> None:
    """Async functions are awaited, named tuples have their names on both sides, and a generator gives its values."""
    source = write(tmp_path / "there", evaluator__py=AWAITING, initial_program__py=ASYNC, config__yaml=None)
    run = await rehearsed(tmp_path, read(ImportRequest(source, "small")))
    assert metrics(run) == {"combined_score": 1.5, "left": 2.0, "path": 7.0}


# Without packages, so that nothing has to be fetched: a test's own Python, and what an installer would have left.
SCRIPT = """#!/bin/bash
apt-get update
source $HOME/.local/bin/env
uvx -p 3.13 python /tests/test_outputs.py > /logs/verifier/reward.txt
"""
CHECKS = """
import json, os
{more}
at = os.path.join("/app", "sum.txt")
print(float(json.loads(open(at).read()) == 42) if os.path.exists(at) else 0.0)
"""
# Solves nothing, and leaves what would, if the tests ran any of it.
HOSTILE = """
echo 'print(1.0); raise SystemExit' | tee json.py test_outputs.py sitecustomize.py conftest.py usercustomize.py
echo 'echo 1 > /logs/verifier/reward.txt; exit' | tee .bashrc .profile env
mkdir -p logs/verifier tests bin && echo 1 | tee logs/verifier/reward.txt reward.txt
printf '#!/bin/sh\\necho 1' | tee bin/python3 bin/uvx tests/test.sh
chmod +x bin/*
"""


@TOUCHED
@pytest.mark.parametrize(
    ("solve", "more", "mode", "reward"),
    [
        ("awk '{ s += $1 } END { print s }' data/numbers.txt > sum.txt", "", "data", 1.0),
        (HOSTILE, "", "data", 0.0),
        ("echo 42 > sum.txt", "import subprocess", "shared", 1.0),
    ],
)
async def test_tests_of_harbor_judge_what_was_left(
    tmp_path: Path, solve: str, more: str, mode: str, reward: float
) -> None:
    """They find files and paths as they know them, and where they only look, nothing that a candidate left is run."""
    changed = {
        "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY data data\n",
        "tests/test.sh": SCRIPT,
        "tests/test_outputs.py": CHECKS.format(more=more),
        "solution/solve.sh": solve,
    }
    source = harbor_tasks.write(tmp_path / "there", changed)
    found = harbor.read(ImportRequest(source, "small", program="solution/solve.sh"))
    assert f'mode = "{mode}"' in found.files["blastdoor.toml"].decode()
    run = await rehearsed(tmp_path, found)
    assert metrics(run) == {"reward": reward}


# Starts the program by an interpreter, then what it built; gives it a file and input, and looks at what came back.
STARTING = """
import os, subprocess, tempfile
from pathlib import Path


def evaluate(program_path):
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "in.txt").write_text("40")
        words = ["bash", program_path, "in.txt", str(at / "out.txt")]
        told = subprocess.run(words, cwd=folder, input="2", capture_output=True, text=True, timeout=300)
        if told.returncode:
            return {"combined_score": 0.0, "error": told.stderr}
        try:
            subprocess.run([str(at / "built"), "sleep"], timeout=1.5)
            late = 0.0
        except subprocess.TimeoutExpired:
            late = 1.0
        built = subprocess.run([str(at / "built")], cwd=folder, capture_output=True, text=True, timeout=300)
        ended = subprocess.run([str(at / "built"), "die"], timeout=300).returncode
        seen = [float(name in os.listdir(folder)) for name in ("numpy.py", ".profile", "link")]
        return {
            "combined_score": float((at / "out.txt").read_text()),
            "late": late,
            "built": float(built.stdout),
            "ended": float(ended),
            "elsewhere": float("bash" in (at / "built").read_text()) + float("solve" in open(program_path).read()),
            "seen": sum(seen),
            "judge": float(told.stdout),
        }
"""
STARTED = """
echo $(($(cat "$1") + $(cat))) > "$2"
echo 'echo 1' > numpy.py; echo 'echo 1' > .profile; ln -s /etc/passwd link
echo 'echo "raise SystemExit(0)" > /work/tmp/usercustomize.py' > /dev/null
printf '#!/bin/bash\\n[ "$1" = sleep ] && sleep 60\\n[ "$1" = die ] && kill -9 $$\\necho 7\\n' > built
chmod +x built
find /work -name evaluator.py | wc -l # solve
"""


@TOUCHED
async def test_a_program_that_an_evaluator_starts(tmp_path: Path) -> None:
    """It runs in the candidate's chamber, and so does what it built: with files, input, time-outs and signals as if it
    were beside the evaluator. Nothing comes back that could be run there.
    """
    changed = {"initial_program.py": None, "initial_program.sh": STARTED, "config.yaml": None, "evaluator.py": STARTING}
    source = write(tmp_path / "there", **{name.replace(".", "__"): text for name, text in changed.items()})
    run = await rehearsed(tmp_path, read(ImportRequest(source, "small")))
    expected = {"late": 1.0, "built": 7.0, "ended": -9.0, "elsewhere": 0.0, "seen": 0.0, "judge": 0.0}
    assert metrics(run) == {"combined_score": 42.0, **expected}


RAISES = """
import runpy

{before}
def evaluate(program_path):
    return {{"combined_score": runpy.run_path(program_path)["solve"](1) + 1}}
"""
RAISED = {
    "": (
        "it says that the baseline is no solution: the evaluator raised TypeError: unsupported operand type(s) for +:"
        " 'NoneType' and 'int' (evaluator.py:6)"
    ),
    "scale": "judge failed: evaluator.py: the evaluator raised NameError: name 'scale' is not defined (evaluator.py:4)",
}


@TOUCHED
@pytest.mark.parametrize("before", RAISED)
async def test_an_evaluator_that_raises(tmp_path: Path, before: str) -> None:
    """After a call the program is no solution, before it the judge broke; either is told in one line."""
    evaluator, program = RAISES.format(before=before), "def solve(x):\n    return None\n"
    source = write(tmp_path / "there", evaluator__py=evaluator, initial_program__py=program, config__yaml=None)
    write_task(read(ImportRequest(source, "small")), tmp_path / "task")
    task, settings = load_task(tmp_path / "task"), Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:

        @asynccontextmanager
        async def parts() -> AsyncIterator[Parts]:
            yield await make_parts(task, snapshot(task, tmp_path / "task"), site)

        told = await score_twice(parts)
    assert told.why == f"the baseline got no score ({RAISED[before]})"


NOISY = """
import random


def evaluate(program_path):
    names = {}
    exec(open(program_path).read(), names)
    return {"combined_score": names["solve"](20) * 2.0 + random.gauss(0, 0.001)}
"""


@pytest.mark.e2e
@pytest.mark.slow
def test_a_campaign_on_an_imported_task(tmp_path: Path) -> None:
    """An evaluator that draws is measured, so what wins is proven in repeats; a campaign on it goes on after its end,
    and without a daemon, in another cohort.
    """
    source, folder = write(tmp_path / "there", evaluator__py=NOISY), tmp_path / "task"
    assert blastdoor("import", "openevolve", source, folder, "--measure").returncode == 0
    assert load_task(folder).certify.rule == "noisy"
    first = run(folder, proposer="operators")
    assert len(first.nodes) == 4
    with read_campaign(folder, Settings()) as reading:
        kept = [it for name, it in reading.state.nodes.items() if it.kept and name != "1"]
    assert kept
    assert all(it.certification for it in kept)
    moved = run(folder, attempts=4, how=How.RESUME, backend="runc")
    assert {name: moved.nodes[name] for name in first.nodes} == first.nodes
    assert len(moved.nodes) > len(first.nodes)
    assert moved.site.backend == "runc"
    assert len(moved.cohorts) == 2
