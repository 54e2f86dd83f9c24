"""Rows about the provider: several chambers, its absence, and owners who die."""

import asyncio
import contextlib

from sandbox.conformance import programs
from sandbox.conformance.check import EMPTY, SMALL, Ear, NotConforming, check, expect, expect_ending
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
            await asyncio.wait_for(ears[me].heard.wait(), 20)
            await asyncio.wait_for(everybody_settled.wait(), 30)
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
        await asyncio.wait_for(ear.heard.wait(), 20)
        await cut()
        try:
            outcome = await asyncio.wait_for(running, 60)
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
    for _ in range(100):
        if not await orphan.alive():
            return
        await asyncio.sleep(0.1)
    raise NotConforming("it still runs after ten seconds")


@check
async def orphan_is_reaped(subject: Subject) -> None:
    """What a killed owner left is found and removed."""
    orphan = await subject.orphan()
    expect(await orphan.exists(), "nothing was left to reap")
    backend = await subject.connect()
    try:
        for _ in range(100):
            await backend.reap()
            if not await orphan.exists():
                return
            await asyncio.sleep(0.1)
    finally:
        await backend.close()
    raise NotConforming("it was not removed")


@check
async def live_owner_untouched(subject: Subject) -> None:
    """Reaping never touches what belongs to an owner who lives."""
    mine, other = await subject.connect(), await subject.connect()
    ear = Ear()
    try:
        async with await mine.open(programs.FLUSH.job(limits=SMALL)) as chamber:
            running = asyncio.create_task(chamber.run(EMPTY, listener=ear))
            await asyncio.wait_for(ear.heard.wait(), 20)
            await other.reap()
            await chamber.stop()
            expect_ending(await running, Ending.STOPPED)
    finally:
        await mine.close()
        await other.close()
