"""What is recorded is folded at once and written off the loop; nothing outside happens before it is on disk."""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from orchestrator.budget import Account, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role, Spent
from orchestrator.ledger import Artifacts, Entry, Full, Ledger
from orchestrator.llm.allowance import Call
from orchestrator.loop.book import Book
from orchestrator.loop.models import Watched
from orchestrator.loop.purse import CampaignPurse
from orchestrator.proposers import Brief, Computed
from sandbox import Job
from tests.messages import MessagesServer
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import (
    GUARD,
    HELDOUT,
    TUNE,
    Point,
    Proposing,
    Scripted,
    proposal,
    scripted,
    write_task,
)
from tests.orchestrator.loop.test_models import MODEL, settings_for

PAUSE, GO_ON = e.PauseSet(paused=True), e.PauseSet(paused=False)


@dataclass
class Disk:
    """Holds every append until it is let go; `kinds` are those of each that came through."""

    go: threading.Event = field(default_factory=threading.Event)
    kinds: list[list[str]] = field(default_factory=list)
    failure: BaseException | None = None

    @contextmanager
    def under(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        real = ledger.append

        def append(entries: Sequence[Entry], *more: Any) -> Any:
            assert self.go.wait(60)
            if self.failure:
                raise self.failure
            self.kinds.append([entry.kind for entry in entries])
            return real(entries, *more)

        with monkeypatch.context() as patched:
            patched.setattr(ledger, "append", append)
            try:
                yield
            finally:
                self.go.set()


async def _turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)


async def test_folded_at_once_and_written_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop goes on while the disk is busy: listeners hear of an event at once, observers and those who wait for it
    only when it is there. What came meanwhile, or in one turn, is one transaction.
    """
    async with scripted(folder, None, {"value": 3}) as session:
        book, disk = session.bench.book, Disk()
        heard: list[tuple[str, bool]] = []
        book.observers.append(lambda event, _: heard.append((event.kind, disk.go.is_set())))
        with disk.under(book.ledger, monkeypatch):
            book.record(PAUSE)
            assert book.state.campaign.paused
            assert session.of(e.PauseSet) == [PAUSE]
            waiting = asyncio.create_task(book.durable())
            await _turns()
            book.record(GO_ON)
            book.record(PAUSE, GO_ON)
            last = asyncio.create_task(book.durable())
            await _turns()
            assert (waiting.done(), last.done()) == (False, False)
            assert not heard
            disk.go.set()
            await waiting
            await last
            await asyncio.wait_for(book.durable(), 60)  # nothing is left to wait for
            for _ in range(2):
                book.record(PAUSE)
            await book.durable()
        assert disk.kinds == [["pause set"], ["pause set"] * 3, ["pause set"] * 2]
        assert heard == [("pause set", True)] * 6


async def test_a_disk_that_refuses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All who wait are told, who records next is told, nobody observes what is not there, and it stays so."""
    async with scripted(folder, None, {"value": 3}) as session:
        book, disk = session.bench.book, Disk(failure=Full(folder))
        heard: list[e.Event] = []
        book.observers.append(lambda event, _: heard.append(event))
        with disk.under(book.ledger, monkeypatch):
            book.record(PAUSE)
            waiting = [asyncio.create_task(book.durable()) for _ in range(2)]
            await _turns()
            book.record(GO_ON)  # folded, and never written
            disk.go.set()
            for task in waiting:
                with pytest.raises(Full):
                    await task
        assert book.is_broken
        with pytest.raises(Full):
            book.record(PAUSE)
        with pytest.raises(Full):
            book.check()
        with pytest.raises(Full):
            await book.durable()
        assert not heard
        with pytest.raises(Full):
            await session.run()


async def test_who_listens_and_raises(folder: Path) -> None:
    """A listener that raises keeps nothing from the disk; what an observer raises ends the campaign."""
    async with scripted(folder, None, {"value": 3}) as session:
        book = session.bench.book
        before = book.ledger.head().seq
        book.listeners.append(_raises)
        with pytest.raises(ZeroDivisionError):
            book.record(GO_ON)
        await asyncio.wait_for(book.durable(), 60)
        assert book.ledger.head().seq == before + 1
        book.listeners.remove(_raises)
        session.when(e.AttemptEnded, _raises, on_disk=True)
        with pytest.raises(ZeroDivisionError):
            await session.run()
        assert not book.is_broken


def _raises(*_: object) -> None:
    raise ZeroDivisionError


def test_where_no_loop_runs(tmp_path: Path) -> None:
    """What is recorded is on disk when it returns, whatever a listener does; what the disk refuses is raised."""
    with Ledger.create(tmp_path / "ledger") as ledger:
        ledger.seize("a test")
        book = Book(ledger, Artifacts(tmp_path / "artifacts"))
        book.listeners.append(_raises)
        with pytest.raises(ZeroDivisionError):
            book.record(e.CampaignOpened(campaign="c", name="n", version="0"))
        assert ledger.head().seq == 1
        book.listeners[:] = [lambda event, _: book.record(GO_ON) if event == PAUSE else None]
        book.record(PAUSE)
        assert [record.kind for record in ledger.read()] == ["campaign opened", "pause set", "pause set"]
        ledger.seize("another")
        ledger.epoch = 1
        with pytest.raises(Exception, match="has taken over"):
            book.record(PAUSE)


