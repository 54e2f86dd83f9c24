"""Regions: parts of a file that a change may touch, and nothing outside of them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.change import File, Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.canonical import difference
from orchestrator.change.regions import BadRegion, Region, outside, spans
from tests.lag import least_time
from tests.orchestrator.change.samples import whole

MARKED = """import math

CASES = [1, 2, 3]
# EVOLVE-BLOCK-START
def solve(x):
    return x
# EVOLVE-BLOCK-END


def main():
    return [solve(x) for x in CASES]
"""
DEFINED = """import functools

CASES = [1, 2, 3]


@functools.cache
def solve(x):
    def inner(y):
        return y
    return inner(x)
    # nothing more


class Judge:
    def solve(self, x):
        return x
"""
BY_MARKS = Policy(editable=("a.py:EVOLVE-BLOCK",))
BY_NAME = Policy(editable=("a.py::solve",))


def changed(old: str, new: str, policy: Policy = BY_MARKS) -> Tree:
    return apply_text(Tree.of({"a.py": old}), whole("a.py", new), policy)


def refused(old: str, new: str, policy: Policy = BY_MARKS) -> str:
    with pytest.raises(Refusal) as caught:
        changed(old, new, policy)
    assert caught.value.reason is Reason.NOT_EDITABLE
    message = str(caught.value)
    assert message.isprintable()
    assert f"of this file you may edit: {', '.join(policy.editable)}" in message
    return message


@pytest.mark.parametrize(
    ("policy", "old", "replaced", "by"),
    [
        (BY_MARKS, MARKED, "return x\n", "y = 2 * x\n    return y\n"),
        (BY_MARKS, MARKED, "def solve(x):\n    return x\n", ""),
        (BY_MARKS, MARKED.replace("\n", "\r\n"), "return x\r\n", "return 2 * x\r\n"),
        (BY_MARKS, "\ufeff" + MARKED, "return x\n", "return 2 * x\n"),
        (BY_NAME, DEFINED, "return inner(x)", "return 2 * inner(x)"),
        (BY_NAME, DEFINED, "@functools.cache\n", ""),
        (BY_NAME, DEFINED, "@functools.cache\n", "@functools.cache\n@functools.lru_cache(None)\n"),
        (BY_NAME, DEFINED, "def inner(y)", "def solve(y)"),
        (BY_NAME, DEFINED, "# nothing more", "# a comment at the end\n    # of the function"),
        (Policy(editable=("a.py::Judge.solve",)), DEFINED, "return x\n", "return x + 1\n"),
        (Policy(editable=("a.py::Judge",)), DEFINED, "(self, x)", "(self, x, y=1)"),
        (Policy(editable=("*.py", "a.py:EVOLVE-BLOCK")), MARKED, "return x\n", "return 3 * x\n"),
        (Policy(editable=("a.c:FAST",)), "/* FAST-START */\nint x;\n/* FAST-END */\n", "int x", "int y"),
    ],
)
def test_changes_inside(policy: Policy, old: str, replaced: str, by: str) -> None:
    """What lies inside a region may become anything; line ends and a mark of the encoding stay as they are."""
    name = policy.patterns[-1]
    assert replaced in old
    before = Tree({name: File(old.encode())})
    after = Tree({name: File(old.replace(replaced, by, 1).encode())})
    assert apply_text(before, difference(before, after), policy) == after


OUTSIDE = [
    ("CASES = [1, 2, 3]", "CASES = [1]", "line 3 of the new file is outside"),
    ("    return [solve", "    return []  # [solve", "line 11 of the new file is outside"),
    ("# EVOLVE-BLOCK-START\n", "", "the mark EVOLVE-BLOCK-END of line 6 has no EVOLVE-BLOCK-START before it"),
    ("# EVOLVE-BLOCK-END\n", "", "the mark EVOLVE-BLOCK-START of line 4 has no EVOLVE-BLOCK-END behind it"),
    ("import math\n", "import math\n# EVOLVE-BLOCK-START\n", "of line 2 is followed by another one in line 5"),
    ("    return x\n", "    return x\n# EVOLVE-BLOCK-END\n", "of line 8 has no EVOLVE-BLOCK-START before it"),
    ("    return x\n", "    return x\n# EVOLVE-BLOCK-END\n# EVOLVE-BLOCK-START\n", "2 regions instead of 1"),
    ("# EVOLVE-BLOCK-END\n\n\ndef main():\n", "\n\ndef main():\n# EVOLVE-BLOCK-END\n", "outside its regions"),
    ("    return x\n", '    return x\n"""\n', "can no longer be read as Python"),
    ("    return x\n", "    return 'EVOLVE-BLOCK-END'\n", "of line 7 has no EVOLVE-BLOCK-START before it"),
    ("    return x\n", "    return x\r    return 2\n", "carriage return within a line"),
    ("# EVOLVE-BLOCK-START\n", "# EVOLVE-BLOCK-START EVOLVE-BLOCK-END\n", "line 4 has two marks"),
]


