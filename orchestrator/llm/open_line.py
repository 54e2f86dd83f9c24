"""A line as the gateway keeps it: what was given, what is in flight, and how it is ended."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from orchestrator.llm.account import MOST_BYTES, MOST_OPEN, Account, PerMinute, expired, slow_down
from orchestrator.llm.allowance import Allowance, Ear
from orchestrator.llm.line import Answer, App, Message, Refusal, Scope
from orchestrator.llm.prices import Prices
from orchestrator.llm.refusal import Refused
from orchestrator.llm.standing import Standing
from orchestrator.text import short
from orchestrator.watch.signals import Kind, Signal

_COUNTS_A_MINUTE = 120
_REMEMBERED = 4096
_AGAIN_S = 0.5
# Where a request's scope says who hears of a refusal.
_NOTES = "blastdoor.notes"
_FOR_GOOD = (400, 402, 403, 404, 413)

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class OpenLine:
    def __init__(
        self,
        app: App,
        token: str,
        allowance: Allowance,
        ear: Ear,
        clock: Callable[[], float],
        prices: Prices,
        standing: Standing,
    ) -> None:
        self.app = self._noting(app)
        self.token = token
        self.allowance = allowance
        self.ear = ear
        self.clock = clock
        self.prices = prices
        self.standing = standing
        self.account = Account(allowance, clock)
        self.answers = 0
        self.faults = 0
        self.refusal: Refusal | None = None
        self.barred: Refusal | None = None
        self._let_through = False
        self._calls = PerMinute(allowance.per_minute, clock) if allowance.per_minute is not None else None
        self._counts = PerMinute(allowance.per_minute or _COUNTS_A_MINUTE, clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._bytes = 0
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenLine(role={self.allowance.role}, models={self.allowance.models})"

    @property
    def models(self) -> Sequence[str]:
        return self.allowance.models

    @property
    def unanswered(self) -> bool:
        return self.faults > 0 and not self.answers

    def _noting(self, app: App) -> App:
        """The app, which tells this line what it refuses: also a request that does not show the line's token."""

        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, _NOTES: self.note}, receive, send)

        return noting

    def note(self, refused: Refused) -> None:
        """Limits that pass by themselves are not worth a word."""
        if refused.status not in _FOR_GOOD and not refused.change:
            return
        self.refusal = Refusal(short(str(refused), 300), refused.change)
        if refused.always and not (self.allowance.begun or self._let_through):
            self.barred = self.barred or self.refusal

    def let_through(self) -> None:
        """A question of this sender passes: what was refused before was one of several ways that it tried."""
        self._let_through = True
        self.barred = None

    def admit(self, *, counting: bool = False) -> None:
        """Raises Refused."""
        self.check()
        if len(self._tasks) >= MOST_OPEN:
            raise slow_down(f"this token has {MOST_OPEN} requests open", 1)
        if counting:
            self._counts.admit()
        elif self._calls is not None:
            self._calls.admit()

    def check(self) -> None:
        until = self.allowance.expires_at
        if self._closed or (until is not None and self.clock() >= until):
            raise expired()

    def hold_bytes(self, count: int) -> None:
        if self._bytes + count > MOST_BYTES:
            raise slow_down("this token has too much in flight", 1)
        self._bytes += count

    def release_bytes(self, count: int) -> None:
        self._bytes -= count

    def hear_answers(self, answers: Iterable[tuple[str, str]]) -> None:
        """What tools answered, once each: a request tells the whole story again."""
        for name, digest in answers:
            if name in self._answered:
                continue
            self._answered[name] = None
            if len(self._answered) > _REMEMBERED:
                self._answered.popitem(last=False)
            self.ear.heard(Signal(self.clock(), Kind.TOOL_ANSWERED, digest=digest))

    async def unless_gone(self, receive: Receive, work: Coroutine[Any, Any, None]) -> None:
        """Ended when the one who asks hangs up, when the line is closed, or when we are cancelled."""
        worker = asyncio.create_task(work)
        watcher = asyncio.create_task(_hung_up(receive))
        self._tasks.add(worker)
        try:
            await asyncio.wait({worker, watcher}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(worker, watcher)
            self._tasks.discard(worker)
        if not worker.cancelled():
            worker.result()
        elif self._closed:
            raise expired()

    async def close(self) -> None:
        """When it returns, every call has ended and has been told."""
        self._closed = True
        if tasks := list(self._tasks):
            await _ended(*tasks)

    async def ask(
        self,
        *,
        system: Sequence[str],
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int,
        model: str | None = None,
        thinking: int | None = None,
        temperature: float | None = None,
    ) -> Answer:
        from orchestrator.llm.asking import ask

        return await ask(self, system, messages, max_tokens, model or self.models[0], thinking, temperature)


def note_refusal(scope: Scope, refused: Refused) -> None:
    """Tell the line that the request came by."""
    if note := scope.get(_NOTES):
        note(refused)


async def _ended(*tasks: "asyncio.Task[None]") -> None:
    """Cancel them, and come back not before they are settled and told, even if we are cancelled meanwhile.

    Again and again: a cancellation that meets a connection in the moment in which it is made is lost in the library
    below.
    """
    cancelled = False
    while not all(task.done() for task in tasks):
        for task in tasks:
            task.cancel()
        try:
            await asyncio.wait(tasks, timeout=_AGAIN_S)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
