"""Which functions of a file a judge may call."""

import subprocess
import sys
from pathlib import Path

from orchestrator.judge import guest

SOLVE = """
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

@lru_cache
def solve(x):
    return x

def _private(x):
    return x

class Solver:
    def __call__(self, x):
        return x

made = Solver()
limit = 3
"""
ASK = "from pathlib import Path; import blastdoor_candidate as c; print(*sorted(c._functions_of(Path('solve.py'))))"


def test_only_what_the_file_defines(tmp_path: Path) -> None:
    """What it imports, keeps private or cannot be called is not served."""
    (tmp_path / "solve.py").write_text(SOLVE)
    env = {"PYTHONPATH": str(Path(next(iter(guest.__path__))))}
    told = subprocess.run(
        [sys.executable, "-c", ASK], cwd=tmp_path, env=env, capture_output=True, check=True, timeout=60
    )
    assert told.stdout.decode().split() == ["Solver", "made", "solve"]


PACKAGE = {
    "program/__init__.py": "from json import dumps\nfrom .core import solve\nfrom .random import draw as drawn\n",
    "program/core.py": "from . import random\nfrom .deep.inner import twice\ndef solve(x):\n    return twice(x)\n",
    "program/random.py": "def draw():\n    return 4\n",
    "program/deep/__init__.py": "",
    "program/deep/inner.py": "from ..random import draw\ndef twice(x):\n    return 2 * x * draw()\n",
}


def test_a_package(tmp_path: Path) -> None:
    """Its files import one another as in any package, and none is taken for a module of Python's own. What the package
    offers of its own files is served, what it takes from elsewhere is not; a file within it can be served, too.
    """
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    env = {"PYTHONPATH": str(Path(next(iter(guest.__path__))))}
    for file, served in [("program/__init__.py", ["drawn", "solve"]), ("program/deep/inner.py", ["twice"])]:
        ask = ASK.replace("solve.py", file) + "; import random; random.seed(1)"
        told = subprocess.run(
            [sys.executable, "-c", ask], cwd=tmp_path, env=env, capture_output=True, check=True, timeout=60
        )
        assert told.stdout.decode().split() == served


def test_a_file_that_only_lies_in_a_package(tmp_path: Path) -> None:
    """One that imports nothing from its package is loaded alone, as if there were none."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("raise RuntimeError('for others')\n")
    (tmp_path / "program" / "solve.py").write_text(SOLVE)
    env = {"PYTHONPATH": str(Path(next(iter(guest.__path__))))}
    ask = ASK.replace("solve.py", "program/solve.py")
    told = subprocess.run(
        [sys.executable, "-c", ask], cwd=tmp_path, env=env, capture_output=True, check=True, timeout=60
    )
    assert told.stdout.decode().split() == ["Solver", "made", "solve"]


DRAW = """
from blastdoor_relay import Candidate
one = Candidate.__new__(Candidate)
one.seed, one._drawn = 5, 0
first, second = one.rng(), one.rng()
print(first.random(), second.random(), first.getstate() == second.getstate())
"""


def test_a_generator_for_each_question(tmp_path: Path) -> None:
    """Drawn from the seed alone, so that they can be drawn again, and none continues another."""
    env = {"PYTHONPATH": str(Path(next(iter(guest.__path__))))}
    told = [
        subprocess.run([sys.executable, "-c", DRAW], cwd=tmp_path, env=env, capture_output=True, check=True, timeout=60)
        for _ in range(2)
    ]
    assert told[0].stdout == told[1].stdout
    first, second, same = told[0].stdout.decode().split()
    assert first != second
    assert same == "False"
