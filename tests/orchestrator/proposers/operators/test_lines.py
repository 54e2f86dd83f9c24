"""Operators on lines, for any text."""

import json
import random
import tomllib

import pytest

from orchestrator.change import Policy, Tree
from orchestrator.change.applying import apply_text
from orchestrator.proposers.operators import Operators
from orchestrator.proposers.operators.edit import Edit
from orchestrator.proposers.operators.hints import Donor, Hints
from orchestrator.proposers.operators.lines import Page
from orchestrator.proposers.operators.table import ON_LINES
from tests.orchestrator.proposers.operators.past import Remembered
from tests.orchestrator.proposers.operators.samples import JSON, SHELL, TOML, C

FILES = {"main.c": C, "params.json": JSON, "settings.toml": TOML, "run.sh": SHELL}


def edits(name: str, path: str, text: str, hints: Hints | None = None, seeds: int = 60) -> list[Edit]:
    page = Page(path, text.encode())
    made = (ON_LINES[name].work(page, random.Random(seed), hints or Hints()) for seed in range(seeds))
    return [edit for edit in made if edit is not None]


def numbers(path: str, text: str) -> list[str]:
    return [place.new.decode() for place in Page(path, text.encode()).numbers]


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("name", ON_LINES)
def test_every_operator(name: str, path: str) -> None:
    """It changes something, says what and where, and the same seed does the same again."""
    text = FILES[path]
    last = numbers(path, text)[-1]
    other = last.join(text.rsplit(last, 1)) if last == "x" else "9".join(text.rsplit(last, 1))
    hints = Hints(donors=lambda: [Donor("1.2", other.encode())], before=other.encode())
    made = edits(name, path, text, hints)
    assert made or (path, name) == ("params.json", "line swap")
    assert made == edits(name, path, text, hints)
    for edit in made:
        assert edit.data != text.encode()
        assert len(edit.description(path)) <= 500
        assert f"line {edit.line} of {path}" in edit.description(path)


def test_which_numbers_count() -> None:
    """Not those in comments, quotes, names or versions."""
    assert numbers("a.c", C) == ["128", "0.5", "10", "0", "1.01", "0", "0"]
    assert numbers("a.json", JSON) == ["5", "-1e-3", "100", "200"]
    assert numbers("a.toml", TOML) == ["0.5", "100", "1.25"]
    assert numbers("a.sh", SHELL) == ["10", "0.5", "1000", "5"]
    assert numbers("a.txt", "x86 1.2.3 0x1f v2 3 $4 5% -6 7f 8x a-9\n") == ["3", "5", "-6", "7", "9"]


def test_lines_that_stay() -> None:
    """Blocks stay whole: a line that opens or closes one is neither repeated, nor moved, nor left out."""
    page = Page("a.c", C.encode())
    assert [page.lines[at].strip().decode() for at in page.movable] == [
        "#define SIZE 128",
        "double rate = 0.5f; // 2 of them",
        "int steps = 10;",
        "rate *= 1.01;",
        "steps += 0;",
        'printf("%d of 99\\n", steps);',
        "return 0;",
    ]


@pytest.mark.parametrize(("path", "text"), FILES.items())
async def test_settings_stay_readable(path: str, text: str) -> None:
    """JSON stays JSON and TOML stays TOML, with another meaning."""
    policy = Policy(editable=(path,))
    past = Remembered(Tree.of({path: text}))
    read = {"json": json.loads, "toml": tomllib.loads}.get(path.rpartition(".")[2], str)
    for number in range(1, 60):
        [proposal] = await Operators(policy).propose(past.brief(number, parent="1"))
        assert proposal.operator in ON_LINES
        new = apply_text(past.trees["1"], proposal.text or "", policy)[path].data.decode()
        assert read(new) != read(text)


def test_endless_lines_are_left_alone() -> None:
    """A line of a megabyte is data; so are blanks and brackets."""
    page = Page("a.txt", b"1 " * 500_000 + b"\n2 words\n")
    assert [place.new for place in page.numbers] == [b"2"]
    assert page.movable == [1]
    assert (Page("a.txt", b"{\n}\n").numbers, Page("a.txt", b"{\n}\n").movable) == ([], [])
