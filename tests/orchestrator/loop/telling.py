"""What tells the story of a campaign: in virtual time, so that its waits take none, and what happens at which point."""

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import pytest

from orchestrator.domain import events as e
from orchestrator.loop import campaign
from sandbox.backends.fake.rent import Charges, Rent
from tests.orchestrator.loop.scripted import Scripted
from tests.virtual_time import VirtualTime

P = ParamSpec("P")


def in_moments(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in it. What is rented is billed by the same clock."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(campaign, "POLL_S", 0.2)
            clock = VirtualTime(patched)
            for place in ("sandbox.live", "sandbox.backends.fake.rent"):
                patched.setattr(f"{place}.billed_clock", now)
            clock.run(test(*args, **kwargs))

    return run


def now() -> float:
    return time.monotonic()


def rent_of(usd_per_second: float, **more: Any) -> Rent:
    """A provider whose register goes by virtual time."""
    return Rent(usd_per_second, Charges(clock=now), **more)


def at(session: Scripted, kind: type[e.Event], name: str, act: Callable[[], object]) -> None:
    """Act whenever such an event is one of this node, or of this trial."""
    session.when(kind, lambda it: act() if name in (getattr(it, "node", ""), getattr(it, "trial", "")) else None)
