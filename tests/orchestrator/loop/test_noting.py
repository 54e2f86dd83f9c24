"""What is noted is on record before anything is waited for, and costs no transaction more where nothing is."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from orchestrator import offload
from orchestrator.domain import events as e
from orchestrator.ledger import Entry, Full, Ledger
from orchestrator.loop import candidate
from orchestrator.loop.attempt import Attempt
from orchestrator.loop.book import Book
from tests.orchestrator.loop.noise import gaussian, noisy
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, HELDOUT, TUNE, Scripted, scripted, write_task

NOTED = (e.Promoted, e.TrialEnded, e.JudgingEnded)
OWN: ContextVar[str] = ContextVar("the attempt at work", default="")


def owner(event: e.Event) -> str:
    return event.node if isinstance(event, e.Promoted) else str(getattr(event, "trial", "")).rpartition("-")[0]


def watch(session: Scripted, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is noted, and not on record, whenever a thread is handed work; not what another attempt noted in this turn,
    which it writes in the next one without waiting for this thread.
    """
    found: list[str] = []
    real, real_run = offload._in_thread, Attempt.run

    async def run(self: Attempt) -> str | None:
        OWN.set(self._name)  # for all that it starts, too
        return await real_run(self)

    async def watched(lane: Any, work: Any) -> Any:
        others = session.bench.state.nodes.keys() - {OWN.get()} if OWN.get() else ()
        found.extend(event.kind for event in session.bench.book._noted if owner(event) not in others)
        return await real(lane, work)

    monkeypatch.setattr(Attempt, "run", run)
    monkeypatch.setattr(offload, "_in_thread", watched)
    return found


@pytest.mark.parametrize("more", [(), (GUARD, TUNE, HELDOUT), (noisy(),)])
async def test_nothing_is_noted_while_a_thread_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Sequence[str]
) -> None:
    """Neither a candidate nor a verdict that was paid for is only in memory while its attempt waits for a thread."""
    script = Script()
    folder = write_task(tmp_path / "task", *more)
    async with scripted(folder, script, *({"value": value} for value in (3, 1, 5, 4)), width=2) as session:
        if noisy() in more:
            script.noise = gaussian(session.bench.state, 0.5)
        found = watch(session, monkeypatch)
        await session.run()
        assert not found
        assert all(session.of(kind) for kind in NOTED)


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize("kept", [candidate._TREES_KEPT, 0])
async def test_one_transaction_with_the_next(folder: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """A candidate is on record with its trial's intent, and a trial's end with its judging's; only where its tree has
    to be read once more is a candidate written alone.
    """
    monkeypatch.setattr(candidate, "_TREES_KEPT", kept)
    written: list[tuple[str, ...]] = []
    real = Ledger.append

    def append(self: Ledger, entries: Sequence[Entry], *args: Any) -> Any:
        written.append(tuple(it.kind for it in entries))
        return real(self, entries, *args)

    monkeypatch.setattr(Ledger, "append", append)
    async with scripted(folder, None, {"value": 3}, {"value": 1}) as session:
        await session.run()
    alone = Counter(kinds for kinds in written if kinds[-1] in {kind.model_fields["kind"].default for kind in NOTED})
    assert sum(alone.values()) == (0 if kept else 4), alone


async def test_what_is_noted_is_written_in_the_next_turn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody records anything more; and a disk that refuses it breaks the book for the next one."""
    async with scripted(folder, None, {"value": 3}) as session:
        book: Book = session.bench.book
        book.note(e.PauseSet(paused=True))
        assert not session.of(e.PauseSet)
        await asyncio.sleep(0)
        assert len(session.of(e.PauseSet)) == 1
        book.note(e.PauseSet(paused=False))
        book.record(e.PauseSet(paused=True))
        await asyncio.sleep(0)
        assert len(session.of(e.PauseSet)) == 3

        def full(*_: object) -> None:
            raise Full("the ledger")

        with monkeypatch.context() as patched:
            patched.setattr(book.ledger, "append", full)
            book.note(e.PauseSet(paused=False))
            await asyncio.sleep(0)
        assert book.is_broken
        with pytest.raises(Full):
            book.record(e.PauseSet(paused=False))
