"""What takes long is made again only so often that it takes a small part of a processor, however much happens."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Key = tuple[str, int | None]

# For each second of work, so many without: a hundredth of a processor.
REST = 100
LEAST_S = 4.0
_MOST = 32


@dataclass(frozen=True)
class _Made:
    value: dict[str, Any]
    seq: int
    until: float


class Sparing:
    """`seq` says how far the ledger was read: while it is the same, so is what was made. What is older says for how
    many seconds it will be.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._made: dict[Key, _Made] = {}

    def made(self, key: Key, seq: int, make: Callable[[Key], dict[str, Any]]) -> dict[str, Any]:
        with self._turn:
            known, began = self._made.get(key), self._clock()
            if known and known.seq == seq:
                return known.value
            if known and began < known.until:
                return {**known.value, "older_s": known.until - began}
            value = make(key)
            ended = self._clock()
            if len(self._made) >= _MOST:
                self._made.clear()
            self._made[key] = _Made(value, seq, ended + max(LEAST_S, REST * (ended - began)))
            return value
