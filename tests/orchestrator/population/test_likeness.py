"""What is the same change in other words, in several languages, and what only looks like one."""

import pytest

from orchestrator.change import Tree
from orchestrator.population.likeness import MOST_BYTES, SKETCH, Likeness, alike, likeness, read, written
from tests.lag import least_time

PYTHON = """def f(values, share):
    total = 0.5
    for value in values:
        total = total + share * value
    return total
"""
C = "int f(int n) {\n  int total = 16;\n  for (int i = 0; i < n; i++) total += i;\n  return total;\n}\n"
JS = "function f(n) {\n  let total = 16\n  for (let i = 0; i < n; i++) total += i\n  return total\n}\n"
RUST = "fn f(n: u32) -> u32 {\n    let mut total = 16;\n    for i in 0..n { total += i; }\n    total\n}\n"
SHELL = "total=16\nfor i in 1 2 3; do\n  total=$((total + i))\ndone\necho $total\n"
SQL = "SELECT a, SUM(b) FROM t WHERE c > 1.50 GROUP BY a;\n"


def of(path: str, before: str, after: str) -> Likeness:
    root = Tree.of({path: before, "other.txt": "same"})
    return likeness(root, root, Tree.of({path: after, "other.txt": "same"}))


SAME = [
    ("a.py", PYTHON, PYTHON.replace("    total = 0.5", "    # from here\n\n    total  =  .50  # half")),
    ("a.py", PYTHON, PYTHON.replace("total", "sum_of_all").replace("value in", "it in").replace("* value", "* it")),
    ("a.py", PYTHON, PYTHON.replace("):\n", '):\n    """What it does."""\n', 1)),
    ("a.py", PYTHON, PYTHON.replace("total + share * value", "(total + (share * value))")),
    ("a.c", C, C.replace("total", "sum").replace("16", "0x10").replace("{\n", "{ /* here */\n\n")),
    ("a.c", C, C.replace("\n", " ").replace("  ", "   ")),
    ("a.js", JS, JS.replace("total", "sum").replace("16", "1_6 // sixteen")),
    ("a.rs", RUST, RUST.replace("total", "sum").replace("16;", "16; // so many")),
    ("a.sh", SHELL, SHELL.replace("do\n", "do   # each\n\n")),
    ("a.sql", SQL, SQL.replace("FROM", "\n-- all\nFROM").replace("1.50", "1.5")),
    ("a.json", '{"a": 1.50, "b": [1, 2]}', '{\n  "a": 1.5,\n  "b": [1,2]\n}\n'),
    ("notes", "some text  \n", "some text\n"),
]
ANOTHER = [
    ("a.py", PYTHON, PYTHON.replace("0.5", "0.51")),
    ("a.py", PYTHON, PYTHON.replace("0.5", "1")),
    ("a.py", PYTHON, PYTHON.replace("share * value", "value * share")),
    ("a.py", PYTHON, PYTHON.replace("    return", "        return")),
    ("a.py", PYTHON, PYTHON.replace("values, share", "values, part").replace("share *", "part *")),
    ("a.py", "def f(a, b):\n    return max(a, b)\n", "def f(a, b):\n    return min(a, b)\n"),
    ("a.py", "def f(:\n  x = 1\n", "def f(:\n    x = 1\n"),
    ("a.c", C, C.replace("i < n", "i <= n")),
    ("a.c", C, "#define N 3\n" + C),
    ("a.c", "int f(int a) { return sin(a); }", "int f(int a) { return cos(a); }"),
    ("a.js", JS, JS.replace("16", "16.0")),
    ("a.sh", SHELL, SHELL.replace("total", "sum")),
    ("a.sh", "#!/bin/sh\nls\n", "#!/bin/bash\nls\n"),
    ("a.yaml", "a:\n  b: 1\n", "a:\nb: 1\n"),
    ("notes", "some text\n", "some  text\nmore\n"),
]


@pytest.mark.parametrize(("path", "before", "after"), SAME)
def test_the_same_in_other_words(path: str, before: str, after: str) -> None:
    """Comments, blanks, layout, writing of numbers and names of locals change nothing."""
    assert before != after
    assert of(path, before, after).form == of(path, before, before).form


