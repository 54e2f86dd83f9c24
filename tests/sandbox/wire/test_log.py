"""The log: capped to the byte, harmless to look at, and the same however it arrives."""

import sys
import unicodedata

import pytest

from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.log import LINE_BYTES, REPORT_BYTES, TAIL_BYTES, Log, Report, parse_report, printable
from tests.sandbox.wire.streams import pieces

# Invisible by Unicode's own list (Default_Ignorable_Code_Point): they hide text from people, not from models.
INVISIBLE = [
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
    *(*range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
    *(*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)),
    *range(0xE0000, 0xE1000),
]


def heard(stream: bytes, piece: int, cap: int = 2**20) -> tuple[list[str], list[Report]]:
    lines: list[str] = []
    reports: list[Report] = []
    log = Log(cap, lines.append, reports.append)
    feed(log, stream, piece)
    log.close()
    return lines, reports


def feed(log: Log, stream: bytes, piece: int) -> None:
    for part in pieces(stream, piece):
        log.feed(part)


def test_no_control_or_direction_survives() -> None:
    """Of all characters, none that moves a cursor, breaks a line or turns the direction of text comes through."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if 0xD800 <= code < 0xE000 or code == 9:
            continue
        controls = unicodedata.category(character) in ("Cc", "Zl", "Zp")
        turns = unicodedata.bidirectional(character) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        if controls or turns:
            assert printable(character.encode()).isascii(), hex(code)
            assert printable(character.encode()).startswith("\\"), hex(code)


def test_what_is_shown() -> None:
    """Letters of any script, tabs and symbols as they are; what nobody can see, and broken UTF-8, escaped."""
    text = "naïve\tπ 漢字 עברית ∑ 🙂 C:\\x"
    assert printable(text.encode()) == text
    for code in INVISIBLE:
        assert printable(chr(code).encode()).startswith("\\"), hex(code)
    for raw in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\x80b"):
        assert printable(raw).isascii()


@pytest.mark.parametrize("piece", [1, 7, 512, 65_536])
def test_lines_do_not_depend_on_pieces(piece: int) -> None:
    """Lines are the same however they arrive; a long one is split, and nothing of it is lost."""
    long = b"x" * LINE_BYTES + b"y" * LINE_BYTES + b"z"
    stream = b"one\n\ntwo\r\n" + long + b"\n" + b"e" * LINE_BYTES + b"\nlast"
    lines, _ = heard(stream, piece)
    split = ["x" * LINE_BYTES, "y" * LINE_BYTES, "z"]
    assert lines == ["one", "", "two", *split, "e" * LINE_BYTES, "last"]


@pytest.mark.parametrize("piece", [1, 3, 100])
@pytest.mark.parametrize(("cap", "kept"), [(12, 12), (10, 10), (4, 4), (0, 0)])
def test_cap_is_exact(piece: int, cap: int, kept: int) -> None:
    """As many bytes as the cap pass; the next one ends it, and what was within the cap is kept, of a piece too."""
    stream = b"a\nb\n\n\n789\n\n\n"[:12]
    lines: list[str] = []
    log = Log(cap, lines.append)
    feed(log, stream[:cap], piece)
    with pytest.raises(WireFault) as caught:
        feed(log, stream[cap:] + b"x", piece)
    assert caught.value.fault is Fault.LOG_OVERFLOW
    assert (log.count, log.tail, lines) == (kept, stream[:kept], stream[:kept].decode().splitlines())
    log = Log(cap)
    with pytest.raises(WireFault):
        feed(log, stream + b"x", piece)
    assert (log.count, log.tail) == (kept, stream[:kept])


@pytest.mark.parametrize("piece", [1000, 65_536, 10**6])
def test_tail_is_the_end(piece: int) -> None:
    """The tail is the last 64 KiB, whatever came before."""
    stream = b"".join(b"%06d\n" % number for number in range(60_000))
    log = Log(10**6)
    for part in pieces(stream, piece):
        log.feed(part)
        assert len(log.tail) <= TAIL_BYTES
    assert log.tail == stream[-TAIL_BYTES:]


@pytest.mark.parametrize("piece", [1, 7, 65_536])
def test_reports_are_heard_among_lines(piece: int) -> None:
    """A report line is a report and a line; an indented or quoted one is only a line."""
    stream = b'a\n::report {"step": 1, "value": 0.5}\n ::report {"step": 2, "value": 1}\n::report {"step":3,"value":-2}'
    lines, reports = heard(stream, piece)
    assert len(lines) == 4
    assert reports == [Report(1, 0.5), Report(3, -2.0)]


def report(text: str) -> Report | None:
    return parse_report(b"::report " + text.encode())


NONE = ["", "{}", "[]", "nonsense", '{"step": 1}', "[" * 1000, '{"a":' * 200, '{"step": 1, "value": 1} x']
PAIRS = [
    *(
        ("1", '1,"more":1'),
        ("1", '1,"value":2'),
        ("1.0", "1"),
        ("true", "1"),
        ("1", "true"),
        ('"1"', "1"),
        ("1", '"1"'),
    ),
    *(("1", "null"), ("-1", "1"), ("9007199254740992", "1"), ("1", "NaN"), ("1", "Infinity"), ("1", "-Infinity")),
    *(("1", "1e999"), ("1", "9" * 900), ("9" * 900, "1")),
]


@pytest.mark.parametrize("text", NONE + [f'{{"step":{step},"value":{value}}}' for step, value in PAIRS])
def test_reports_that_are_refused(text: str) -> None:
    """Whatever is not exactly a step and a finite value is no report, and never an error."""
    assert report('{"step":1,"value":1}') == Report(1, 1.0)
    assert report(text) is None


@pytest.mark.parametrize("piece", [1, 5, 4096])
def test_refused_reports_are_counted(piece: int) -> None:
    """Lines that begin like a report and are none are counted, each once; other lines, and good reports, are not."""
    bad = [b'::report {"step": 1, "value": NaN}', b"::report", b"::report{}", b"::report nonsense", b"::report \xff"]
    good = [b'::report {"step": 1, "value": 2}', b" ::report nonsense", b"report", b""]
    log = Log(2**20, lambda _: None)
    feed(log, b"\n".join([*bad, *good, *bad]), piece)
    log.close()
    assert log.bad_reports == 2 * len(bad)


def test_reports_at_the_edge() -> None:
    """The greatest step and the longest line pass; one byte more does not."""
    assert report('{"step": 9007199254740991, "value": 0}') == Report(2**53 - 1, 0.0)
    text = '{"step": 1, "value": 2}'
    padding = REPORT_BYTES - len(b"::report " + text.encode())
    assert report(text + " " * padding) == Report(1, 2.0)
    assert report(text + " " * (padding + 1)) is None
    assert parse_report(b'::report \xff{"step": 1, "value": 2}') is None
