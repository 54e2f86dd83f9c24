"""Numbers of a repository as a space to search: found in what hot code reads, put in their places when it is loaded."""

import json
import subprocess
import sys
from pathlib import Path

from orchestrator.discovery.bench import Guard
from orchestrator.discovery.targets import FunctionTarget, ParameterTarget, Pool, space_of
from orchestrator.discovery.writing import Made
from orchestrator.importing import write_task
from orchestrator.task import load_task
from orchestrator.task.space import Float, Int
from tests.orchestrator.discovery.repositories import repository

SORT = """
CUTOFF = 24
UNREAD = 7
NEGATIVE = -3


class Sorter:
    def sort(self, items, *, chunk=16, ratio=0.5, name="x", flag=True, none=0):
        return (CUTOFF, chunk, ratio, NEGATIVE, name, flag)


def sort(items, most=3):
    return Sorter().sort(items)[:most]
"""
PRINT = "import sort, json; print(json.dumps([*sort.sort([], 9), sort.sort([])]))"


def target(folder: Path) -> tuple[Made, ParameterTarget]:
    there = repository(folder, {"src/sort.py": SORT})
    pool = Pool(b"", 3, 9, (0.5,), 6)
    editable = ("src/sort.py::sort", "src/sort.py::Sorter.sort")
    function = FunctionTarget("sort", "sort", "src/sort.py", 1.0, 9, editable, (), pool)
    guards = [Guard("tests", ("env", "PYTHONPATH=src:.", "python3", "-m", "unittest"), 1.0, 0)]
    return Made(there, (), (), guards, 512), ParameterTarget(function, space_of(function, there))


def test_what_hot_code_reads_is_a_space(tmp_path: Path) -> None:
    """Constants that it reads and defaults of its own arguments, around what they are; nothing that is zero or less,
    none that it does not read. The tests guard with the chosen numbers, too.
    """
    made, found = target(tmp_path / "there")
    write_task(made.task(found, "sort"), tmp_path / "task")
    task = load_task(tmp_path / "task")
    assert task.parameters
    assert set(task.parameters.space) == {"CUTOFF", "Sorter_sort_chunk", "Sorter_sort_ratio", "sort_most"}
    assert task.search.proposer == "tpe"
    assert tuple(task.editable) == (task.parameters.file,)
    assert task.guards[0].command[1] == "PYTHONPATH=blastdoor_parameters:src:."
    assert task.trial.env["PYTHONPATH"] == "/work/src/blastdoor_parameters:/work/src/src:/work/src"


def test_a_point_is_in_force(tmp_path: Path) -> None:
    """What is loaded has the numbers of the point, and the repository's own files are as they were."""
    made, found = target(tmp_path / "there")
    files = made.task(found, "sort").files
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    space = tmp_path / "workspace/blastdoor_parameters/point.json"
    as_it_was = json.loads(space.read_text())
    assert as_it_was == {"CUTOFF": 24, "Sorter_sort_chunk": 16, "Sorter_sort_ratio": 0.5, "sort_most": 3}
    space.write_text(json.dumps({"CUTOFF": 99, "Sorter_sort_chunk": 2, "sort_most": 1}))
    env = {"PYTHONPATH": "blastdoor_parameters:src", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-c", PRINT]
    said = subprocess.check_output(words, cwd=tmp_path / "workspace", env=env, timeout=300)
    assert json.loads(said) == [99, 2, 0.5, -3, "x", True, [99]]
    assert (tmp_path / "workspace/src/sort.py").read_text() == SORT


KINDS = """
from dataclasses import dataclass

SCALE = 2.0
WHOLE = 2
SEED = 14695981039346656037
NEVER = 1e308
ENDLESS = 1e999
TWICE = 3
TWICE = TWICE * 2


@dataclass
class Kept:
    x: int


def scaled():
    return [SCALE, WHOLE, SEED, NEVER, ENDLESS, TWICE, Kept.__annotations__["x"] is int]
"""


def test_the_baseline_is_what_it_was(tmp_path: Path) -> None:
    """The point as it is written gives the answers of the code as it was, to the type: 2.0 stays a float, and is
    searched below and above. Numbers around which there is no range are no part of the space.
    """
    there = repository(tmp_path / "there", {"kinds.py": KINDS})
    pool = Pool(b"", 3, 9, (0.5,), 6)
    function = FunctionTarget("kinds", "scaled", "kinds.py", 1.0, 9, ("kinds.py::scaled",), (), pool)
    found = ParameterTarget(function, space_of(function, there))
    write_task(Made(there, (), (), (), 512).task(found, "kinds"), tmp_path / "task")
    task = load_task(tmp_path / "task")
    assert task.parameters
    assert task.parameters.space == {
        "SCALE": Float(low=0.25, high=16.0, log=True),
        "WHOLE": Int(low=1, high=16),
        "TWICE": Int(low=1, high=24),
    }
    words = [sys.executable, "-c", "import kinds; print(kinds.scaled())"]
    said = [
        subprocess.check_output(words, cwd=tmp_path / "task/workspace", env={"PYTHONPATH": path}, timeout=300)
        for path in ("blastdoor_parameters:.", ".")
    ]
    assert said[0] == said[1]
