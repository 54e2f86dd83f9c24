"""What was booked at its worst is settled once its provider can tell how long it lived.

Only a provider's word lowers what is booked, and never below what it charges for.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime

import structlog

from orchestrator.budget import Account, Amounts, micro_dollars
from orchestrator.domain import events as e
from orchestrator.domain.records import Unsettled
from orchestrator.door import Door
from orchestrator.loop.book import Book
from sandbox import SandboxError

_log = structlog.get_logger()
# How often a provider is asked about what was booked lately, and about what is older.
SOON_S, LATER_S = 5.0, 60.0
# For so long a campaign that has nothing else to do waits for an answer: a create that was given up may take effect
# for a minute, and until then no provider can say that nothing came of it.
HOPE_S = 75.0
ASK_S = 20.0
AT_ONCE = 64
# Nothing that was rented lives for a thousand years.
LONGEST_S = 3.2e10


class Settling:
    """Asks beside the work of a session. `clock` is for waits alone."""

    def __init__(self, book: Book, door: Door) -> None:
        self._book = book
        self._door = door
        self._asking: asyncio.Task[dict[str, float]] | None = None
        self._asked_at = float("-inf")
        self._asked: dict[str, float] = {}  # when, of each chamber
        self.clock: Callable[[], float] = time.monotonic

    @property
    def is_pending(self) -> bool:
        """Whether an answer may come soon that frees money."""
        return self._is_soon(self._open())

    def turn(self) -> None:
        """Record what is known by now, and ask again when it is time."""
        if self._asking and self._asking.done():
            self._record(self._asking.result())
            self._asking = None
        open_ = self._open() if self._asking is None else []
        if open_ and self.clock() - self._asked_at >= (SOON_S if self._is_soon(open_) else LATER_S):
            self._asking = asyncio.create_task(self._ask(open_), name="settle")

    async def give_up(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait([self._asking])
            self._asking = None

    async def close(self) -> None:
        """Ask once more, about all."""
        await self.give_up()
        if open_ := self._open():
            self._record(await self._ask(open_))

    def _open(self) -> list[Unsettled]:
        """Those that the accounts have, and that this provider can tell of."""
        doubts = self._book.state.doubts.values()
        return [it for it in doubts if it.registry == self._door.registry and it.lost is not None]

    def _is_soon(self, doubts: list[Unsettled]) -> bool:
        """A clock that was set back must not keep a session waiting for as long."""
        return any(it.chamber not in self._asked or abs(self._age_s(it)) < HOPE_S for it in doubts)

    def _age_s(self, doubt: Unsettled) -> float:
        return (self._book.now() - datetime.fromisoformat(doubt.since)).total_seconds()

    async def _ask(self, doubts: list[Unsettled]) -> dict[str, float]:
        doubts = sorted(doubts, key=lambda it: self._asked.get(it.chamber, float("-inf")))[:AT_ONCE]
        given_up = {it.chamber: datetime.fromisoformat(it.since).timestamp() for it in doubts}
        lived: dict[str, float] = {}
        try:
            async with asyncio.timeout(ASK_S):
                lived = await self._door.lifetimes(given_up)
        except (SandboxError, TimeoutError) as error:
            _log.debug("the provider does not say how long chambers lived", error=str(error))
        self._asked_at = self.clock()
        self._asked |= dict.fromkeys(given_up, self._asked_at)
        return lived

    def _record(self, lived: dict[str, float]) -> None:
        """What is no time that anything can have lived is no word: it would free more than was booked."""
        lived = {chamber: seconds for chamber, seconds in lived.items() if 0 <= seconds < LONGEST_S}
        settled = [it for it in self._open() if it.chamber in lived]
        self._book.record(*(_settled(it, lived[it.chamber]) for it in settled))


def _settled(doubt: Unsettled, seconds: float) -> e.DoubtSettled:
    usd = max(0, doubt.microdollars - micro_dollars(doubt.usd_per_second * seconds))
    ms = max(0, doubt.milliseconds - round(seconds * 1000))
    freed = Amounts.exact({Account.USD: usd, Account.SECONDS: ms}).as_row()
    return e.DoubtSettled(chamber=doubt.chamber, seconds=seconds, freed=freed, lost=bool(doubt.lost))
