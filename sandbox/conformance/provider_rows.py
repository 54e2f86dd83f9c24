"""Rows about the provider: several chambers, its absence, and owners who die."""

import asyncio
import contextlib
import time

from sandbox.conformance import programs
from sandbox.conformance.check import EMPTY, PATIENCE_S, SMALL, Ear, NotConforming, check, expect, expect_ending
from sandbox.conformance.subject import Subject
from sandbox.errors import SandboxError, Unavailable
from sandbox.job import Ending, Outcome


@check
async def neighbours_see_nothing(subject: Subject) -> None:
    """Two chambers at once share no files, memory, sockets or processes."""
    backend = await subject.connect()
    ears = {"A": Ear(), "B": Ear()}
    everybody_settled = asyncio.Barrier(2)

    async def neighbour(me: str, other: str) -> Outcome:
        async with await backend.open(programs.NEIGHBOUR.job(limits=SMALL, env={"ME": me, "OTHER": other})) as chamber:
            running = asyncio.create_task(chamber.run(EMPTY, listener=ears[me]))
            await ears[me].hears()
            await asyncio.wait_for(everybody_settled.wait(), PATIENCE_S)
            await chamber.stop()
            return await running

    try:
        outcomes = await asyncio.gather(neighbour("A", "B"), neighbour("B", "A"))
    finally:
        await backend.close()
    for outcome in outcomes:
        expect_ending(outcome, Ending.STOPPED)
        expect(outcome.outputs.get("found") == b"[]", f"found {outcome.outputs.get('found')!r}")


@check
async def provider_gone(subject: Subject) -> None:
    """A provider that goes away half-way is Unavailable, never a failure of the program."""
    backend, cut = await subject.connect_cuttable()
    ear = Ear()
    try:
        chamber = await backend.open(programs.SLEEP.job(limits=SMALL))
        running = asyncio.create_task(chamber.run(EMPTY, listener=ear))
        await ear.hears()
        await cut()
        try:
            outcome = await asyncio.wait_for(running, 2 * PATIENCE_S)
        except Unavailable:
            return
        raise NotConforming(f"it was called {outcome.ending}")
    finally:
        with contextlib.suppress(SandboxError):  # its provider is gone: that is the row
            await backend.close()


@check
async def orphan_ends_itself(subject: Subject) -> None:
    """When its owner is killed, nothing in a chamber runs on, even before anybody reaps."""
    orphan = await subject.orphan()
    until = time.monotonic() + PATIENCE_S
    while await orphan.alive():
        expect(time.monotonic() < until, f"it still runs after {PATIENCE_S:g} s")
        await asyncio.sleep(0.1)


@check
async def orphan_is_reaped(subject: Subject) -> None:
    """What a killed owner left is found and removed."""
    orphan = await subject.orphan()
    expect(await orphan.exists(), "nothing was left to reap")
    backend = await subject.connect()
    try:
        until = time.monotonic() + PATIENCE_S
        await backend.reap()
        while await orphan.exists():
            expect(time.monotonic() < until, f"it was not removed within {PATIENCE_S:g} s")
            await asyncio.sleep(0.1)
            await backend.reap()
    finally:
        await backend.close()


@check
async def live_owner_untouched(subject: Subject) -> None:
    """Reaping never touches what belongs to an owner who lives."""
    mine, other = await subject.connect(), await subject.connect()
    ear = Ear()
    try:
        async with await mine.open(programs.FLUSH.job(limits=SMALL)) as chamber:
            running = asyncio.create_task(chamber.run(EMPTY, listener=ear))
            await ear.hears()
            await other.reap()
            await chamber.stop()
            expect_ending(await running, Ending.STOPPED)
    finally:
        await mine.close()
        await other.close()
