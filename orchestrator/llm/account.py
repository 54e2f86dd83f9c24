"""What one line may still use. Worst cases are held before a call, and what it did cost is taken after it.

At any time, what was spent and what is held together are within the allowance: parallel calls cannot pass it.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.refusal import Refused

MOST_OPEN = 64
MOST_BYTES = 64 << 20
_MINUTE = 60.0


@dataclass(eq=False)
class Held:
    """One call's worst case. To be settled exactly once."""

    worst: Spent
    granted: "asyncio.Future[None]" = field(repr=False)


class Account:
    def __init__(self, allowance: Allowance, clock: Callable[[], float]) -> None:
        self.allowance = allowance
        self.spent = Spent()
        self._clock = clock
        self._open: set[Held] = set()
        self._queue: deque[Held] = deque()

    @property
    def held(self) -> Spent:
        return sum((held.worst for held in self._open), Spent())

    async def reserve(self, worst: Spent, waits: Callable[[], None]) -> Held:
        """Waits its turn while other calls of the line hold what it needs. Raises Refused."""
        held = Held(worst, asyncio.get_running_loop().create_future())
        self._queue.append(held)
        self._turn()
        if not held.granted.done():
            waits()
        try:
            await asyncio.wait_for(held.granted, self._left_s())
        except TimeoutError:
            self._withdraw(held)
            raise expired() from None
        except asyncio.CancelledError:
            self._withdraw(held)
            raise
        return held

    def settle(self, held: Held, spent: Spent) -> None:
        self._open.discard(held)
        self.spent += spent
        self._turn()

    def _withdraw(self, held: Held) -> None:
        """Nobody waits for it any more, though it may have been granted in this very moment."""
        if held in self._queue:
            self._queue.remove(held)
        self.settle(held, Spent())

    def _turn(self) -> None:
        """First come, first served; who cannot be served any more is told at once."""
        for held in list(self._queue):
            if refused := self._never(held.worst):
                self._queue.remove(held)
                if not held.granted.done():
                    held.granted.set_exception(refused)
        while self._queue and self._fits(self._queue[0].worst):
            held = self._queue.popleft()
            if not held.granted.done():
                self._open.add(held)
                held.granted.set_result(None)

    def _never(self, worst: Spent) -> Refused | None:
        """Whether it fits no more. What is more than the whole allowance never did."""
        whole, most = self.allowance.microdollars, self.allowance.tokens
        if worst.microdollars > whole - self.spent.microdollars:
            needed, had = _dollars(worst.microdollars, up=True), _dollars(whole - self.spent.microdollars)
            why = (
                f"this call may cost {needed}, and {had} of the allowance are left; less max_tokens or input costs less"
            )
            change = f"raise model.usd above {needed}, or set the agent up to ask for less max_tokens"
            return _over(why, change, always=worst.microdollars > whole)
        if most is not None and worst.tokens > most - self.spent.tokens:
            had = f"{max(0, most - self.spent.tokens):,}"
            why = f"this call may take {worst.tokens:,} tokens, and {had} of the allowance are left"
            change = f"raise model.tokens above {worst.tokens:,}, or set the agent up to ask for less max_tokens"
            return _over(why, change, always=worst.tokens > most)
        return None

    def _fits(self, worst: Spent) -> bool:
        taken = self.spent + self.held + worst
        tokens = self.allowance.tokens
        return taken.microdollars <= self.allowance.microdollars and (tokens is None or taken.tokens <= tokens)

    def _left_s(self) -> float | None:
        until = self.allowance.expires_at
        return None if until is None else max(0.0, until - self._clock())


def _over(why: str, change: str, *, always: bool) -> Refused:
    return Refused(402, why, change=change if always else "", always=always)


def expired() -> Refused:
    return Refused(401, "this token has expired")


def slow_down(why: str, wait_s: int) -> Refused:
    """Our own limit, not the provider's: a client that reads the second header may wait for as long."""
    return Refused(429, why, {"retry-after": str(wait_s), "x-blastdoor-wait": str(wait_s)})


def _dollars(micro: int, *, up: bool = False) -> str:
    cents = -(-micro // 100) if up else micro // 100
    return f"${max(0, cents) / 10_000:.4f}"


class PerMinute:
    """So many requests in any minute."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._seen: deque[float] = deque()

    def admit(self) -> None:
        """Raises Refused with the seconds to wait."""
        now = self._clock()
        while self._seen and self._seen[0] <= now - _MINUTE:
            self._seen.popleft()
        if len(self._seen) >= self._most:
            wait = math.ceil(self._seen[0] + _MINUTE - now if self._seen else _MINUTE)
            raise slow_down(f"this token may make {self._most} requests a minute", max(1, wait))
        self._seen.append(now)
