"""The one circuit breaker of a campaign, for all of its providers: engine, rented machines, model.

Closed: attempts run. Open: nothing is started and nobody is asked, until the providers that failed answer a probe,
which is one cheap call; the wait before the next probe doubles. Trying: one attempt at a time is let through. What it
brings closes the breaker, or opens it again for longer.
"""

import asyncio
import time
from collections import Counter
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
QUIET_S, ANSWER_S, AGAIN_S = 30.0, 3.0, 1.0
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
    _opened_at: float = 0.0
    _waited_s: float = 0.0
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
        self.standing, self.tries, self._waited_s = Standing.CLOSED, 0, 0.0
        return True

    def waited_s(self, now: float) -> float:
        """For how long nothing was let through since it was closed; what is tried meanwhile takes its own time."""
        return self._waited_s + (now - self._opened_at if self.standing is Standing.OPEN else 0.0)

    def probed(self, answers: bool, now: float) -> None:
        if self.standing is not Standing.OPEN:
            return
        if answers:
            self._waited_s = self.waited_s(now)
            self.standing = Standing.TRYING
        else:
            self._open(now, self.longest_probe_s)

    def reopen(self, providers: set[str], now: float) -> None:
        """As a session that died left it: it is probed before anything is started."""
        self.standing, self.away, self.due_at, self._opened_at = Standing.OPEN, set(providers), now, now

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
        if self.standing is not Standing.OPEN:
            self._opened_at = now
        self.standing = Standing.OPEN
        self.wait_s = min(longest, self.first_s * 2.0 ** min(self.tries, 30))
        self.due_at = now + self.wait_s
        self.tries += 1


