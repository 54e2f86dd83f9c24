"""Who pays for what stands at a provider longer than one chamber: the campaign, under the same caps as all else.

Each thing has a hold of its own that belongs to no attempt. The intent, with its worst case, is on record before the
thing exists; its end and what it cost are one transaction. What stands must not keep attempts from starting, so
nothing is made unless a whole attempt still fits beside it.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from orchestrator.budget import Account, Amounts, micro_dollars
from orchestrator.domain import events as e
from orchestrator.domain.records import STANDING, Doubt, Spent, Standing
from orchestrator.loop.book import Book

_log = structlog.get_logger()


class CampaignPurse:
    """Implements the sandbox's `Purse`. `beside` is what must still fit when something is made to stand."""

    def __init__(self, book: Book, backend: str, beside: Callable[[], Amounts], registry: str = "") -> None:
        self._book = book
        self._backend = backend
        self._beside = beside
        self._registry = registry
        self._closed = False
        self._warned = False

    async def reserve(self, name: str, worst_usd: float, usd_per_second: float | None = None) -> bool:
        if not self.set_aside(name, worst_usd, usd_per_second):
            return False
        try:
            await self._book.durable()
        except asyncio.CancelledError:
            self.settle(name, 0.0)  # nothing was made
            raise
        # What the end of the session has booked meanwhile must not be made.
        return not self._closed and name in self._book.state.standing

    def set_aside(self, name: str, worst_usd: float, usd_per_second: float | None = None) -> bool:
        """Recorded, and not on disk yet."""
        book, worst = self._book, Spent(microdollars=micro_dollars(worst_usd))
        if self._closed or name in book.state.standing:
            return False
        if short := book.accounts.shortage(_dollars(worst) + self._beside()):
            if short.account is Account.USD:  # when attempts are used up, nothing has to stand
                self._warn(worst_usd)
            return False
        book.record(
            e.StandingIntended(
                name=name,
                backend=self._backend,
                worst=worst,
                usd_per_second=usd_per_second,
                registry=self._registry,
            ),
            e.Reserved(hold=hold_of(name), amounts=_dollars(worst).as_row()),
        )
        return True

    def _warn(self, worst_usd: float) -> None:
        """Once: a trial then opens what it needs for itself, which takes longer and is no failure."""
        if not self._warned:
            self._warned = True
            left = (self._book.accounts.left(Account.USD) or 0) / 1e6
            needs, remains = f"${worst_usd:.2f} and an attempt", f"${left:.2f}"
            _log.warning("nothing stands between trials: the cap is too small", sets_aside=needs, left=remains)

    def settle(self, name: str, usd: float, *, seen: bool = True) -> None:
        """Whatever is not on record any more was booked when the session ended: it is never charged twice."""
        if self._closed or name not in self._book.state.standing:
            _log.warning("standing thing ended late", name=name, usd=usd)
            return
        one = self._book.state.standing[name]
        # Its own end came by then, however long the provider took to confirm it.
        spent = Spent(microdollars=min(micro_dollars(usd), one.worst.microdollars))
        self._book.record(*_ended(name, spent if seen else _in_doubt(one, spent), interrupted=not seen))

    def close(self) -> None:
        """From here on nothing is made, and nothing is booked: the last event of the session may follow."""
        self._closed = True


def _dollars(spent: Spent) -> Amounts:
    return Amounts.exact({Account.USD: spent.microdollars})


def hold_of(name: str) -> str:
    return f"{STANDING}{name}"


def settle_left(book: Book, *, worst: bool) -> list[str]:
    """Close what nobody of ours saw the end of: the names. Its owner is gone, or it could not be ended.

    It has cost at most its price for the seconds since its intent, and never more than its worst case, which is booked
    with `worst`: then nobody knows whether it is gone.
    """
    left = list(book.state.standing.values())
    for one in left:
        spent = one.worst if worst else _at_most(one, book.now())
        book.record(*_ended(one.name, _in_doubt(one, spent), interrupted=True))
    return [one.name for one in left]


def _at_most(one: Standing, now: datetime) -> Spent:
    passed = (now - datetime.fromisoformat(one.since)).total_seconds()
    if one.usd_per_second is None or passed < 0:  # a clock that was set back tells nothing
        return one.worst
    return Spent(microdollars=min(one.worst.microdollars, micro_dollars(passed * one.usd_per_second)))


def _in_doubt(one: Standing, spent: Spent) -> Spent:
    if not one.registry or one.usd_per_second is None:
        return spent
    doubt = Doubt(
        chamber=one.name,
        registry=one.registry,
        usd_per_second=one.usd_per_second,
        microdollars=spent.microdollars,
    )
    return spent.model_copy(update={"doubts": (doubt,)})


def _ended(name: str, spent: Spent, *, interrupted: bool = False) -> list[e.Event]:
    return [
        e.StandingEnded(name=name, spent=spent, interrupted=interrupted),
        e.Settled(hold=hold_of(name), node="", spent=_dollars(spent).as_row()),
    ]
