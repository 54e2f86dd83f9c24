"""Operators on a syntax tree: each changes something, says what, and leaves Python behind."""

import ast
import random

import pytest

from orchestrator.proposers.operators.code import Code
from orchestrator.proposers.operators.edit import Edit, read_description
from orchestrator.proposers.operators.hints import Donor, Hints
from orchestrator.proposers.operators.meaning import means_else
from orchestrator.proposers.operators.table import ON_CODE
from tests.orchestrator.proposers.operators.samples import SOLVER

OTHER = SOLVER.replace("total / 2", "total / 3").replace("* 0.25", "* 0.75").replace("total *= 0.9", "total *= 0.8")
BEFORE = SOLVER.replace("= 10.0", "= 5.0").replace("RATE = 0.5", "RATE = 0.25")
HINTS = Hints(donors=lambda: [Donor("1.2", OTHER.encode(), SOLVER.encode())], before=BEFORE.encode())


def edits(name: str, source: str = SOLVER, seeds: int = 60, hints: Hints = HINTS) -> list[Edit]:
    code = Code(source.encode())
    made = (ON_CODE[name].work(code, random.Random(seed), hints) for seed in range(seeds))
    return [edit for edit in made if edit is not None]


def one_line(name: str, source: str, seeds: int = 60) -> set[str]:
    """What can become of a function of one line."""
    text = f"import math\ndef f(x, y, n):\n    return {source}\n"
    made = edits(name, text, seeds, Hints())
    return {edit.data.decode().splitlines()[2].removeprefix("    return ") for edit in made}


@pytest.mark.parametrize("name", ON_CODE)
def test_every_operator(name: str) -> None:
    """It finds something to do, what comes of it parses and differs, and the same seed does the same again."""
    made = edits(name)
    assert len(made) > 20
    assert made == edits(name)
    for edit in made:
        ast.parse(edit.data)
        assert edit.data != SOLVER.encode()
        description = edit.description("solve.py")
        assert len(description) <= 500
        assert f"line {edit.line} of solve.py" in description
        assert read_description(description)[:2] == ("solve.py", edit.owner)
    assert sum(means_else("solve.py", SOLVER.encode(), edit.data) for edit in made) > len(made) / 2


@pytest.mark.parametrize("name", ON_CODE)
def test_little_is_touched(name: str) -> None:
    """All other lines stay as they are, comments and blanks included; so do imports, docstrings and the way to main."""
    kept = (
        "import math",
        '    """How far apart."""',
        'if __name__ == "__main__":',
        "    print(solve([1.0, 2.0], 2.5))",
    )
    for edit in edits(name):
        old, new = SOLVER.splitlines(), edit.data.decode().splitlines()
        moved = set(old) - set(new)
        assert len(moved) <= 6
        assert all(line in new for line in kept)


def test_constant() -> None:
    """One number becomes another, and the words say which."""
    [*made] = edits("constant", "def pack():\n    return 0.5\n")
    assert made
    for edit in made:
        new = edit.data.decode().split()[-1]
        assert edit.said == f"changed 0.5 to {new}"
        assert edit.description("a.py") == f"changed 0.5 to {new} in pack(), line 2 of a.py"
        assert read_description(edit.description("a.py")) == ("a.py", "pack()", "0.5", new)


def test_constants_prefer_what_can_be_tuned() -> None:
    """A place in a list is changed seldom, types never."""
    source = "def f(x: tuple[3]):\n    return x[0] * 0.25\n"
    olds = [read_description(edit.description("a.py")).old for edit in edits("constant", source, 200)]
    assert 0 < olds.count("0") < 60
    assert olds.count("0.25") > 140
    assert "3" not in olds


def test_numbers_move_together() -> None:
    """At least two of the same function, none of them a mere 0, 1 or 2."""
    for edit in edits("numbers"):
        assert edit.owner == "solve()" or edit.owner == ""
        assert "numbers (" in edit.said


def test_onward() -> None:
    """Only what moved before moves, and the same way."""
    for edit in edits("onward"):
        text = edit.data.decode()
        rate = float(text.split("RATE = ")[1].split()[0])
        best = float(text.split("best = ")[1].split()[0])
        assert rate > 0.5
        assert best > 10.0
        assert text.replace(f"RATE = {rate}", "RATE = 0.5").replace(f"best = {best}", "best = 10.0", 1) == SOLVER


def test_onward_needs_the_same_code() -> None:
    """Where anything but numbers differs, there is no direction."""
    assert not edits("onward", hints=Hints(before=SOLVER.replace("max", "min").encode()))
    assert not edits("onward", hints=Hints())


def test_swaps() -> None:
    """A sign for another of its kind, an operand for another; brackets keep what belongs together."""
    assert one_line("comparison", "x < y") == {"x <= y", "x > y"}
    assert one_line("comparison", "x is not y") == {"x is y"}
    assert one_line("arithmetic", "x - y", 200) == {"x + y", "x * y", "y - x", "x", "y"}
    assert {"(x - y) / n", "(x + y) * n", "n / (x + y)", "(x + y)"} <= one_line("arithmetic", "(x + y) / n", 300)
    assert one_line("arithmetic", "x + 'a'") == set()
    assert one_line("condition", "x if not y else n") == {"x if y else n"}
    assert one_line("condition", "x if x < y else n") == {"x if x >= y else n"}
    assert one_line("condition", "x and y") == {"x or y", "x", "y"}


