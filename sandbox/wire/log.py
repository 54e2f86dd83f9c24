"""The chamber's log: capped, escaped, and searched for report lines. All of it is the candidate's own words."""

import functools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sandbox.units import format_size
from sandbox.wire.faults import Fault, WireFault

LINE_BYTES = 8192
TAIL_BYTES = 65_536
# So much is taken apart before anybody else may have a turn.
STEP_BYTES = 4096
# A line costs more than its bytes: a log of empty lines would take all of our time.
MEAN_LINE_BYTES = 16
SPARE_LINES = 1024
REPORT_PREFIX = b"::report "
_REPORT_WORD = REPORT_PREFIX.rstrip()
REPORT_BYTES = 1024

# C0 and C1 controls, bidirectional overrides, line separators, and what is invisible but carries text to a model
# (tags, variation selectors, fillers): nothing that moves a cursor or hides text. Each pair is a first and a last one.
_UNPRINTABLE = (
    *((0x00, 0x08), (0x0A, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160)),
    *((0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)


@functools.cache
def _escapes() -> dict[int, str]:
    """Every unprintable character and its escape, for `str.translate`: a call for each would take a hundred times."""
    codes = (code for first, last in _UNPRINTABLE for code in range(first, last + 1))
    return {code: chr(code).encode("unicode_escape").decode() for code in codes}


_HIGH_BYTES = {byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}


def printable(data: bytes) -> str:
    """Text that is safe to show to a person or an agent: one line, no control characters.

    A line that is not UTF-8 shows every byte above ASCII as an escape.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1").translate(_HIGH_BYTES)
    return text if text.isascii() and text.isprintable() else text.translate(_escapes())


@dataclass(frozen=True, slots=True)
class Report:
    """`::report {"step": 3, "value": 0.71}`: may shorten a trial's life, never lengthen its lease, never score."""

    step: int
    value: float


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key given twice")
    return found


def parse_report(line: bytes) -> Report | None:
    """The report in a log line, or None where there is none that we accept."""
    if not line.startswith(REPORT_PREFIX) or len(line) > REPORT_BYTES:
        return None
    try:
        found = json.loads(line[len(REPORT_PREFIX) :], object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or set(found) != {"step", "value"}:
        return None
    step, value = found["step"], found["value"]
    if type(step) is not int or type(value) not in (int, float) or not 0 <= step < 2**53:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return Report(step, number) if math.isfinite(number) else None


class Log:
    """Counts and caps the stream, keeps its tail, and hands on whole lines."""

    def __init__(
        self,
        cap: int,
        on_line: Callable[[str], None] | None = None,
        on_report: Callable[[Report], None] | None = None,
    ) -> None:
        self._cap = cap
        self._on_line = on_line
        self._on_report = on_report
        self._partial = b""
        self._tail = bytearray()
        self._lines_left = cap // MEAN_LINE_BYTES + SPARE_LINES
        self.count = 0
        # Lines that begin like a report and are none; counted here, because a listener only hears what is one.
        self.bad_reports = 0

    @property
    def tail(self) -> bytes:
        return bytes(self._tail[-TAIL_BYTES:])

    def feed(self, data: bytes | memoryview) -> None:
        """Take a piece of the stream; past the cap, a WireFault ends it."""
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes | memoryview) -> Iterator[None]:
        """The same in steps, a line each at most, so that the caller can pause after any of them."""
        over = self.count + len(data) > self._cap
        data = data[: self._cap - self.count] if over else data
        self.count += len(data)
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        if self._on_line or self._on_report:
            for start in range(0, len(data), STEP_BYTES):
                yield from self._split(data[start : start + STEP_BYTES])
        if over:
            raise WireFault(Fault.LOG_OVERFLOW, f"the log passed its cap of {format_size(self._cap)}")

    def close(self) -> None:
        """Hand on the last line when it has no newline."""
        if self._partial:
            self._hand_on(self._partial)
            self._partial = b""

    def _split(self, data: bytes | memoryview) -> Iterator[None]:
        *lines, rest = (self._partial + data).split(b"\n")
        self._partial = b""
        if len(lines) > self._lines_left:
            raise WireFault(Fault.LOG_OVERFLOW, "too many short lines for its size")
        self._lines_left -= len(lines)
        for line in lines:
            for part in _parts(line):
                self._hand_on(part)
                yield
        *parts, self._partial = _parts(rest)
        for part in parts:
            self._hand_on(part)
            yield

    def _hand_on(self, line: bytes) -> None:
        if line.startswith(_REPORT_WORD):
            report = parse_report(line)
            if report is None:
                self.bad_reports += 1
            elif self._on_report:
                self._on_report(report)
        if self._on_line:
            self._on_line(printable(line.removesuffix(b"\r")))


def _parts(line: bytes) -> list[bytes]:
    """A line in parts of the greatest length, the last of which may be shorter."""
    if len(line) <= LINE_BYTES:
        return [line]
    return [line[start : start + LINE_BYTES] for start in range(0, len(line), LINE_BYTES)]