@pytest.mark.parametrize(("replaced", "by", "told"), OUTSIDE)
def test_T93_a_change_outside_the_marks_is_refused(replaced: str, by: str, told: str) -> None:
    """Test data, code around, and the marks themselves are out of reach, wherever the new marks seem to be."""
    assert replaced in MARKED
    assert told in refused(MARKED, MARKED.replace(replaced, by, 1))
    # A region that opens a text which ends outside would take what stands there with it.
    old = MARKED + '# """\n'
    assert "is not a comment of its own" in refused(old, old.replace("    return x\n", '    return x\nz = """\n', 1))


@pytest.mark.parametrize(
    ("replaced", "by", "told"),
    [
        ("CASES = [1, 2, 3]", "CASES = []", "line 3 of the new file is outside"),
        ("    # nothing more\n", "    # nothing more\n\n\nCASES = []\n", "outside its regions"),
        ("def solve(x):", "def solved(x):", "it has no function or class solve"),
        ("    # nothing more\n", "\n\ndef solve(x):\n    return 1\n", "more than once, in the lines 7 and 13"),
        ("    # nothing more\n", "\nif True:\n    def solve(x):\n        return 1\n", "more than once"),
        ("    # nothing more\n", "\n\nsolve = 3\n", "outside its regions"),
        ("    return inner(x)\n", "    return inner(x\n", "can no longer be read as Python"),
        ("    def solve(self, x)", "    def solved(self, x)", "line 15 of the new file is outside"),
        ("@functools.cache", "@(\n    functools.cache\n)", "outside its regions"),
    ],
)
def test_T93_a_change_outside_a_function_is_refused(replaced: str, by: str, told: str) -> None:
    """A function's region ends where it does: no statement beside it, no second one of its name, no rename."""
    assert replaced in DEFINED
    assert told in refused(DEFINED, DEFINED.replace(replaced, by, 1), BY_NAME)


def test_a_file_with_regions_stays() -> None:
    """It is neither deleted nor renamed; a copy of it is a file like any other. Where the task came by its regions
    later, the line says that they were not there before.
    """
    tree, policy = Tree.of({"a.py": MARKED}), Policy(editable=("a.py:EVOLVE-BLOCK", "b.py"))
    for after in ({}, {"b.py": MARKED}):
        with pytest.raises(Refusal, match=r"not editable: a\.py: it has regions, so it stays where it is"):
            apply_text(tree, difference(tree, Tree.of(after)), policy)
    assert set(apply_text(tree, whole("b.py", MARKED), policy)) == {"a.py", "b.py"}
    assert "it had no such region before: it has no marks" in refused("x = 1\n", "x = 2\n")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("*.py:EVOLVE-BLOCK", "write its exact path before the colon"),
        ("a.py:", "this is not a region"),
        ("a.py::", "this is not a region"),
        ("a.py:no mark", "this is not a region"),
        ("a.py:::solve", "this is not a region"),
        ("a.py::solve()", "this is not a region"),
        ("a.c::solve", "functions are found in Python files only"),
        ("/a.py:EVOLVE-BLOCK", "unsafe name"),
    ],
)
def test_entries_that_are_none(entry: str, told: str) -> None:
    """A wrong entry says what to write."""
    with pytest.raises(ValueError, match=r"write|use") as caught:
        Policy(editable=(entry,))
    assert told in str(caught.value)


def test_whole_and_part_of_one_file() -> None:
    """A file is editable as a whole or in part, each part is named once, and none lies within another."""
    with pytest.raises(ValueError, match=r"a\.py: is editable as a whole too"):
        Policy(editable=("a.py", "a.py:X"))
    with pytest.raises(ValueError, match=r"a\.py: names a region twice"):
        Policy(editable=("a.py:X", "a.py:X"))
    with pytest.raises(BadRegion, match="overlap"):
        spans("a.py", MARKED.encode(), (Region("EVOLVE-BLOCK"), Region("solve", definition=True)))


