"""What `make test` says in the end of the time that it took."""

import json
import tomllib
from pathlib import Path

import suite_times

TIMES = [
    ("tests/docs/test_a.py::test_one", 1.0, 0.0),
    ("tests/docs/test_a.py::test_one", 0.5, 1.2),  # its teardown
    ("tests/sandbox/runc/test_b.py::test_two[x/y]", 9.0, 3.0),
    ("tests/sandbox/test_c.py::test_three", 0.25, 0.0),
    ("tests/docs/test_d.py::test_four", None, 0.0),
]
BUDGET = 'minutes = 2\n[seconds]\n"tests/docs" = 1\n"tests/sandbox" = 1\n"tests/sandbox/runc" = 10\n'


def test_summary(tmp_path: Path) -> None:
    """By folder beside the budget, the slowest, what was left out, and each budget that was passed."""
    (tmp_path / "times").write_text("".join(f"{json.dumps(each)}\n" for each in TIMES))
    (tmp_path / "budget").write_text(BUDGET)
    lines = list(suite_times.summary(tmp_path / "times", 2.5, tmp_path / "budget"))
    assert lines[0] == "3 tests took 2.5 min, 0.2 min of workers"
    assert [line.split() for line in lines[2:5]] == [
        ["9", "3", "10", "tests/sandbox/runc"],
        ["2", "1", "1", "tests/docs"],
        ["0", "0", "1", "tests/sandbox"],
    ]
    assert lines[6].split() == ["9.0", "tests/sandbox/runc/test_b.py::test_two[x/y]"]
    assert lines[10] == "  tests/docs/test_d.py"
    assert lines[11:] == [
        "over budget: 2.5 min in all, 2 are allowed",
        "over budget: tests/docs, 2 s where 1 are allowed",
    ]


def test_every_folder_has_a_budget() -> None:
    """A new folder of tests cannot grow unseen."""
    kept = tomllib.loads(suite_times.BUDGET.read_text())["seconds"]
    tests = suite_times.BUDGET.parent
    files = [path.relative_to(tests.parent).as_posix() for path in tests.rglob("test_*.py")]
    assert {suite_times.folder(file) for file in files} == set(kept)
