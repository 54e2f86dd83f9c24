"""From a small repository to targets, and from a target to a task. What runs, runs in processes of this machine."""

from pathlib import Path

import pytest

from orchestrator.discovery.bench import Found
from orchestrator.discovery.discover import discover
from orchestrator.discovery.targets import CommandTarget, FunctionTarget
from orchestrator.discovery.writing import Made
from orchestrator.domain.tier import Tier
from orchestrator.importing import write_task
from orchestrator.task import load_task
from tests.orchestrator.discovery.repositories import BROKEN, UNITTEST, WORDS, decoded, laboratory, repository

pytestmark = pytest.mark.touching("importing")

BENCHMARK = """
import words

if __name__ == "__main__":
    for size in range(1, 60):
        words.top([f"w{i}" for i in range(size)])
"""


async def look(folder: Path, files: dict[str, str]) -> Found:
    found = repository(folder, files)
    return await discover(found, laboratory(found), lambda _: None, work_s=0.002)


def function(found: Found, name: str) -> FunctionTarget:
    return next(it for it in found.targets if isinstance(it, FunctionTarget) and it.function == name)


async def test_tests_become_a_task(tmp_path: Path) -> None:
    """A function that takes plain values is found by the profile of the tests, with what is hot beneath it; its calls
    are gold, and the tests are the guard. One that changes its arguments, and one that gives an object, are left alone.
    Who has the repository and our own code cannot make the same questions: each time they are others.
    """
    there = repository(tmp_path / "there", UNITTEST)
    found = await discover(there, laboratory(there), lambda _: None, work_s=0.002)
    numbers = "the numbers beneath words.py::top: top_most"
    assert {it.title for it in found.targets} <= {"words.py::top", "words.py::unique", numbers}
    target = function(found, "top")
    _check_target(target)
    assert found.guards[0].command[:5] == ("env", "PYTHONPATH=.", "python3", "-m", "unittest")
    folder = tmp_path / "task"
    assert write_task(Made(there, ("numpy",), (), found.guards, 512).task(target, "words"), folder) is Tier.RELAY
    _check_task(folder, target)
    again = function(await discover(there, laboratory(there), lambda _: None, work_s=0.002), "top")
    made, others = ([it[:2] for it in decoded(one.pool.data) if it[5]] for one in (target, again))
    assert len(made) == target.pool.made
    assert made != others


def _check_target(target: FunctionTarget) -> None:
    assert target.module == "words"
    assert target.editable[0] == "words.py::top"
    assert set(target.editable[1:]) <= {"words.py::unique", "words.py::Counter.count", "words.py::Counter.__init__"}
    assert [it.name for it in target.parameters] == ["LIMIT"]
    calls = decoded(target.pool.data)
    assert len(calls) == target.pool.count > target.pool.recorded
    assert [["b", "a", "b"], {"most": 1}, True, ["b"]] in [[*it[0], *it[1:4]] for it in calls]
    assert [[], {"most": -1}, False, "ValueError"] in [[*it[0], *it[1:4]] for it in calls]


def _check_task(folder: Path, target: FunctionTarget) -> None:
    """An ordinary task: the repository as it is, a region for each hot function, a judge that calls."""
    task = load_task(folder)
    assert task.trial.command == ("python3", "-m", "blastdoor_batch", "words", "top")
    assert tuple(task.editable) == target.editable
    assert task.metrics[0].timing
    assert task.certify.rule == "noisy"
    assert task.image.pip == ("numpy",)
    assert task.guards[0].name == "tests"
    assert (folder / "workspace/words.py").read_text() == WORDS
    assert not (folder / "workspace/.blastdoor").exists()