@pytest.mark.parametrize(
    ("data", "region", "told"),
    [
        (b"# X-START\n\xff\n# X-END\n", "X", "it is not UTF-8"),
        (b"# X-START\n\0\n# X-END\n", "X", "it has a NUL in it"),
        (b"# -*- coding: utf-7 -*-\n# X-START\n# X-END\n", "X", "it declares the encoding utf-7"),
        (b"# X-START\n# X-START\n# X-END\n# X-END\n", "X", "is followed by another one in line 2"),
        (b"x = '# X-START'\n# X-END\n", "X", "is not a comment of its own"),
        (b"def f(): pass\n", "::g", "it has no function or class g"),
        (b"def f(:\n", "::f", "it cannot be read as Python"),
    ],
)
def test_files_without_usable_regions(data: bytes, region: str, told: str) -> None:
    """Each says in one line what is wrong with the file."""
    one = Region(region.removeprefix("::"), definition=region.startswith("::"))
    with pytest.raises(BadRegion) as caught:
        spans("a.py", data, (one,))
    assert told in str(caught.value)


def test_models_are_told() -> None:
    """Rules name the marks or the function, and that all else stays."""
    told = Policy(editable=("a.py:EVOLVE-BLOCK", "b.py::solve", "c.py")).told()
    assert "Of a.py you may change only the lines between the marks EVOLVE-BLOCK-START and EVOLVE-BLOCK-END" in told
    assert "Of b.py you may change only the definition of solve, whose name stays." in told
    assert "Of c.py" not in told
    assert "byte for byte" in told


LINES = st.lists(
    st.sampled_from(
        [
            *("x = 1", "def solve(x):", "    return x", "    def solve(x): return 2", "@cache", "class A:"),
            *("    def solve(self): pass", "# X-START", "    # X-END", '"""', "s = '# X-END'", "    # note", ""),
            *("if x:", "x = (", ")", "x = 2 \\"),
        ]
    ),
    max_size=14,
)
PARTS = st.sampled_from(
    [(Region("X"),), (Region("solve", definition=True),), (Region("X"), Region("A.solve", definition=True))]
)


@given(old=LINES, at=st.integers(0, 200), length=st.integers(0, 30), put=LINES, regions=PARTS)
def test_no_accepted_splice_differs_outside(
    old: list[str], at: int, length: int, put: list[str], regions: tuple[Region, ...]
) -> None:
    """Whatever was accepted is the old file with other bytes in its regions, and in nothing else."""
    text = "y = 0\n# X-START\n" + "\n".join(old) + "\n# X-END\nclass A:\n    def solve(self): pass\nz = 0\n"
    check_accepted(text, text[:at] + "\n".join(put) + text[at + length :], regions)


@given(old=LINES, new=LINES, outside_too=st.booleans())
def test_accepted_when_and_only_when_inside(old: list[str], new: list[str], outside_too: bool) -> None:
    """In a file of another language: any lines but marks may come between the marks, and nothing else may change."""
    body, put = ([line for line in lines if "X-" not in line] for lines in (old, new))
    marks = len(new) - len(put)
    before, after = (
        Tree.of({"a.c": "\n".join(["y = 0", "// X-START", *lines, "// X-END", f"z = {end}", ""])})
        for lines, end in ((body, 0), (new, int(outside_too)))
    )
    if before == after:
        return
    try:
        taken = apply_text(before, difference(before, after), Policy(editable=("a.c:X",)))
    except Refusal:
        taken = None
    assert (taken == after) == (not outside_too and not marks)


def check_accepted(old: str, new: str, regions: tuple[Region, ...]) -> None:
    """As a diff and as a whole file: both are taken or both are not, and of what is taken the outside is as it was."""
    policy = Policy(editable=tuple(f"a.py{region}" for region in regions))
    before, after = Tree.of({"a.py": old}), Tree.of({"a.py": new})
    if old == new or not new.endswith("\n"):
        return
    taken: list[Tree | Reason] = []
    for text in (difference(before, after), f"File: a.py\n````````\n{new}````````\n"):
        try:
            taken.append(apply_text(before, text, policy))
        except Refusal as refusal:
            taken.append(refusal.reason)
    assert taken[0] == taken[1]
    if taken[0] is not Reason.NOT_EDITABLE:
        assert taken[0] == after
        kept = outside("a.py", before["a.py"].data, regions)
        assert kept == outside("a.py", after["a.py"].data, regions)
        assert re.fullmatch(b".*".join(map(re.escape, kept)), after["a.py"].data, re.DOTALL)


def test_t82_a_text_of_many_pieces() -> None:
    """What says of each of its pieces that it is as long as the whole is not walked piece by line: 20,000 of each."""
    inside = 'text = f"""\n' + "{a}\n" * 20_000 + '"""\n'
    data = MARKED.replace("def solve", inside + "def solve").encode()
    regions = (Region("EVOLVE-BLOCK"),)
    assert len(spans("solve.py", data, regions)) == 1
    assert least_time(lambda: spans("solve.py", data, regions), 6) < 6
