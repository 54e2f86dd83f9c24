"""Work whose cost a chamber decides, in slices: after each of them everybody else on the event loop has a turn.

On the loop and not in a thread: a thread that computes shares the interpreter with the loop, which would wait for it
longer than for a slice, and a listener would have to expect a call from another thread.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import ClassVar

from sandbox.job import Limits, Mode

SLICE_S = 0.002
# What reading may cost: many times what it takes, because other caps end a flood first and machines differ.
SPARE_S = 10.0
S_PER_BYTE = 0.25e-6
S_PER_FILE = 1e-3
S_PER_FRAME = 1e-4


def most_seconds(limits: Limits, mode: Mode) -> float:
    """The processor time after which a chamber has cost too much to be read."""
    frames = limits.frames if mode is Mode.RELAY else 0
    sizes = S_PER_BYTE * (limits.log_bytes + limits.output_bytes)
    return SPARE_S + sizes + S_PER_FILE * limits.output_files + S_PER_FRAME * frames


class Reading:
    """Of one chamber. All that read at a time share one slice, so that a hundred floods cost no more than one."""

    _at_work: ClassVar[int] = 0

    def __init__(self) -> None:
        self.spent_s = 0.0

    async def read(self, steps: Iterator[None]) -> None:
        Reading._at_work += 1
        try:
            while self._slice(steps):  # noqa: ASYNC110  nothing is waited for
                await asyncio.sleep(0)
        finally:
            Reading._at_work -= 1

    def _slice(self, steps: Iterator[None]) -> bool:
        """Whether there is more to do."""
        began, until = time.thread_time(), time.monotonic() + SLICE_S / Reading._at_work
        try:
            for _ in steps:  # noqa: SIM110  a generator around it would double the cost of a step
                if time.monotonic() >= until:
                    return True
            return False
        finally:
            self.spent_s += time.thread_time() - began
