"""One call from intent to end. Whatever happens between, it ends exactly once, and at no less than it can cost."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Any

import structlog

from orchestrator.domain.model_use import CallEnding, Tokens
from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Call, Used
from orchestrator.llm.meter import Meter
from orchestrator.llm.open_line import OpenLine
from orchestrator.llm.refusal import Refused
from orchestrator.llm.screening import Asked
from orchestrator.watch.signals import Hold, Kind, Signal


class Fate(Enum):
    """What the provider may bill. From the first byte that goes out, everything is possible until it says so."""

    KEPT_HERE = auto()
    SENT = auto()
    DECLINED = auto()


class OpenCall:
    def __init__(self, record: Call, asked: Asked, line: OpenLine) -> None:
        self.record = record
        self.asked = asked
        self.meter = Meter(record.id, asked, line.ear.heard, line.clock)
        self.fate = Fate.KEPT_HERE
        self._ear = line.ear
        self._clock = line.clock
        self._standing = line.standing
        self._began = line.clock()

    def sent(self) -> None:
        """Raises Refused where the provider was found unusable while this one waited."""
        if (why := self._standing.unusable) is not None:
            raise Refused(401, why)
        self.fate = Fate.SENT

    def hear(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that are whole by now."""
        events = self.meter.feed(chunk)
        if self.meter.started:
            self._standing.answered()
        return events

    def waits(self) -> None:
        """The last try was refused; until the next one goes out, nothing can be billed."""
        self.fate = Fate.DECLINED
        self._ear.heard(Signal(self._clock(), Kind.WAITING, self.record.id, hold=Hold.QUEUED))

    def used(self) -> Used:
        first = self.meter.first_at
        first_s = None if first is None else max(0.0, first - self._began)
        seconds = max(0.0, self._clock() - self._began)
        if self.meter.complete:
            return Used(CallEnding.COMPLETE, self.meter.usage.tokens, self.meter.usage.spent, first_s, seconds)
        refused = self.meter.error is not None and not self.meter.started
        if self.fate is not Fate.SENT or refused:
            return Used(CallEnding.FAILED, Tokens(), Spent(), first_s, seconds)
        if doubt := self.meter.usage.doubt:
            structlog.get_logger().warning("gateway.usage_not_believed", call=self.record.id, why=doubt)
        return Used(CallEnding.CUT, self._most_tokens(), self._most_spent(), first_s, seconds)

    def _most_spent(self) -> Spent:
        """The worst case of what was begun, or more where the provider itself says so: what was spent is spent.

        A first word on usage bounds the input. Of the output nobody knows where the provider stopped.
        """
        asked, told, given = self.asked, self.meter.usage.spent, self.meter.usage.given
        cost = asked.price.worst(given, asked.max_tokens, written=asked.written, hour=asked.hour)
        tokens = given + asked.max_tokens
        return Spent(microdollars=max(cost, told.microdollars), tokens=max(tokens, told.tokens))

    def _most_tokens(self) -> Tokens:
        told = self.meter.usage.tokens
        given = self.meter.usage.given
        if told.total > given + self.asked.max_tokens:
            return told
        kind = "cache_write" if self.asked.written else "input"
        return Tokens(**{kind: given, "output": self.asked.max_tokens})


@asynccontextmanager
async def opened(asked: Asked, line: OpenLine) -> AsyncIterator[OpenCall]:
    """Reserved, on record, and open until it is left. Raises Refused, before anything was forwarded."""
    account, ear, clock, worst = line.account, line.ear, line.clock, asked.worst
    record = Call(f"call-{secrets.token_hex(8)}", account.allowance.role, asked.model, worst)
    ear.heard(Signal(clock(), Kind.REQUESTED, record.id))
    try:
        held = await account.reserve(
            worst, lambda: ear.heard(Signal(clock(), Kind.WAITING, record.id, hold=Hold.QUEUED))
        )
    except BaseException:
        ear.heard(Signal(clock(), Kind.CUT, record.id))
        raise
    line.let_through()
    try:
        await ear.intended(record)
    except asyncio.CancelledError:
        account.settle(held, Spent())
        ear.heard(Signal(clock(), Kind.CUT, record.id))
        ear.ended(record, Used(CallEnding.FAILED, Tokens(), Spent(), None, 0.0))
        raise
    except Exception as error:
        account.settle(held, Spent())
        ear.heard(Signal(clock(), Kind.CUT, record.id))
        structlog.get_logger().error("gateway.not_on_record", call=record.id, why=type(error).__name__)
        raise Refused(500, "the call could not be put on record", {"x-should-retry": "false"}) from error
    call = OpenCall(record, asked, line)
    try:
        yield call
    finally:
        used = call.used()
        line.standing.found(call.meter.usage.outside or None)
        try:
            ended = Kind.FINISHED if used.ending is CallEnding.COMPLETE else Kind.CUT
            ear.heard(Signal(clock(), ended, record.id))
        finally:
            account.settle(held, used.spent)
            ear.ended(record, used)
