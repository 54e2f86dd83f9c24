"""How large a change is: lines taken out and put in."""

import pytest

from orchestrator.change import File, Tree
from orchestrator.change.size import lines_changed

ROOT = Tree.of({"a.py": "one\ntwo\nthree\n", "b.txt": "b\n"})


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        ({}, 0),
        ({"a.py": "one\n2\nthree\n"}, 2),
        ({"a.py": "one\ntwo\nthree\nfour\n"}, 1),
        ({"a.py": "one\n"}, 2),
        ({"c.py": "1\n2\n3\n"}, 3),
        ({"c.py": ""}, 1),
        ({"a.py": "one\ntwo\nthree\n", "b.txt": "b"}, 2),
    ],
)
def test_lines(files: dict[str, str], lines: int) -> None:
    """Every line that is not shared counts once on its side; an empty new file is still a change."""
    assert lines_changed(ROOT, Tree({**ROOT, **Tree.of(files)})) == lines


def test_other_differences() -> None:
    """A file that is gone counts with its lines, a change of mode as one."""
    assert lines_changed(ROOT, Tree({"a.py": ROOT["a.py"]})) == 1
    assert lines_changed(ROOT, Tree({**ROOT, "b.txt": File(b"b\n", executable=True)})) == 1
