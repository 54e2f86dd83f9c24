"""TOML as the standard parser reads it, within a bound on the parts of a key (T101)."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import bounded_toml
from orchestrator.bounded_toml import MOST_PARTS
from orchestrator.task import TaskError, load_task

LONG = {
    "bare": ".".join("a" * 500_000) + " = 1",
    "apart": " . ".join("a" * 40) + " = 1",
    "quoted": ".".join(['"a.b"', "'c'"] * 40) + " = 1",
    "in a table": f"x = {{y = {{{'.'.join('a' * 40)} = 1}}}}",
    "of a table": f"[{'.'.join('a' * 40)}]",
    "of a list of tables": f"[[ {'.'.join('a' * 40)} ]]",
    "behind a text": f"x = '''.'''\n\n{'.'.join('a' * 40)} = 1",
    "behind texts that look like more": f'x = """\\"""""\ny = \'"\'\nz = "\\\\"\n{".".join("a" * 40)} = 1',
}


@pytest.mark.parametrize("what", LONG)
def test_t101_a_key_of_many_parts(what: str) -> None:
    """The parser works with the square of them, so it is never given such a key, wherever that stands."""
    line = LONG[what].count("\n") + 1
    with pytest.raises(ValueError, match=rf"^A key of more than 32 parts \(at line {line}, column [0-9]+\)$"):
        bounded_toml.loads(LONG[what])


def test_t101_in_a_task_file(tmp_path: Path) -> None:
    """A task of a stranger is refused with its line."""
    (tmp_path / "blastdoor.toml").write_text(f'name = "a"\n{LONG["bare"]}\n')
    with pytest.raises(TaskError, match=r"blastdoor.toml:2: is not TOML: A key of more than 32 parts at column"):
        load_task(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * MOST_PARTS) + " = 1",
        "x = '" + "." * 100 + "'",
        'x = """\n' + ".\n" * 100 + '"""',
        "x = '''" + "'." * 100 + "'''",
        "# " + "." * 100,
        "x = [" + "1.5, " * 100 + "]",
        "\n".join(f"a.b{at} = 1.5" for at in range(100)),
        'x = "' + '\\"' * 50 + "." * 100 + '"',
    ],
)
def test_dots_that_make_no_key(text: str) -> None:
    assert bounded_toml.loads(text) == tomllib.loads(text)


@given(st.text(alphabet="a.\"'\\ \n=[]{},#1", max_size=40))
def test_everything_else_is_the_parsers(text: str) -> None:
    """What it is taken for, or why it is refused, is what the standard parser says."""
    try:
        wanted: object = tomllib.loads(text)
    except ValueError as error:
        wanted = str(error)
    try:
        found: object = bounded_toml.loads(text)
    except ValueError as error:
        found = str(error)
    assert found == wanted or text.count(".") >= MOST_PARTS