@pytest.mark.parametrize(("path", "before", "after"), ANOTHER)
def test_another_program(path: str, before: str, after: str) -> None:
    """What another value, order, function, name seen from outside or meaningful blank makes is not the same."""
    found = of(path, before, after)
    assert found.form != of(path, before, before).form
    assert found.sketch


@pytest.mark.parametrize(
    ("path", "text", "near"),
    [
        (
            "a.py",
            PYTHON,
            "best = None\n    best_at = -1\n    for at, it in enumerate(values):\n        {0} = it\n    total",
        ),
        ("a.js", JS, "let best = null\n  let best_at = -1\n  for (let k of n) {{\n    {0} = k\n  }}\n  let total"),
    ],
)
def test_near(path: str, text: str, near: str) -> None:
    """A long change with one token of it another is nearly the same; names that it brings itself do not count."""
    first = "total" if path.endswith("py") else "let total"
    one, other = (of(path, text, text.replace(first, near.format(name), 1)) for name in ("best", "best_at"))
    renamed = of(path, text, text.replace(first, near.format("best"), 1).replace("best", "top"))
    assert renamed == of(path, text, text.replace(first, near.format("best"), 1))
    assert one != other
    assert 0.6 < alike(one.sketch, other.sketch) < 1.0
    unlike = of(path, text, text.replace("return total", "return 2 * total"))
    assert alike(one.sketch, unlike.sketch) < 0.2


def test_the_change_counts_and_not_the_file() -> None:
    """Two different edits of one long file have next to nothing in common."""
    text = "".join(f"def f{at}(x):\n    return x + {at}\n\n\n" for at in range(200))
    one, other = (
        of("a.py", text, text.replace("x + 7\n", "x * 7\n")),
        of("a.py", text, text.replace("x + 70\n", "x - 70\n")),
    )
    assert alike(one.sketch, other.sketch) < 0.1


def test_by_which_way_does_not_matter_for_the_form() -> None:
    """The same tree has the same form whatever it was built on; the change is another one. Files and modes count."""
    root, half = Tree.of({"a.c": C}), Tree.of({"a.c": C.replace("16", "17")})
    whole = Tree.of({"a.c": C.replace("16", "17").replace("i < n", "i <= n")})
    direct, late = likeness(root, root, whole), likeness(root, half, whole)
    assert direct.form == late.form
    assert direct.sketch != late.sketch
    assert likeness(root, half, root).form == likeness(root, root, root).form
    trees = (Tree.of(dict.fromkeys(names, C)) for names in (["a.c"], ["a.c", "b.c"], ["a", "b"]))
    assert len({likeness(root, root, tree).form for tree in trees}) == 3


def test_large_changes_are_sketched() -> None:
    """A sketch has a bounded size, tells nearly the share that a whole comparison would, and survives a ledger."""
    root = Tree.of({"a.txt": ""})
    lines = [f"word{at} other{at} third{at}\n" for at in range(1000)]
    one = likeness(root, root, Tree.of({"a.txt": "".join(lines[:900])}))
    other = likeness(root, root, Tree.of({"a.txt": "".join(lines[100:])}))
    assert len(one.sketch) == len(other.sketch) == SKETCH
    assert abs(alike(one.sketch, other.sketch) - 0.8) < 0.15
    assert read(written(one.sketch)) == one.sketch
    assert read(written(())) == ()


@pytest.mark.parametrize(
    "hostile",
    [
        b"\0" * 1000,
        b"\xff\xfe" * 1000,
        b'"\\"' * 20_000,
        b"'" * 60_001,
        b"/*" * 30_000,
        b"`" * 60_001,
        b"(" * 30_000,
        b"x = " + b"-" * 30_000 + b"1",
        b"9" * 60_000,
        b"a.b" * 20_000,
        b"\n\t" * 30_000,
        b"x" * (MOST_BYTES + 1),
        "\u2028\U0001d4d0²٣".encode() * 2_000,
    ],
    ids=lambda it: repr(it[:6]),
)
@pytest.mark.parametrize("path", ["a.py", "a.js"])
def test_t82_hostile_text_costs_little(path: str, hostile: bytes) -> None:
    """Whatever a change holds is read in processor time that grows with its bytes, and raises nothing."""
    root, tree = Tree.of({path: "x = 1\n"}), Tree.of({path: hostile})
    assert least_time(lambda: likeness(root, root, tree), 10) < 10
    assert len(likeness(root, root, tree).sketch) <= SKETCH
