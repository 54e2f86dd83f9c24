"""What a row of the contract is, and what rows are written with."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from sandbox.backend import Backend, Listener, Talk
from sandbox.bundle import Bundle
from sandbox.conformance.programs import Program
from sandbox.conformance.subject import Subject
from sandbox.job import Ending, Limits, Outcome
from sandbox.wire.log import Report

# What a machine may take that does much else. Only a row that says so is about times.
PATIENCE_S = 60.0
SMALL = Limits(wall=30, grace=20, memory="64MiB", work_bytes="16MiB")
EMPTY = Bundle({})


class NotConforming(AssertionError):
    """A backend broke a row of the contract."""


def expect(condition: object, otherwise: object) -> None:
    if not condition:
        raise NotConforming(str(otherwise))


@dataclass
class Ear:
    """A listener that remembers, and tells when it first heard something."""

    lines: list[str] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def hears(self) -> None:
        await asyncio.wait_for(self.heard.wait(), PATIENCE_S)

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.heard.set()

    def report(self, report: Report) -> None:
        self.reports.append(report)


Check = Callable[[Subject], Awaitable[None]]
OneJob = Callable[[Backend], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def one_backend(function: OneJob) -> OneJob:
    """A row that needs no more than a connected backend."""

    async def connected(subject: Subject) -> None:
        backend = await subject.connect()
        try:
            await function(backend)
        finally:
            await backend.close()

    connected.__doc__ = function.__doc__
    CHECKS[function.__name__] = connected
    return function


async def run(
    backend: Backend,
    program: Program,
    bundle: Bundle = EMPTY,
    *,
    listener: Listener | None = None,
    talk: Talk | None = None,
    limits: Limits = SMALL,
    **job: object,
) -> Outcome:
    async with await backend.open(program.job(limits=limits, **job)) as chamber:
        return await chamber.run(bundle, listener=listener, talk=talk)


def expect_ending(outcome: Outcome, ending: Ending) -> None:
    tail = outcome.log_tail[-200:]
    expect(outcome.ending is ending, f"{outcome.ending} instead of {ending}: {outcome.reason} {tail!r}")
