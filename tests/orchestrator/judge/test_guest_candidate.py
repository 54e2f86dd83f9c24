"""Which functions of a file a judge may call."""

import subprocess
import sys
from pathlib import Path

from orchestrator.judge.helpers import GUEST

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
ASK = "from pathlib import Path; import blastdoor_candidate as c; print(*sorted(c.functions_of(Path({!r}))))"


def told(folder: Path, code: str) -> list[str]:
    """What a Python of its own says, which has the modules of a candidate's chamber."""
    env = {"PYTHONPATH": str(GUEST)}
    words = [sys.executable, "-c", code]
    return subprocess.check_output(words, cwd=folder, env=env, text=True, timeout=60).split()


def test_only_what_the_file_defines(tmp_path: Path) -> None:
    """What it imports, keeps private or cannot be called is not served. One that only lies in a package, and imports
    nothing from it, is loaded alone, as if there were none.
    """
    (tmp_path / "__init__.py").write_text("raise RuntimeError('for others')\n")
    (tmp_path / "solve.py").write_text(SOLVE)
    assert told(tmp_path, ASK.format("solve.py")) == ["Solver", "made", "solve"]
    assert told(tmp_path.parent, ASK.format(f"{tmp_path.name}/solve.py")) == ["Solver", "made", "solve"]


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
    for file, served in [("program/__init__.py", ["drawn", "solve"]), ("program/deep/inner.py", ["twice"])]:
        assert told(tmp_path, ASK.format(file) + "; import random; random.seed(1)") == served


DRAW = """
from types import SimpleNamespace
import blastdoor_relay
from blastdoor_values import encode
begun = b"B" + encode({"median": 0.0, "jitter": 0.0, "functions": []})
blastdoor_relay.Frames = lambda: SimpleNamespace(receive=lambda: (b"", memoryview(begun)))
one = blastdoor_relay.Candidate()
first, second = one.rng(), one.rng()
print(first.random(), second.random(), first.getstate() == second.getstate())
"""


def test_a_generator_for_each_question(tmp_path: Path) -> None:
    """Drawn from the seed alone, so that they can be drawn again, and none continues another."""
    code = "import os; os.environ['BLASTDOOR_SEED'] = '5'\n" + DRAW
    first, second, same = told(tmp_path, code)
    assert [first, second, same] == told(tmp_path, code)
    assert first != second
    assert same == "False"
