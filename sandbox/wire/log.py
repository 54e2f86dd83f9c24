"""The chamber's log: capped, escaped, and searched for report lines. All of it is the candidate's own words."""

import functools
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.wire.faults import Fault, WireFault

LINE_BYTES = 8192
TAIL_BYTES = 65_536
# A line costs more than its bytes: a log of empty lines would hold up everybody else on the event loop.
MEAN_LINE_BYTES = 16
SPARE_LINES = 1024
REPORT_PREFIX = b"::report "
REPORT_BYTES = 1024

# C0 and C1 controls, bidirectional overrides, line separators, and what is invisible but carries text to a model
# (tags, variation selectors, fillers): nothing that moves a cursor or hides text.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


@functools.cache
def _escapes() -> dict[int, str]:
    """Every unprintable character and its escape, for `str.translate`: a call for each would take a hundred times."""
    everything = map(chr, range(sys.maxunicode + 1))
    return {ord(char): char.encode("unicode_escape").decode() for char in everything if _UNPRINTABLE.match(char)}


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
        self._partial = bytearray()
        self._tail = bytearray()
        self._lines_left = cap // MEAN_LINE_BYTES + SPARE_LINES
        self.count = 0
        # Lines that begin like a report and are none; counted here, because whoever listens only hears what is one.
        self.bad_reports = 0

    @property
    def tail(self) -> bytes:
        return bytes(self._tail[-TAIL_BYTES:])

    def feed(self, data: bytes | memoryview) -> None:
        """Take a piece of the stream; past the cap, a WireFault ends it."""
        over = self.count + len(data) > self._cap
        data = data[: self._cap - self.count] if over else data
        self.count += len(data)
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        if self._on_line or self._on_report:
            self._split(data)
        if over:
            raise WireFault(Fault.LOG_OVERFLOW, f"the log passed its cap of {self._cap} bytes")

    def close(self) -> None:
        """Hand on the last line when it has no newline."""
        if self._partial:
            self._hand_on(bytes(self._partial))
            self._partial.clear()

    def _split(self, data: bytes | memoryview) -> None:
        self._partial += data
        *lines, rest = self._partial.split(b"\n")
        if len(lines) > self._lines_left:
            raise WireFault(Fault.LOG_OVERFLOW, "too many short lines for its size")
        self._lines_left -= len(lines)
        for line in lines:
            self._hand_on(bytes(self._without_excess(line)))
        self._partial = self._without_excess(rest)

    def _without_excess(self, line: bytearray) -> bytearray:
        """The end of a line; what comes before it is handed on in lines of the greatest length."""
        while len(line) > LINE_BYTES:
            self._hand_on(bytes(line[:LINE_BYTES]))
            line = line[LINE_BYTES:]
        return line

    def _hand_on(self, line: bytes) -> None:
        report = parse_report(line)
        if report is None:
            self.bad_reports += line.startswith(REPORT_PREFIX.rstrip())
        elif self._on_report:
            self._on_report(report)
        if self._on_line:
            self._on_line(printable(line.removesuffix(b"\r")))