class Slow:
    """A disk that takes its time. `found` has each effect that was seen, with what it must not be ahead of."""

    def __init__(self, session: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ledger = session.bench.book.ledger
        self._session = session
        self._opening = self._ledger.head().seq - len(session.events)
        self.found: list[tuple[str, list[str]]] = []
        real = self._ledger.append

        def append(*args: Any) -> Any:
            time.sleep(0.005)
            return real(*args)

        monkeypatch.setattr(self._ledger, "append", append)

    def see(self, effect: str) -> None:
        """What is let go is removed beside the attempts, and neither waits for what the other recorded."""
        written = self._ledger.head().seq - self._opening
        ahead = [event for event in self._session.events[written:] if (effect == "let_go") is _lets_go(event)]
        self.found.append((effect, [event.kind for event in ahead]))

    def before(self, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(owner, name)

        def seen(*args: Any, **options: Any) -> Any:
            self.see(name)
            return real(*args, **options)

        monkeypatch.setattr(owner, name, seen)


def _lets_go(event: e.Event) -> bool:
    return isinstance(event, e.OutputsLetGo)


async def test_no_effect_before_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No proposer, chamber, branch or removal is ahead of what was recorded until then."""
    folder = write_task(tmp_path / "task", TUNE, GUARD, HELDOUT)
    script = Script()

    async def offer(point: Point, _: Brief) -> Sequence[Proposal]:
        slow.see("propose")
        return [proposal(point)]

    points: list[Point] = [{"value": value} for value in (3, 1, 5, 2)]
    acts = [partial(offer, point) for point in points]
    async with scripted(folder, script, *acts, words=points, artifacts=600) as session:
        slow = Slow(session, monkeypatch)

        async def open_(_: Job) -> None:
            slow.see("open")

        script.on_open = open_
        slow.before(session.bench.candidates, "submit", monkeypatch)
        slow.before(session.bench.artifacts, "let_go", monkeypatch)
        await session.run()
    assert {effect for effect, _ in slow.found} == {"propose", "open", "submit", "let_go"}
    assert [it for it in slow.found if it[1]] == []


class Sums(Proposing, Computed):
    pass


async def test_what_only_computes_is_asked_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody outside hears that it is asked; its attempt, and what it offers, are on disk together before a branch."""

    async def offer(_: Brief) -> Sequence[Proposal]:
        slow.see("propose")
        return [proposal({"value": 3})]

    async with scripted(folder, None, {"value": 3}) as session:
        session.bench.proposers[Role.SEARCH] = Sums(offer)
        slow = Slow(session, monkeypatch)
        slow.before(session.bench.candidates, "submit", monkeypatch)
        await session.run()
    assert [ahead for effect, ahead in slow.found if effect == "submit"] == [[], []]
    ((_, ahead),) = [it for it in slow.found if it[0] == "propose"]
    assert "attempt opened" in ahead


@pytest.mark.usefixtures("on_disk")
async def test_the_loop_waits_for_no_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign at work makes nothing durable, and asks for no request, in the thread of its own loop."""
    here, calls = threading.get_ident(), Counter[tuple[str, bool]]()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls[name, threading.get_ident() == here] += 1
            return real(*args, **options)

        return call

    async with scripted(folder, None, *({"value": value} for value in (3, 1, 5)), width=2, artifacts=600) as session:
        for owner, name in ((Ledger, "append"), (Ledger, "requests"), (Artifacts, "sync"), (os, "fsync")):
            monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
        await session.run()
    assert {name for name, _ in calls} == {"append", "requests", "sync", "fsync"}
    assert not [name for name, on_the_loop in calls if on_the_loop]


async def test_no_call_of_a_model_before_it_is_on_disk(
    tmp_path: Path, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway forwards a call when its issuer has returned, and that one waits for the disk."""
    folder, unused = write_task(tmp_path / "task"), cast("Any", None)
    async with scripted(folder, settings=settings_for(messages_server), proposer="llm") as session:
        book, disk, models = session.bench.book, Disk(), session.bench.models
        assert models is not None
        watched = Watched(models, "", unused, unused, 0.0)
        with disk.under(book.ledger, monkeypatch):
            intended = asyncio.create_task(watched.intended(Call("one", ModelRole.VERIFIER, MODEL, Spent())))
            await _turns()
            assert set(book.state.open_calls) == {"one"}
            assert not intended.done()
            disk.go.set()
            await intended


async def test_no_rent_before_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine is rented when its intent is on disk; one who gives up waiting for that has spent nothing."""
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, {"value": 3}, usd=10.0) as session:
        book, disk = session.bench.book, Disk()
        purse = CampaignPurse(book, "fake", Amounts)
        with disk.under(book.ledger, monkeypatch):
            paid, given_up = (asyncio.create_task(purse.reserve(name, 1.0)) for name in ("one", "two"))
            await _turns()
            assert not paid.done()
            assert set(book.state.standing) == {"one", "two"}
            given_up.cancel()
            await asyncio.wait([given_up])
            assert set(book.state.standing) == {"one"}
            disk.go.set()
            assert await paid
        purse.settle("one", 0.5)
        assert book.accounts.used(Account.USD) == 500_000
