"""Clocks of an evaluator that times the candidate's functions. Standard library only, Python 3.9 up.

A call goes to another chamber, and the way there is nobody's work: the evaluator's clocks stand still for it. What a
call took is told by the orchestrator, and the way by an empty call to the quicker of both chambers, or by the judge's
own where a request is large. So nothing of what is taken off is the candidate's to stretch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

__all__ = ["clocks", "now", "stand_still"]

now = time.perf_counter
_CLOCKS = ("perf_counter", "monotonic", "time")
_NS = 1_000_000_000
_stood = [0.0]


def stand_still(seconds: float) -> None:
    """So much of what has passed is not counted."""
    _stood[0] += seconds


@contextlib.contextmanager
def clocks() -> Iterator[None]:
    """Meanwhile whoever takes the time from the module `time` takes it from such a clock."""
    own = {name: getattr(time, name) for clock in _CLOCKS for name in (clock, f"{clock}_ns")}
    for name, clock in own.items():
        setattr(time, name, _still(clock, is_whole=name.endswith("_ns")))
    try:
        yield
    finally:
        for name, clock in own.items():
            setattr(time, name, clock)


def _still(clock: Callable[[], Any], *, is_whole: bool) -> Callable[[], Any]:
    @wraps(clock)
    def told() -> Any:
        return clock() - (int(_stood[0] * _NS) if is_whole else _stood[0])

    return told
