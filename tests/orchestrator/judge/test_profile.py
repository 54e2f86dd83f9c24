"""What a run of the baseline tells of its own code: by our own module, and as bytes that anybody may have written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.change import Tree
from orchestrator.domain.profile import FileProfile, Profile
from orchestrator.judge.helpers import profiler
from orchestrator.judge.profile import read_profile

PROGRAM = """import multiprocessing


def dead(y):
    z = y + 1
    return z


def hot(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def at_work(n):
    return n + 1


if __name__ == "__main__":
    print(hot(3_000_000))
    child = multiprocessing.get_context("fork").Process(target=at_work, args=(1,))
    child.start()
    child.join()
    if child.exitcode:
        dead(1)
"""
TREE = Tree.of({"f.py": b"a = 1\n" * 20, "g.py": b"b = 1\n"})


def told(**changes: Any) -> bytes:
    file = {"reached": [[1, 3]], "unknown": [], "never": [[4, 5]], "heat": [[2, 500]]}
    return json.dumps(
        {"profile": 1, "samples": 100, "ms": 1000, "files": {"f.py": {**file, **changes.pop("file", {})}}, **changes}
    ).encode()


def test_what_the_module_sees(tmp_path: Path) -> None:
    """Lines that run, those that never do, where the time goes, and what a forked worker does, which ends in its own
    way.
    """
    for name, file in profiler().items():
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own" / name).write_bytes(file.data)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "f.py").write_text(PROGRAM)
    env = {
        "PYTHONPATH": str(tmp_path / "own"),
        "BLASTDOOR_PROFILE": str(tmp_path / "out"),
        "BLASTDOOR_PROFILE_ROOT": str(tmp_path / "src"),
    }
    subprocess.run([sys.executable, "f.py"], cwd=tmp_path / "src", env={**os.environ, **env}, check=True)
    left = [it.read_bytes() for it in sorted((tmp_path / "out").glob("*.json"))]
    assert len(left) == 2
    found = read_profile(left, Tree.of({"f.py": PROGRAM.encode()})).files["f.py"]
    assert found.reaches(5, 6) is False
    assert found.reaches(17, 17) is True
    assert found.reaches(26, 26) is False
    assert found.share(11, 12) > 0.5
    assert found.share(5, 6) == 0


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"\xff",
        b"[]",
        b"{",
        b'{"profile": 2, "samples": 1, "ms": 1, "files": {}}',
        told(more=1),
        told(samples=-1),
        told(ms=10**12),
        told(file={"reached": [[1, 10**9]]}),
        told(file={"reached": [[1, 20], [1, 20]]}),
        told(file={"reached": [[5, 4]]}),
        told(file={"heat": [[0, 1]]}),
        told(file={"heat": [["a", 1]]}),
        told(file={"never": [[1, 1]] * 20_001}),
        b"[" * 100_000,
        b" " * (1 << 20) + b"{}",
    ],
)
def test_what_is_no_profile(bad: bytes) -> None:
    """It is left out, and what others told stays."""
    assert read_profile([bad], TREE) == Profile()
    assert read_profile([bad, told()], TREE) == read_profile([told()], TREE)


def test_processes_together() -> None:
    """What one reached is reached; heat is a share of all their time. Files and lines that are not there are none."""
    other = {"reached": [[4, 4], [400, 500]], "unknown": [[5, 5]], "heat": [[2, 500], [900, 5]]}
    more = json.loads(told(file=other))
    more["files"]["../../etc/passwd"] = more["files"]["f.py"]
    found = read_profile([told(), json.dumps(more).encode()], TREE)
    assert found == Profile(samples=200, files={"f.py": FileProfile(reached=((1, 4),), heat={2: 500})})


def test_lines_without_code_belong_to_what_is_above() -> None:
    """The second line of an expression is reached where its first is; before all of them, nothing is known."""
    profile = FileProfile(reached=((2, 2),), never=((5, 6),))
    assert [profile.reaches(line, line) for line in (1, 2, 3, 5, 8)] == [None, True, True, False, False]
    assert profile.reaches(2, 5) is True
