"""How large a change is: lines taken out and put in, and their bytes."""

import pytest

from orchestrator.change import File, Tree
from orchestrator.change.canonical import Size, compare

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
    assert compare(ROOT, Tree({**ROOT, **Tree.of(files)})).size().lines == lines


def test_other_differences() -> None:
    """A file that is gone counts with its lines, a change of mode as one."""
    assert compare(ROOT, Tree({"a.py": ROOT["a.py"]})).size() == Size(1, 2)
    assert compare(ROOT, Tree({**ROOT, "b.txt": File(b"b\n", executable=True)})).size() == Size(1, 0)


def test_bytes() -> None:
    """A line of 200 kB is one line, and 200,000 bytes; what both sides share is none."""
    assert compare(ROOT, Tree.of({"a.py": "one\n2\nthree\n", "b.txt": "b\n"})).size() == Size(2, 6)
    assert compare(ROOT, Tree({**ROOT, "c.py": File(b"x" * 200_000)})).size() == Size(1, 200_000)


def test_what_is_too_much_to_compare_counts_as_a_whole() -> None:
    """A candidate differs from the root by all the changes above it, so its size is never refused."""
    many = Tree({f"d/{number:03}": File((b"%03d" % number * 100 + b"\n") * 1000) for number in range(60)})
    size = compare(Tree({**ROOT, "d/000": File(b"same\n")}), Tree({**ROOT, **many})).size()
    assert size.lines == 60 * 1000 + 1