class CampaignBreaker:
    """The breaker in a campaign: hears its events, keeps its standing on record, and probes.

    `probes` has a cheap call for each provider, `questions` one that disturbs nobody who is measured meanwhile;
    candidates run at `away`, judges and agents at `home`. What is at work may wait for a silent provider for minutes
    before it gives up, so one that was not heard of for `quiet_s` is asked by ourselves. One that has no answer within
    `answer_s` is told of; two questions without any open the breaker. It is told of failures by those who know whose
    doing an ending was. `tried_in_vain` is the attempt that failed when it was let through: it may fail for reasons of
    its own, so the next one is another.
    """

    def __init__(
        self,
        book: Book,
        probes: Mapping[str, Probe],
        questions: Mapping[str, Probe],
        *,
        away: str,
        home: str,
        quiet_s: float = QUIET_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._book = book
        self._probes = probes
        self._questions = questions
        self._away = away
        self._home = home
        self._quiet_s = {home: QUIET_S, away: quiet_s}
        self._answer_s = {home: ANSWER_S, away: answer_s}
        self.clock: Callable[[], float] = time.monotonic
        self.pure = Breaker()
        self.tried_in_vain = ""
        self._why = ""
        self._asked: set[str] = set()
        self._answers: Counter[str] = Counter()
        self._answers_then: dict[tuple[str, str], int] = {}
        self._news: list[e.Event] = []
        self._probing: asyncio.Task[bool] | None = None
        self._asking: tuple[str, float, asyncio.Task[bool]] | None = None
        self._ask_at: dict[str, float] = {}

    def begin(self, width: int) -> None:
        """With the session: one that finds the breaker open in the ledger probes first."""
        self.pure.stalls = max(2, (width + 1) // 2)
        self._ask_at = {name: self.clock() + self._quiet_s[name] for name in self._questions}
        self._book.record(*(e.ProviderHeard(provider=name) for name in self._book.state.campaign.silent))
        self._book.listeners.append(self._hear)
        if known := set(self._book.state.campaign.away_from) & self._probes.keys():
            self._why = self._book.state.campaign.away
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
    def waited_s(self) -> float:
        return self.pure.waited_s(self.clock())

    def failed(self, provider: str, why: str, *, node: str = "") -> None:
        self._try_another_than(node)
        if self.pure.failed(provider, self.clock()):
            self._opened(why)

    def stalled(self, node: str, why: str) -> None:
        self._try_another_than(node)
        if self.pure.stalled(node, self.clock()):
            self._opened(why)

    def _try_another_than(self, node: str) -> None:
        if self.is_trying and node:
            self.tried_in_vain = node

    def is_alone(self, node: str, provider: str) -> bool:
        """Whether an attempt that fails there failed there before, while others got through in between."""
        before, now = self._answers_then.get((node, provider)), self._answers[provider]
        self._answers_then[node, provider] = now
        return before is not None and now > before

    async def vouches(self, provider: str) -> bool:
        """Whether the provider answers right now. Nobody is set aside for good on the word of one that does not."""
        probe = self._probes.get(provider)
        if probe is None or await _answers(probe):
            return True
        self.failed(provider, f"{provider} does not answer")
        return False

    def look(self, *, at_work: bool) -> None:
        """Once a turn: record what changed, begin a probe that is due, and heed one that is over."""
        if at_work or self._asking:
            self._ask_the_quiet()
        if self._probing and self._probing.done():
            probing, self._probing = self._probing, None
            self._heed(answers=probing.result())
        self.tell()
        if self.is_open and self._probing is None and self.clock() >= self.pure.due_at:
            self._asked = set(self.pure.away)
            self._probing = asyncio.create_task(self._probe(), name="probe")

    def _ask_the_quiet(self) -> None:
        now = self.clock()
        if self._asking:
            name, since, asking = self._asking
            if asking.done():
                self._asking = None
                self._ask_at[name] = now + (self._quiet_s[name] if asking.result() else AGAIN_S)
                self._found(name, silent=not asking.result())
                if not asking.result():
                    self.failed(name, f"{name} does not answer")
            elif now - since >= self._answer_s[name]:
                self._found(name, silent=True)
        elif self.standing is Standing.CLOSED:
            for name, at in self._ask_at.items():
                if now >= at:
                    self._asking = name, now, asyncio.create_task(_answers(self._questions[name]), name="ask")
                    return

    def _found(self, name: str, *, silent: bool) -> None:
        """Noted once: who looks on is told before anything waits."""
        event = e.ProviderSilent(provider=name) if silent else e.ProviderHeard(provider=name)
        if silent is not (name in self._book.state.campaign.silent) and event not in self._news:
            self._news.append(event)

    def _heed(self, *, answers: bool) -> None:
        if answers and self.pure.away - self._asked:  # another one went away meanwhile: all have to answer
            self.pure.hurry(self.clock())
            return
        self.pure.probed(answers, self.clock())
        if self.is_trying:
            self._news.append(e.BreakerTried())
        elif self.is_open and not answers:
            self._news.append(self._record())

    def tell(self) -> None:
        """Record what changed."""
        news, self._news = self._news, []
        if news:
            self._book.record(*news)

    async def close(self) -> None:
        for task in (self._probing, self._asking and self._asking[2]):
            if task:
                task.cancel()
                await asyncio.wait([task])
        self._probing = self._asking = None

    async def _probe(self) -> bool:
        probes = [self._probes[name] for name in sorted(self._asked) if name in self._probes]
        return all([await _answers(probe) for probe in probes])

    def _opened(self, why: str) -> None:
        self._why = why
        self._news.append(self._record())

    def _record(self) -> e.BreakerOpened:
        providers = tuple(sorted(self.pure.away))
        wait, tries = round(max(0.0, self.pure.due_at - self.clock()), 3), self.pure.tries - 1
        return e.BreakerOpened(providers=providers, why=self._why, wait_s=wait, tries=max(0, tries))

    def _hear(self, event: e.Event, _: str) -> None:
        """Only noted: an observer of an event must not record another."""
        provider = self._answered_by(event)
        self._answers[provider or ""] += 1
        if provider in self._ask_at:
            self._ask_at[provider] = self.clock() + self._quiet_s[provider]
        if provider:
            self._found(provider, silent=False)
        if provider and self.pure.answered(provider, self.clock()):
            self.tried_in_vain = ""
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
