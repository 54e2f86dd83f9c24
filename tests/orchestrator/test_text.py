"""Whatever a candidate writes, a person sees it for what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.text import is_plain, printable, printable_lines, short, shown


@pytest.mark.parametrize(
    ("hostile", "seen"),
    [
        ("\x1b[2J\x1b[31mgone", "\\x1b[2J\\x1b[31mgone"),
        ("a\rb\nc\x07", "a\\rb\\nc\\x07"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("in\u200bvisible\U000e0041", "in\\u200bvisible\\U000e0041"),
        ("\x9b31m", "\\x9b31m"),
        ("half a pair \ud800", "half a pair \\ud800"),
        (b"\xff\xfeabc", "\\xff\\xfeabc"),
        ("z\u0300\u0301\u0302\u0303", "z\\u0300\\u0301\\u0302\\u0303"),
    ],
)
def test_t57_what_moves_or_hides_is_escaped(hostile: str | bytes, seen: str) -> None:
    """Control characters, colours, bidirectional overrides and invisible ones are written out."""
    assert printable(hostile) == seen


@pytest.mark.parametrize("honest", ["plain", "Größe ≥ 3", "日本語", "naïve e\u0301", "C:\\path", "a [b] c"])
def test_honest_text_stays(honest: str) -> None:
    """What is visible is not touched, a backslash neither."""
    assert printable(honest) == honest
    assert printable(honest.encode()) == honest


@given(st.text(st.characters()))
def test_the_result_is_always_plain(text: str) -> None:
    """Whatever goes in, one plain line comes out; and what came out goes through unchanged."""
    once = printable(text)
    assert is_plain(once)
    assert printable(once) == once


def test_lines_end_at_newlines_only() -> None:
    """A line separator or a form feed does not start a line; a carriage return before the newline is dropped."""
    assert list(printable_lines("a\u2028b\x0cc\r\nd\te\n")) == ["a\\u2028b\\x0cc", "d\te"]
    assert list(printable_lines(b"")) == []


def test_short_text_is_one_line() -> None:
    """White space becomes single, and a cut is seen."""
    assert short("one\n  two", 20) == "one two"
    assert short("abcdefgh", 5) == "abcd…"


@pytest.mark.parametrize("character", ["\x01", "\x1b", "\u202e", "\U000e0041", "\u0301", "a", "é"])
def test_t90_a_long_name_is_shown_in_one_short_line(character: str) -> None:
    """An escape takes up to ten characters: what is left out is counted, and no escape is cut in half."""
    name = "src/" + character * 3000
    one = printable(character * 4)
    one = one[: len(one) // 4]
    for text in (shown(name), shown(name.encode())):
        assert len(text) <= 150
        assert text.isprintable()
        told, _, more = text.partition("… ")
        left = int(more.removeprefix("(").removesuffix(" more)").replace(",", ""))
        assert told == f"src/{one * (3000 - left)}"
    assert shown("short\u202e.py") == "short\\u202e.py"