def test_factor() -> None:
    """A value of a calculation gets a factor; not a place, and not where there is one already."""
    for line in one_line("factor", "x + y"):
        assert line.count(" * ") == 1
    assert all(line.startswith("x / (") for line in one_line("factor", "x / y") if not line.endswith(" / y"))
    assert one_line("factor", "x[y]") == set()
    assert one_line("factor", "2 * x") == set()


def test_loops() -> None:
    """Bounds, order and kind."""
    assert {"sum(range(n + 1))", "sum(range(2 * n))", "sum(range(1, n))", "sum(range(0, n, 2))"} <= one_line(
        "loop", "sum(range(n))", 200
    )
    assert "[i for i in reversed(range(n))]" in one_line("loop", "[i for i in range(n)]", 200)
    assert "[i for i in range(n)]" in one_line("loop", "[i for i in reversed(range(n))]", 200)


def test_a_while_that_ends() -> None:
    """The condition is asked in the body, and counted rounds end it in any case."""
    source = "def f(x):\n    while (x > 1):  # so long\n        x -= 1\n    return x\n"
    made = {edit.data.decode() for edit in edits("loop", source)}
    wanted = (
        "def f(x):\n    for _ in range(100):  # so long\n        if not (x > 1): break\n        x -= 1\n    return x\n"
    )
    assert wanted in made


def test_a_for_that_counts_itself() -> None:
    """Where nothing in the body skips the counting or changes what is counted."""
    source = "def f(n):\n    s = 0\n    for i in range(1, n):\n        s += i\n    return s\n"
    wanted = "def f(n):\n    s = 0\n    i = 1\n    while i < n:\n        s += i\n        i += 1\n    return s\n"
    assert wanted in {edit.data.decode() for edit in edits("loop", source, 300)}
    for body in ("continue", "n = 2", "i = 2"):
        unsafe = source.replace("s += i", body)
        assert not any("while" in edit.data.decode() for edit in edits("loop", unsafe, 300))


def test_calls() -> None:
    """Related functions with the same arguments; those of a module that is not there are left alone."""
    assert one_line("call", "min(x, y)") == {"max(x, y)"}
    assert "math.fsum(x)" in one_line("call", "sum(x)")
    assert "abs(x) + abs(y)" in {line.strip("()") + ")" for line in one_line("call", "math.hypot(x, y)")}
    assert "math.sqrt(x)" in one_line("call", "x ** 0.5")
    assert one_line("call", "x.gauss(n, y)") == {"x.uniform((n) - (y), (n) + (y))"}
    assert one_line("call", "sorted(x)") == {"sorted(x, reverse=True)"}
    assert one_line("call", "sorted(i for i in x)") == {"sorted((i for i in x), reverse=True)"}
    assert all(b"fsum" not in edit.data for edit in edits("call", "def f(x):\n    return sum(x)\n"))


def test_statements_keep_names_alive() -> None:
    """No name is used before it has a value, unless that was so."""
    source = "def f(x):\n    y = x\n    z = y + 1\n    z += 2\n    return z\n"
    moved = {edit.data.decode() for edit in edits("move", source)}
    assert not moved
    deleted = {edit.said for edit in edits("delete", source)}
    assert deleted == {"left out `z += 2`"}
    twice = "def f(x):\n    x = x * 2\n    x = x + 1\n    return x\n"
    assert {edit.data.decode() for edit in edits("move", twice)} == {
        "def f(x):\n    x = x + 1\n    x = x * 2\n    return x\n"
    }


def test_a_comment_goes_with_its_statement() -> None:
    """The lines right above it belong to it."""
    source = "def f(x):\n    x += 1\n    # twice\n    x *= 2  # really\n    return x\n"
    [made] = {edit.data.decode() for edit in edits("move", source)}
    assert made == "def f(x):\n    # twice\n    x *= 2  # really\n    x += 1\n    return x\n"


def test_crossover() -> None:
    """What the other changed is taken, a part or the whole function, and it is said from whom."""
    made = edits("crossover")
    assert {edit.owner for edit in made} == {"solve()", "distance()"}
    assert all("from node 1.2" in edit.said for edit in made)
    text = "".join(edit.data.decode() for edit in made)
    assert "total / 3" in text
    assert "* 0.75" in text


def test_crossover_prefers_what_the_other_did() -> None:
    """Of two differences, the one that came with the other node is taken more often than the one that undoes ours."""
    base = "def f(x):\n    a = 1\n    print(x)\n    b = 1\n    return a + b\n"
    ours, theirs = base.replace("a = 1", "a = 2"), base.replace("b = 1", "b = 3")
    hints = Hints(donors=lambda: [Donor("1.9", theirs.encode(), base.encode())])
    made = [edit.data.decode() for edit in edits("crossover", ours, 200, hints)]
    both = base.replace("a = 1", "a = 2").replace("b = 1", "b = 3")
    assert made.count(both) > 2 * made.count(base)
