"""The one circuit breaker of a campaign, for all of its providers: engine, rented machines, model.

Closed: attempts run. Open: nothing is started and nobody is asked, until the providers that failed answer a probe,
which is one cheap call; the wait before the next probe doubles. Trying: one attempt at a time is let through. What it
brings closes the breaker, or opens it again for longer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.domain import events as e
from orchestrator.domain.model_use import CallEnding
from orchestrator.loop.book import Book

MODEL = "model"
# What a probe may take. A provider that needs longer to say that it is there is not there yet.
PROBE_S = 20.0
Probe = Callable[[], Awaitable[bool]]


class Standing(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    TRYING = "trying"


@dataclass
class Breaker:
    """Pure: times are any clock's. `many` failures of a provider in a row open it, whatever their kind.

    A stall may be the attempt's own doing, so one attempt counts once, and `stalls` of them are needed.
    """

    many: int = 2
    stalls: int = 2
    within_s: float = 600.0
    first_s: float = 5.0
    longest_probe_s: float = 60.0
    longest_s: float = 1800.0
    standing: Standing = Standing.CLOSED
    away: set[str] = field(default_factory=set)
    tries: int = 0
    wait_s: float = 0.0
    due_at: float = 0.0
    _failures: dict[str, list[float]] = field(default_factory=dict)
    _stalls: dict[str, float] = field(default_factory=dict)

    def failed(self, provider: str, now: float) -> bool:
        """A provider failed. Whether that opened the breaker, or lengthens what it waits for."""
        recent = [at for at in self._failures.get(provider, ()) if at >= now - self.within_s]
        self._failures[provider] = [*recent, now]
        return self._heard(provider, enough=len(recent) + 1 >= self.many, now=now)

    def stalled(self, node: str, now: float) -> bool:
        """An attempt that asks a model stalled."""
        self._stalls = {name: at for name, at in self._stalls.items() if at >= now - self.within_s} | {node: now}
        return self._heard(MODEL, enough=len(self._stalls) >= self.stalls, now=now)

    def answered(self, provider: str, now: float) -> bool:
        """A provider did what it was asked for. Whether that closed the breaker."""
        self._failures.pop(provider, None)
        if provider == MODEL:
            self._stalls.clear()
        if provider not in self.away:
            return False
        if self.standing is Standing.OPEN:  # one that was under way got through: look at once
            self.due_at = now
            return False
        self.away.discard(provider)
        if self.away:
            return False
        self.standing, self.tries = Standing.CLOSED, 0
        return True

    def probed(self, answers: bool, now: float) -> None:
        if self.standing is not Standing.OPEN:
            return
        if answers:
            self.standing = Standing.TRYING
        else:
            self._open(now, self.longest_probe_s)

    def reopen(self, providers: set[str], now: float) -> None:
        """As a session that died left it: it is probed before anything is started."""
        self.standing, self.away, self.due_at = Standing.OPEN, set(providers), now

    def hurry(self, now: float) -> None:
        """A person wants it tried at once."""
        self.due_at = min(self.due_at, now)

    def _heard(self, provider: str, *, enough: bool, now: float) -> bool:
        if self.standing is Standing.OPEN:  # it was under way when it opened
            new = enough and provider not in self.away
            self.away |= {provider} if enough else set()
            return new
        if self.standing is Standing.TRYING and provider in self.away:
            self._open(now, self.longest_s)
            return True
        if enough:
            self.away.add(provider)
            self._open(now, self.longest_s if self.standing is Standing.TRYING else self.longest_probe_s)
        return enough

    def _open(self, now: float, longest: float) -> None:
        self.standing = Standing.OPEN
        self.wait_s = min(longest, self.first_s * 2.0 ** min(self.tries, 30))
        self.due_at = now + self.wait_s
        self.tries += 1


class CampaignBreaker:
    """The breaker in a campaign: hears its events, keeps its standing on record, and probes.

    `probes` has a cheap call for each provider; candidates run at `away`, judges and agents at `home`. It is told of
    failures by those who know whose doing an ending was.
    """

    def __init__(self, book: Book, probes: Mapping[str, Probe], *, away: str, home: str) -> None:
        self._book = book
        self._probes = probes
        self._away = away
        self._home = home
        self.clock: Callable[[], float] = time.monotonic
        self.pure = Breaker()
        self._since = 0.0
        self._why = ""
        self._news: list[e.Event] = []
        self._probing: asyncio.Task[bool] | None = None

    def begin(self, width: int) -> None:
        """With the session: one that finds the breaker open in the ledger probes first."""
        self.pure.stalls = max(2, (width + 1) // 2)
        self._book.observers.append(self._hear)
        if known := set(self._book.state.campaign.away_from) & self._probes.keys():
            self._since, self._why = self.clock(), self._book.state.campaign.away
            self.pure.reopen(known, self.clock())
        elif self._book.state.campaign.away:
            self._book.record(e.BreakerClosed())

    @property
    def standing(self) -> Standing:
        return self.pure.standing

    @property
    def is_open(self) -> bool:
        return self.pure.standing is Standing.OPEN

    @property
    def is_trying(self) -> bool:
        return self.pure.standing is Standing.TRYING

    @property
    def why(self) -> str:
        return self._why

    @property
    def open_s(self) -> float:
        """For how long nothing has got through."""
        return 0.0 if self.pure.standing is Standing.CLOSED else self.clock() - self._since

    def failed(self, provider: str, why: str) -> None:
        was_closed = self.pure.standing is Standing.CLOSED
        if self.pure.failed(provider, self.clock()):
            self._opened(why, was_closed)

    def stalled(self, node: str, why: str) -> None:
        was_closed = self.pure.standing is Standing.CLOSED
        if self.pure.stalled(node, self.clock()):
            self._opened(why, was_closed)

    async def vouches(self, provider: str) -> bool:
        """Whether the provider answers right now. Nobody is set aside for good on the word of one that does not."""
        probe = self._probes.get(provider)
        if probe is None or await _answers(probe):
            return True
        self.failed(provider, f"{provider} does not answer")
        return False

    def look(self) -> None:
        """Once a turn: record what changed, begin a probe that is due, and heed one that is over."""
        if self._probing and self._probing.done():
            probing, self._probing = self._probing, None
            answers = probing.result()
            self.pure.probed(answers, self.clock())
            if self.is_trying:
                self._news.append(e.BreakerTried())
            elif self.is_open and not answers:
                self._news.append(self._record())
        if self._news:
            news, self._news = self._news, []
            self._book.record(*news)
        if self.is_open and self._probing is None and self.clock() >= self.pure.due_at:
            self._probing = asyncio.create_task(self._probe(), name="probe")

    async def close(self) -> None:
        if self._probing:
            self._probing.cancel()
            await asyncio.wait([self._probing])
            self._probing = None

    async def _probe(self) -> bool:
        probes = [self._probes[name] for name in sorted(self.pure.away) if name in self._probes]
        return all([await _answers(probe) for probe in probes])

    def _opened(self, why: str, was_closed: bool) -> None:
        self._why = why
        if was_closed:
            self._since = self.clock()
        self._news.append(self._record())

    def _record(self) -> e.BreakerOpened:
        providers = tuple(sorted(self.pure.away))
        wait, tries = round(max(0.0, self.pure.due_at - self.clock()), 3), self.pure.tries - 1
        return e.BreakerOpened(providers=providers, why=self._why, wait_s=wait, tries=max(0, tries))

    def _hear(self, event: e.Event, _: str) -> None:
        """Only noted: an observer of an event must not record another."""
        provider = self._answered_by(event)
        if provider and self.pure.answered(provider, self.clock()):
            self._news.append(e.BreakerClosed())
        if isinstance(event, e.PauseSet) and not event.paused:  # a person's word
            self.pure.hurry(self.clock())

    def _answered_by(self, event: e.Event) -> str | None:
        """Who did what it was asked for. A tune is no answer of a model: its agent may be going in circles."""
        match event:
            case e.TrialEnded(ending=ending) if ending is None or not ending.retryable:
                return self._away
            case e.JudgingEnded(interrupted=False) | e.AgentEnded(interrupted=False, ending="submitted"):
                return self._home
            case e.ModelCallEnded(ending=CallEnding.COMPLETE):
                return MODEL
        return None


async def _answers(probe: Probe) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(PROBE_S):
            return await probe()
    return False
