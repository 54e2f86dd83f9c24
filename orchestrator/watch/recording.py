"""Streams on disk, as the detector heard them: JSON lines, so that a floor can be tried on what really happened.

A stream is a line about itself, `{"stream": 1, "name": …}`, then a line a signal, then `{"ended": 41.5, "outcome": …}`.
Times count from the start of the attempt. A file may hold several. What is read may have been written by anybody.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Never

from orchestrator.text import short
from orchestrator.units import format_size
from orchestrator.watch.signals import Hold, Kind, Signal

VERSION = 1
SUFFIX = ".jsonl"
FOLDER = "streams"
MOST_SIGNALS = 250_000
_MOST_BYTES = 256 * 1024**2
_LONGEST_LINE = 16_384
_LONGEST_WORD = 128
_LATEST_S = 1e7
_LARGEST = 1e12


class Outcome(StrEnum):
    """How the agent's work ended, whatever its result was worth. Well: it handed something in, or said it was done."""

    WELL = "ended well"
    STALLED = "stalled"
    FAILED = "failed"
    CUT_OFF = "cut off"


class BadStream(ValueError):
    """One line for a person: which file, which line, and what is wrong with it."""


@dataclass(frozen=True)
class Header:
    """What a stream says of itself. `floor` is the one that it ran under; `label` is for those who made it up."""

    name: str
    agent: str = ""
    model: str = ""
    configuration: str = ""
    label: str = ""
    floor: float | None = None


@dataclass(frozen=True)
class Stream:
    """A whole one. Without an outcome it was cut off, and ended with its last signal."""

    header: Header
    signals: tuple[Signal, ...]
    ended: float
    outcome: Outcome = Outcome.CUT_OFF


def header_line(header: Header) -> str:
    told = {name: value for name, value in vars(header).items() if value not in ("", None)}
    return _line({"stream": VERSION, **{name: _cut(value) for name, value in told.items()}})


def signal_line(signal: Signal) -> str:
    told: dict[str, Any] = {"at": round(signal.at, 3), "kind": signal.kind}
    told |= {"call": _cut(signal.call)} if signal.call else {}
    told |= {"tokens": signal.tokens} if signal.tokens else {}
    told |= {"digest": _cut(signal.digest)} if signal.digest else {}
    told |= {"hold": signal.hold} if signal.hold else {}
    told |= {"cpu_s": round(signal.cpu_s, 3)} if signal.cpu_s else {}
    return _line(told)


def end_line(ended: float, outcome: Outcome) -> str:
    return _line({"ended": round(ended, 3), "outcome": outcome})


def stream_lines(stream: Stream) -> Iterator[str]:
    yield header_line(stream.header)
    yield from map(signal_line, stream.signals)
    yield end_line(stream.ended, stream.outcome)


def read_streams(path: Path) -> Iterator[Stream]:
    """One after the other. Raises BadStream, and OSError where the file cannot be read.

    A last line without its end is what a crash leaves, and is left out.
    """
    with path.open("rb") as file:
        yield from _Reader(path, file).streams()


def recorded_files(place: Path) -> list[Path]:
    """A file itself; of a folder, what was recorded in it, by name."""
    return sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else [place]


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._number = 0
        self._read = 0

    def streams(self) -> Iterator[Stream]:
        header: Header | None = None
        signals: list[Signal] = []
        for told in self._lines():
            if "stream" in told:
                if header:
                    yield _cut_off(header, signals)
                header, signals = self._header(told), []
            elif header is None:
                self._fail("a stream begins with a line about itself, which has the key stream")
            elif "ended" in told:
                yield self._whole(header, signals, told)
                header = None
            elif len(signals) >= MOST_SIGNALS:
                self._fail(f"a stream has at most {MOST_SIGNALS:,} signals")
            else:
                signals.append(self._signal(told))
        if header:
            yield _cut_off(header, signals)
        elif not self._number:
            self._fail("there is no stream in it")

    def _lines(self) -> Iterator[dict[str, Any]]:
        while line := self._file.readline(_LONGEST_LINE + 1):
            self._read += len(line)
            if not line.endswith(b"\n") and len(line) <= _LONGEST_LINE:
                return
            self._number += 1
            if len(line) > _LONGEST_LINE:
                self._fail(f"longer than {format_size(_LONGEST_LINE)}")
            if self._read > _MOST_BYTES:
                self._fail(f"a file has at most {format_size(_MOST_BYTES)}")
            yield self._object(line)

    def _object(self, line: bytes) -> dict[str, Any]:
        try:
            told = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            self._fail("not JSON")
        if not isinstance(told, dict):
            self._fail("not a JSON object")
        return told

    def _header(self, told: dict[str, Any]) -> Header:
        if told.pop("stream") != VERSION:
            self._fail(f"another version of the format than {VERSION}")
        self._known(told, "name", "agent", "model", "configuration", "label", "floor")
        floor = self._number_of(told, "floor", 1e6) if told.get("floor") is not None else None
        words = {name: self._word(told, name) for name in ("name", "agent", "model", "configuration", "label")}
        return Header(floor=floor, **words)

    def _whole(self, header: Header, signals: list[Signal], told: dict[str, Any]) -> Stream:
        self._known(told, "ended", "outcome")
        ended = max(self._number_of(told, "ended", _LATEST_S), *(it.at for it in signals[-1:]), 0.0)
        if told.get("outcome") not in tuple(Outcome):
            self._fail(f"the outcome is one of {', '.join(Outcome)}")
        return Stream(header, tuple(signals), ended, Outcome(told["outcome"]))

    def _signal(self, told: dict[str, Any]) -> Signal:
        self._known(told, "at", "kind", "call", "tokens", "digest", "hold", "cpu_s")
        kind, hold = told.get("kind"), told.get("hold")
        if kind not in tuple(Kind):
            self._fail("no known kind of signal")
        if hold is not None and hold not in tuple(Hold):
            self._fail("no known hold")
        tokens = told.get("tokens", 0)
        if type(tokens) is not int or not 0 <= tokens <= _LARGEST:
            self._fail("tokens is a whole number that is not negative")
        return Signal(
            at=self._number_of(told, "at", _LATEST_S),
            kind=Kind(kind),
            call=self._word(told, "call"),
            tokens=tokens,
            digest=self._word(told, "digest"),
            hold=Hold(hold) if hold else None,
            cpu_s=self._number_of(told, "cpu_s", _LARGEST) if "cpu_s" in told else 0.0,
        )

    def _known(self, told: dict[str, Any], *names: str) -> None:
        if unknown := sorted(set(told) - set(names)):
            self._fail(f"unknown key {short(unknown[0], 40)}; known are {', '.join(names)}")

    def _word(self, told: dict[str, Any], name: str) -> str:
        value = told.get(name, "")
        if not isinstance(value, str) or len(value) > _LONGEST_WORD:
            self._fail(f"{name} is text of at most {_LONGEST_WORD} characters")
        return value

    def _number_of(self, told: dict[str, Any], name: str, most: float) -> float:
        value = told.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            self._fail(f"{name} is a number from 0 to {most:g}")
        return float(value)

    def _fail(self, why: str) -> Never:
        raise BadStream(f"{short(str(self._path), 200)}, line {self._number}: {why}; it is no recorded stream")


def _cut_off(header: Header, signals: list[Signal]) -> Stream:
    return Stream(header, tuple(signals), signals[-1].at if signals else 0.0)


def _cut(value: Any) -> Any:
    return value[:_LONGEST_WORD] if isinstance(value, str) else value


def _line(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number")
