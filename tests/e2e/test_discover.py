"""A repository on a real engine: looked at, made a task of, judged, and searched."""

import json
import re
from pathlib import Path

import pytest

from orchestrator.discovery.discover import discover
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.targets import CommandTarget, FunctionTarget
from orchestrator.discovery.writing import Made
from orchestrator.importing import write_task
from orchestrator.importing.source import Source
from orchestrator.loop.rehearsal import rehearse
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.views.exits import Exit
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.laboratory import open_laboratory
from orchestrator.wiring.parts import make_parts
from tests.clicking import runner
from tests.orchestrator.discovery.repositories import UNITTEST, write

pytestmark = pytest.mark.docker

# Twenty times the work that it needs, in a loop that operators leave out.
WASTEFUL = """
def words(text):
    found = sorted(set(text.split()))
    for _ in range(20):
        found = sorted(set(text.split()))
    return found
"""
TESTS = """
import unittest

import wasteful


class Tests(unittest.TestCase):
    def test_words(self):
        for size in range(1, 60):
            self.assertTrue(wasteful.words(" ".join(f"w{i}" for i in range(20 * size))))
"""


async def test_a_repository_becomes_a_task_that_scores(tmp_path: Path) -> None:
    """Profile, calls and answers come out of chambers as bytes, and the judge of the task that they make scores."""
    there = Repository.of(Source.of(write(tmp_path / "there", UNITTEST)))
    settings = Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:
        image = ImageSpec(base=settings.image)
        laboratory = await open_laboratory(there, image, site, wall_s=120, memory=256 << 20)
        found = await discover(there, laboratory, lambda _: None, work_s=0.005)
        target = next(it for it in found.targets if isinstance(it, FunctionTarget) and it.function == "top")
        folder = tmp_path / "task"
        write_task(Made(there, (), (), found.guards, 256).task(target, "words"), folder)
        task = load_task(folder)
        run = await rehearse(await make_parts(task, snapshot(task, folder), site))
    assert run.scored, (run.reason, run.log, run.judgement)
    assert run.functions == ("each",)
    assert run.verdict
    assert run.verdict.metrics["seconds"] > 0


@pytest.mark.touching("importing")
async def test_a_whole_command_is_timed_from_outside(tmp_path: Path) -> None:
    """The judge starts it in the candidate's chamber: what prints what it printed before scores, another output does
    not, and numbers in it may differ where they did before.
    """
    there = Repository.of(
        Source.of(write(tmp_path / "there", {"bench.py": "import time\nprint('took', time.time())\n"}))
    )
    settings = Settings()
    verdicts = []
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:
        for number, said in enumerate(("took #", "something else")):
            target = CommandTarget(
                ("python3", "bench.py"), "bench.py", (0.1,), ("bench.py",), "it is one", "numbers", said
            )
            folder = tmp_path / f"task-{number}"
            write_task(Made(there, (), (), (), 256).task(target, "bench"), folder)
            task = load_task(folder)
            run = await rehearse(await make_parts(task, snapshot(task, folder), site))
            verdicts.append(run.verdict.metrics["seconds"] if run.scored and run.verdict else 0)
    assert verdicts[0] > 0
    assert not verdicts[1]


@pytest.mark.slow
def test_what_was_found_is_ready_and_can_be_made_better(tmp_path: Path) -> None:
    """The command alone: the task that it writes passes its check, and a short search on it gains."""
    from orchestrator.views.cli import cli

    there = write(tmp_path / "there", {"wasteful.py": WASTEFUL, "test_wasteful.py": TESTS})
    folder = str(tmp_path / "task")
    made = runner().invoke(
        cli, ["discover", str(there), "--target", "1", "--into", folder, "--quick"], standalone_mode=False
    )
    assert made.return_value is Exit.OK, made.output
    assert "check: ready to be searched" in made.output
    words = ["run", folder, "--proposer", "operators", "--attempts", "3", "--seed", "1"]
    searched = runner().invoke(cli, words, standalone_mode=False)
    assert searched.return_value == Exit.OK, searched.output
    assert "best: seconds=" in searched.output
    assert "no change beat it" not in searched.output, searched.output


CHUNKS = """
CHUNK = 2


def total(count):
    found = 0
    for start in range(0, count, CHUNK):
        found += sum(range(start, min(count, start + CHUNK)))
    return found
"""
CHUNK_TESTS = """
import unittest

import chunks


class Tests(unittest.TestCase):
    def test_total(self):
        for size in range(1, 80):
            self.assertEqual(chunks.total(50 * size), sum(range(50 * size)))
"""


@pytest.mark.slow
def test_numbers_of_a_repository_are_searched(tmp_path: Path) -> None:
    """A campaign on the space that was found chooses a number that is faster, and no line of code changes."""
    from orchestrator.views.cli import cli

    there = write(tmp_path / "there", {"chunks.py": CHUNKS, "test_chunks.py": CHUNK_TESTS})
    folder = str(tmp_path / "task")
    words = ["discover", str(there), "--target", "2", "--into", folder, "--no-check", "--json"]
    made = runner().invoke(cli, words, standalone_mode=False)
    assert made.return_value is Exit.OK, made.output
    row = json.loads(made.stdout)["targets"][1]
    assert row["title"] == "the numbers beneath chunks.py::total: CHUNK"
    words = ["run", folder, "--attempts", "3", "--seed", "1"]
    searched = runner().invoke(cli, words, standalone_mode=False)
    assert searched.return_value == Exit.OK, searched.output
    assert "no change beat it" not in searched.output, searched.output
    changed = [it for it in searched.output.splitlines() if it.startswith("+++ ")]
    assert changed == ["+++ b/blastdoor_parameters/point.json"]
    best = re.search(r"best: .*: CHUNK=(\d+)", searched.output)
    assert best, searched.output
    assert int(best[1]) > 2