async def test_tests_that_fail_guard_nothing(tmp_path: Path) -> None:
    """A file of tests that fails as it is, is left out of the guard, and told."""
    found = await look(tmp_path / "there", {**UNITTEST, "tests/test_broken.py": BROKEN})
    assert found.guards[0].left_out == 1
    assert "tests/test_broken.py" not in found.guards[0].command
    assert "tests.test_broken.Broken.test_never" in found.notes[0]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (
            "import sys\nimport unittest\nprint('no plugin of this name', file=sys.stderr)\n",
            ("no test passes as it is: none was found (", "no plugin of this name)"),
        ),
        (BROKEN, ("no test passes as it is: tests.test_broken.Broken.test_never",)),
        (
            "import os, unittest\n\nclass Ends(unittest.TestCase):\n    def test(self):\n        os._exit(7)\n",
            ("did not come to an end: failed (exit code 7)",),
        ),
    ],
    ids=["none", "none passes", "the process ends"],
)
async def test_no_target(tmp_path: Path, test: str, told: tuple[str, ...]) -> None:
    """One line says which test it was, or the last words of the run, which may say why."""
    found = await look(tmp_path / "there", {"words.py": WORDS, "tests/test_broken.py": test})
    assert not found.targets
    assert all(it in found.notes[0] for it in told), found.notes


async def test_tests_that_take_too_long(tmp_path: Path) -> None:
    """They are cut short; what was seen until then counts, and they guard nothing."""
    waits = "import time, unittest\n\nclass Waits(unittest.TestCase):\n    def test(self):\n        time.sleep(600)\n"
    there = repository(tmp_path / "there", {**UNITTEST, "tests/test_zzz.py": waits})
    found = await discover(there, laboratory(there, wall_s=20), lambda _: None, work_s=0.002)
    assert function(found, "top")
    assert not found.guards
    assert "were cut short and guard nothing" in found.notes[0]


async def test_a_benchmark(tmp_path: Path) -> None:
    """A script that measures is profiled and recorded like tests, and is itself a target, the last."""
    found = await look(tmp_path / "there", {"words.py": WORDS, "perf/__init__.py": "", "perf/bench.py": BENCHMARK})
    assert not found.guards
    assert function(found, "top")
    whole = next(it for it in found.targets if isinstance(it, CommandTarget))
    assert found.targets[-1] is whole
    assert whole.tier == "relay"
    assert whole.command[-2:] == ("-m", "perf.bench")
    there = repository(tmp_path / "there", {})
    folder = tmp_path / "task"
    assert write_task(Made(there, (), (), (), 512).task(whole, "bench"), folder) is Tier.RELAY


async def test_pytest(tmp_path: Path) -> None:
    """Tests that are functions need pytest; those that fail are left out one by one."""
    tests = """
        import words

        def test_top():
            for size in range(1, 40):
                assert words.top([f"w{i % 7}" for i in range(size)])

        def test_never():
            assert not words.top(["a"])
    """
    text = "\n".join(line.removeprefix("        ") for line in tests.splitlines())
    found = await look(tmp_path / "there", {"src/words.py": WORDS, "tests/test_words.py": text})
    assert function(found, "top").editable[0] == "src/words.py::top"
    assert "--deselect=tests/test_words.py::test_never" in found.guards[0].command
    assert found.guards[0].command[1] == "PYTHONPATH=src:."


async def test_a_function_that_no_region_can_be_made_of(tmp_path: Path) -> None:
    """One that is declared several times, as overloads are, is left alone, and that is told; beneath another function
    it is no part of what may be changed.
    """
    overloads = "\n".join(f"@overload\ndef unique(words: {it}) -> {it}: ..." for it in ("list[str]", "tuple[str]"))
    # A profile sees what takes most of the time, however busy the machine is.
    hot = WORDS.replace("    for word in words:\n        found", "    for word in words * 20:\n        found")
    assert hot != WORDS
    text = f"from typing import overload\n\n{overloads}\n{hot}"
    found = await look(tmp_path / "there", {**UNITTEST, "words.py": text})
    assert not any(it.title == "words.py::unique" for it in found.targets)
    assert "words.py::unique" not in function(found, "top").editable
    assert [it for it in found.notes if "words.py::unique (it defines unique more than once" in it], found.notes


async def test_new_questions_may_hang(tmp_path: Path) -> None:
    """One that never had a large number, and takes the process along with it, keeps the questions that it answers."""
    odd = "import os\n\ndef spin(x):\n    os._exit(1) if x > 99 else 0\n    return sum(range(20 * x))\n"
    body = "        [odd.spin(x) for x in range(90)]\n"
    test = f"import unittest, odd\n\nclass T(unittest.TestCase):\n    def test(self):\n{body}"
    found = await look(tmp_path / "there", {"odd.py": odd, "test_odd.py": test})
    target = function(found, "spin")
    assert all(it[0][0] <= 99 for it in decoded(target.pool.data))
