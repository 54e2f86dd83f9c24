"""The one thread that writes a ledger, so that no commit, and no database that is away, holds up the event loop.

It does one thing after another, in the order in which it was asked. What is appended in one go is one transaction and
waits for the disk once.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from orchestrator.ledger.artifacts import Artifacts
from orchestrator.ledger.chain import Entry
from orchestrator.ledger.store import Ledger, Request

T = TypeVar("T")

# Far more than a commit takes on a disk that somebody keeps busy, who must gain nothing by it; less than the deadlines
# that matter. What takes longer is a database that is away.
LATE_S = 10.0


class Writer:
    """Nothing is in here that waits: each answer is a future, which tells what the ledger raised, too."""

    def __init__(self, ledger: Ledger, artifacts: Artifacts) -> None:
        self._ledger = ledger
        self._artifacts = artifacts
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._guard = threading.Lock()
        self._since: float | None = None
        self._late_s = 0.0

    def append(self, entries: Sequence[Entry], rows: Mapping[tuple[str, str], str | None], at: str) -> Future[None]:
        """Done when all of it is on disk for good, with every artifact that was put before."""
        return self._submit(lambda: self._append(entries, rows, at))

    def requests(self, after: int) -> Future[list[Request]]:
        """Read in turn with what is written: it is the same connection that knows whether anybody else has written."""
        return self._submit(lambda: self._ledger.requests(after))

    @property
    def late_s(self) -> float:
        """For so long it has been held up in all, beyond what any commit takes."""
        with self._guard:
            return self._late_s + self._late_now()

    def give_up(self) -> None:
        """Wait no longer for a database that is away: what waits for it fails."""
        self._ledger.give_up()

    def close(self) -> None:
        """What was asked for is still done."""
        self._thread.shutdown(wait=False)

    def _append(self, entries: Sequence[Entry], rows: Mapping[tuple[str, str], str | None], at: str) -> None:
        # A record must never speak of bytes that a power cut can still take.
        self._artifacts.sync()
        self._ledger.append(entries, rows, at)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        return self._thread.submit(self._timed, work)

    def _timed(self, work: Callable[[], T]) -> T:
        self._since = time.monotonic()
        try:
            return work()
        finally:
            with self._guard:
                self._late_s += self._late_now()
                self._since = None

    def _late_now(self) -> float:
        return 0.0 if self._since is None else max(0.0, time.monotonic() - self._since - LATE_S)
