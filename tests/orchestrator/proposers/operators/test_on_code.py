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
    """One number becomes another, and the words say which. A place in a list is changed seldom, types never."""
    [*made] = edits("constant", "def pack():\n    return 0.5\n")
    assert made
    for edit in made:
        new = edit.data.decode().split()[-1]
        assert edit.description("a.py") == f"changed 0.5 to {new} in pack(), line 2 of a.py"
        assert read_description(edit.description("a.py")) == ("a.py", "pack()", "0.5", new)
    source = "def f(x: tuple[3]):\n    return x[0] * 0.25\n"
    olds = [read_description(edit.description("a.py")).old for edit in edits("constant", source, 200)]
    assert 0 < olds.count("0") < 60
    assert olds.count("0.25") > 140
    assert "3" not in olds


def test_numbers_move() -> None:
    """Together, none of them a mere 0, 1 or 2; onward as what moved before, and not where anything else differs."""
    for edit in edits("numbers"):
        assert edit.owner in ("solve()", "")
        assert "numbers (" in edit.said
    for edit in edits("onward"):
        text = edit.data.decode()
        rate, best = (float(text.split(name)[1].split()[0]) for name in ("RATE = ", "best = "))
        assert (rate > 0.5, best > 10.0) == (True, True)
        assert text.replace(f"RATE = {rate}", "RATE = 0.5").replace(f"best = {best}", "best = 10.0", 1) == SOLVER
    assert not edits("onward", hints=Hints(before=SOLVER.replace("max", "min").encode()))
    assert not edits("onward", hints=Hints())


EXACTLY = {
    ("comparison", "x < y"): {"x <= y", "x > y"},
    ("comparison", "x is not y"): {"x is y"},
    ("arithmetic", "x - y"): {"x + y", "x * y", "y - x", "x", "y"},
    ("arithmetic", "x + 'a'"): set(),
    ("condition", "x if not y else n"): {"x if y else n"},
    ("condition", "x if x < y else n"): {"x if x >= y else n"},
    ("condition", "x and y"): {"x or y", "x", "y"},
    ("factor", "x[y]"): set(),
    ("factor", "2 * x"): set(),
    ("call", "min(x, y)"): {"max(x, y)"},
    ("call", "x.gauss(n, y)"): {"x.uniform((n) - (y), (n) + (y))"},
    ("call", "sorted(x)"): {"sorted(x, reverse=True)"},
    ("call", "sorted(i for i in x)"): {"sorted((i for i in x), reverse=True)"},
}
AMONG = {
    ("arithmetic", "(x + y) / n"): {"(x - y) / n", "(x + y) * n", "n / (x + y)", "(x + y)"},
    ("loop", "sum(range(n))"): {"sum(range(n + 1))", "sum(range(2 * n))", "sum(range(1, n))", "sum(range(0, n, 2))"},
    ("loop", "[i for i in range(n)]"): {"[i for i in reversed(range(n))]"},
    ("loop", "[i for i in reversed(range(n))]"): {"[i for i in range(n)]"},
    ("call", "sum(x)"): {"math.fsum(x)"},
    ("call", "x ** 0.5"): {"math.sqrt(x)"},
}


@pytest.mark.parametrize(("name", "source"), [*EXACTLY, *AMONG])
def test_swaps(name: str, source: str) -> None:
    """A sign, operand, bound, order or function for another of its kind; brackets keep what belongs together."""
    made = one_line(name, source, 300)
    assert made == EXACTLY[name, source] if (name, source) in EXACTLY else made >= AMONG[name, source]


def test_factor_and_call() -> None:
    """A value gets one factor, and not where there is one already; a module that is not there is not called."""
    assert {line.count(" * ") for line in one_line("factor", "x + y")} == {1}
    assert all(line.startswith("x / (") for line in one_line("factor", "x / y") if not line.endswith(" / y"))
    assert "abs(x) + abs(y)" in {line.strip("()") + ")" for line in one_line("call", "math.hypot(x, y)")}
    assert all(b"fsum" not in edit.data for edit in edits("call", "def f(x):\n    return sum(x)\n"))


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
