"""What a run of the baseline tells of its own code: by our own module, and as bytes that anybody may have written."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.change import Tree
from orchestrator.domain.profile import FileProfile, Profile
from orchestrator.judge.guest.blastdoor_profile import fitting
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


MANY = """import importlib
import sys

for number in range(80):
    importlib.import_module(f"m{number}")
sys.modules["m79"].work()
"""


def told(**changes: Any) -> bytes:
    file = {"reached": [[1, 3]], "unknown": [], "never": [[4, 5]], "heat": [[2, 500]]}
    return json.dumps(
        {"profile": 1, "samples": 100, "ms": 1000, "files": {"f.py": {**file, **changes.pop("file", {})}}, **changes}
    ).encode()


def traced(folder: Path, files: dict[str, str], own: Callable[[str], str] = str) -> list[bytes]:
    """What each process left of a run of f.py; `own` may change our module."""
    for name, file in profiler().items():
        (folder / "own").mkdir(exist_ok=True)
        (folder / "own" / name).write_text(own(file.data.decode()))
    (folder / "src").mkdir()
    for name, text in files.items():
        (folder / "src" / name).write_text(text)
    env = {
        "PYTHONPATH": str(folder / "own"),
        "BLASTDOOR_PROFILE": str(folder / "out"),
        "BLASTDOOR_PROFILE_ROOT": str(folder / "src"),
    }
    subprocess.run([sys.executable, "f.py"], cwd=folder / "src", env={**os.environ, **env}, check=True)
    return [it.read_bytes() for it in sorted((folder / "out").glob("*.json"))]


def test_what_the_module_sees(tmp_path: Path) -> None:
    """Lines that run, those that never do, where the time goes, and what a forked worker does, which ends in its own
    way.
    """
    left = traced(tmp_path, {"f.py": PROGRAM})
    assert len(left) == 2
    whole = read_profile(left, Tree.of({"f.py": PROGRAM.encode()}))
    assert not whole.cut
    found = whole.files["f.py"]
    assert found.reaches(5, 6) is False
    assert found.reaches(17, 17) is True
    assert found.reaches(26, 26) is False
    assert found.share(11, 12) > 0.5
    assert found.share(5, 6) == 0


def test_more_files_than_are_told(tmp_path: Path) -> None:
    """Those are kept where the time goes, in whatever order they were loaded, and that others are missing is told."""
    work = "def work():\n    total = 0\n    for at in range(2_000_000):\n        total += at\n    return total\n"
    files = {"f.py": MANY, **{f"m{number}.py": work for number in range(80)}}
    found = read_profile(traced(tmp_path, files), Tree.of({name: text.encode() for name, text in files.items()}))
    assert found.cut
    assert len(found.files) == 64
    assert found.files["m79.py"].share(2, 4) > 0.5


def test_more_functions_than_are_traced(tmp_path: Path) -> None:
    """Of lines that were not seen then, nothing is known."""
    program = "".join(f"def f{number}():\n    return 1\n\n\nf{number}()\n" for number in range(600))
    left = traced(tmp_path, {"f.py": program}, lambda own: own.replace("_CODES = 20_000", "_CODES = 500"))
    found = read_profile(left, Tree.of({"f.py": program.encode()}))
    assert found.cut
    assert all(found.files["f.py"].reaches(line, line) is not False for line in range(1, 5 * 600 + 1))


def test_more_than_is_read(tmp_path: Path) -> None:
    """A profile for which there is no room is cut to what is hottest, by itself, the same each time, and says so: the
    hot file is told, a file that is larger than all room by its hottest lines, of which no other is called unreached,
    and the rest is left out.
    """
    many = "".join(f"if len('{line}') > 9:\n    print({line})\n" for line in range(400))
    work = "def work(n):\n    total = 0\n    for at in range(n):\n        total += at\n    return total\n"
    busy = work + "".join(f"work({12_000 + line})\n\n" for line in range(40)) + many
    files = {"f.py": "import busy, small\n\nsmall.work(5_000_000)\n", "small.py": work, "busy.py": busy, "z.py": many}
    files["f.py"] += "import z\n"
    room = 1500
    left = traced(tmp_path, files, lambda own: own.replace("_BYTES = 1 << 20", f"_BYTES = {room}"))
    assert [len(it) <= room for it in left] == [True]
    found = read_profile(left, Tree.of({name: text.encode() for name, text in files.items()}))
    assert found.cut
    assert "z.py" not in found.files or found.files["z.py"].heat
    assert found.files["small.py"].share(3, 4) > 0.5
    assert found.files["busy.py"].share(1, 85) > 0
    assert all(found.files["busy.py"].reaches(line, line) is not False for line in range(1, 900))


def test_what_has_room() -> None:
    """A file that is too large is told by as many of its hottest lines as have room, and left out where not one has, or
    where it has none.
    """
    never = [[line, line] for line in range(1, 400, 2)]
    cold: dict[str, Any] = {"reached": [], "unknown": [], "never": never, "heat": []}
    warm = {**cold, "heat": [[2, 7]]}
    hot = {**cold, "heat": [[2 * line, 100 - line] for line in range(1, 40)]}
    one = {"reached": [[2, 2]], "unknown": [[1, 399]], "never": [], "heat": [[2, 7]]}
    room = len(json.dumps(one)) + len('"f.py"') + 4
    assert fitting({"f.py": cold}, 10_000) == {"f.py": json.dumps(cold)}
    assert fitting({"f.py": cold}, 1000) == {}
    assert {path: json.loads(text) for path, text in fitting({"f.py": warm}, room).items()} == {"f.py": one}
    assert fitting({"f.py": warm}, room - 1) == {}
    found = fitting({"f.py": hot, "g.py": cold, "h.py": warm}, 700)
    assert list(found) == ["f.py", "h.py"]
    assert json.loads(found["f.py"])["heat"] == hot["heat"][:19]


def test_what_one_process_could_not_tell() -> None:
    """A file that one of them left out for want of room may have been reached there; one that it tells of was not."""
    other = json.dumps({**json.loads(told()), "cut": True, "files": {"g.py": json.loads(told())["files"]["f.py"]}})
    found = read_profile([told(), other.encode()], TREE)
    assert found.cut
    assert found.files["f.py"] == FileProfile(reached=((1, 3),), heat={2: 250})
    assert read_profile([told(cut=True)], TREE).files == read_profile([told()], TREE).files


@pytest.mark.parametrize("many", [32, 33])
def test_more_processes_than_are_read(many: int) -> None:
    """What the others reached is not known, so nothing is called unreached."""
    found = read_profile([told()] * many, TREE)
    assert found.cut == (many == 33)
    assert (found.files["f.py"].reaches(4, 5) is not False) == found.cut


def test_run_that_was_ended() -> None:
    """It might have come to the rest."""
    found = read_profile([told()], TREE, ended=True)
    assert found.cut
    assert found.files["f.py"] == FileProfile(reached=((1, 3),), heat={2: 500})


@pytest.mark.parametrize(
    "bad",
    [
        *(b"", b"\xff", b"[]", b"{", b'{"profile": 2, "samples": 1, "ms": 1, "files": {}}', told(more=1)),
        *(told(samples=-1), told(cut="yes"), told(cut=1), told(ms=10**12), told(file={"reached": [[1, 10**9]]})),
        *(told(file={"reached": [[1, 20], [1, 20]]}), told(file={"reached": [[5, 4]]}), told(file={"heat": [[0, 1]]})),
        *(told(file={"heat": [["a", 1]]}), told(file={"never": [[1, 1]] * 20_001}), b"[" * 100_000),
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
