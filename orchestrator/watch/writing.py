"""Recording one attempt as it happens. It never holds the attempt up: what cannot be written is not recorded."""

from contextlib import suppress
from pathlib import Path
from typing import TextIO

import structlog

from orchestrator.watch.recording import (
    FOLDER,
    MOST_SIGNALS,
    SUFFIX,
    Header,
    Outcome,
    end_line,
    header_line,
    recorded_files,
    signal_line,
)
from orchestrator.watch.signals import Kind, Signal

TOGETHER_S = 0.25
KEPT = 1000
_NAMES = 4096

_log = structlog.get_logger()


def recording_path(campaign: Path, node: str, take: int) -> Path:
    return campaign / FOLDER / f"{node}-{take}{SUFFIX}"


class StreamWriter:
    """Tokens of one call within a quarter of a second become one signal; names of calls become small numbers.

    Of a campaign the last thousand streams are kept. A stream that is too long is recorded up to there, without an end.
    """

    def __init__(self, path: Path, header: Header, started: float) -> None:
        self._started = started
        self._waiting: dict[tuple[str, str], Signal] = {}
        self._since = 0.0
        self._names: dict[str, str] = {}
        self._named = 0
        self._written = 0
        self._file: TextIO | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_room(path.parent)
            self._file = path.open("w", encoding="ascii")
            self._file.write(header_line(header))
        except OSError as error:
            self._give_up(error)

    def hear(self, signal: Signal) -> None:
        if self._file is None:
            return
        at = max(0.0, signal.at - self._started)
        told = Signal(at, signal.kind, self._name(signal), signal.tokens, signal.digest, signal.hold, signal.cpu_s)
        if self._waiting and (told.kind is not Kind.TOKENS or at - self._since >= TOGETHER_S):
            self._flush()
        if told.kind is not Kind.TOKENS:
            self._write(told)
            return
        key = (told.call, told.hold or "")
        before = self._waiting.get(key)
        if not self._waiting:
            self._since = at
        more = before.tokens if before else 0
        self._waiting[key] = Signal(
            before.at if before else at, told.kind, told.call, more + told.tokens, "", told.hold
        )

    def close(self, now: float, outcome: Outcome) -> None:
        """Twice is as good as once."""
        self._flush()
        if self._file is None:
            return
        try:
            if self._written <= MOST_SIGNALS:
                self._file.write(end_line(max(0.0, now - self._started), outcome))
            self._file.close()
            self._file = None
        except OSError as error:
            self._give_up(error)

    def _name(self, signal: Signal) -> str:
        if not signal.call:
            return ""
        if signal.call not in self._names:
            if len(self._names) >= _NAMES:
                self._names.pop(next(iter(self._names)))
            self._named += 1
            self._names[signal.call] = str(self._named)
        name = self._names[signal.call]
        if signal.kind in (Kind.FINISHED, Kind.CUT):
            del self._names[signal.call]
        return name

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for signal in waiting.values():
            self._write(signal)

    def _write(self, signal: Signal) -> None:
        self._written += 1
        if self._file is None or self._written > MOST_SIGNALS:
            return
        try:
            self._file.write(signal_line(signal))
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _log.warning("stream is not recorded", path=error.filename, why=error.strerror)
        if self._file is not None:
            with suppress(OSError):  # the same disk that was full when it was written to
                self._file.close()
        self._file = None


def _make_room(folder: Path) -> None:
    files = recorded_files(folder)
    if len(files) >= KEPT:
        for path in sorted(files, key=lambda path: path.stat().st_mtime)[: len(files) - KEPT + 1]:
            path.unlink(missing_ok=True)
