"""A person is asked before a candidate becomes the champion: it waits, whatever happens meanwhile, and asks once."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase, Purpose
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from tests.orchestrator.loop.scripted import GUARD, HELDOUT, Scripted, ran, scripted, write_task


def answer_with(session: Scripted, folder: Path, **answers: str) -> None:
    """Answer each question as it comes; nodes are named like `n1_1`."""

    def act(event: e.PromotionAsked) -> None:
        if word := answers.get(f"n{event.node.replace('.', '_')}"):
            kind, _, why = word.partition(" ")
            ask(folder, kind, {"node": event.node, "why": why})

    session.when(e.PromotionAsked, act)


async def until(session: Scripted, holds: Callable[[], bool]) -> None:
    """Until something that is recorded makes it so."""
    while not holds():
        await session.bench.book.changed()


async def test_accepted_and_declined(tmp_path: Path) -> None:
    """Asked after everything else said yes: replay, guards and the held-out split. A no ends it scored and not kept,
    with the person's reason, charged, and the search goes on; a yes makes it the champion.
    """
    folder = write_task(tmp_path / "task", GUARD, HELDOUT)
    async with scripted(folder, None, {"value": 5}, {"value": 7}, {"value": 3}, ask=True) as session:
        answer_with(session, folder, n1_1="decline unreadable", n1_2="accept")
        await session.run()
        declined, accepted = session.nodes["1.1"], session.nodes["1.2"]
        assert (declined.ending, declined.kept) == (Ending.SCORED, False)
        assert declined.why == "declined by a person: unreadable"
        assert (accepted.kept, accepted.promotion, accepted.waits_for_person) == (True, True, False)
        assert accepted.why.endswith("and accepted by a person")
        kinds = [type(event) for event in session.events if getattr(event, "node", "") == "1.2"]
        asked = kinds.index(e.PromotionAsked)
        assert asked > max(kinds.index(e.GuardEnded), kinds.index(e.HeldOutAsked))
        assert [(event.node, event.over) for event in session.of(e.PromotionAsked)] == [("1.1", "1"), ("1.2", "1")]
        assert (session.champion, session.charged) == ("1.2", 3)


async def test_nobody_is_asked(folder: Path) -> None:
    """Neither about the baseline, nor about a candidate that would not be kept, nor where it was not asked for."""
    session = await ran(folder, None, {"value": -1}, ask=True)
    assert session.of(e.PromotionAsked) == []
    session = await ran(folder, None, {"value": -1}, {"value": 5}, how=How.RESUME, ask=False)
    assert session.of(e.PromotionAsked) == []
    assert session.nodes["1.2"].kept


async def test_others_go_on_meanwhile(folder: Path) -> None:
    """Where the width allows, others are tried while one waits; its place and its reservation stay taken."""
    async with scripted(folder, None, {"value": 5}, {"value": 1}, {"value": 2}, ask=True, width=2) as session:

        def answer(event: e.AttemptEnded) -> None:
            if event.node == "1.3":
                assert session.nodes["1.1"].waits_for_person
                assert "1.1#1" in session.accounts.holds
                for node in ("1.3", "1.2", "1.1"):
                    ask(folder, "accept", {"node": node})

        answer_with(session, folder, n1_2="decline", n1_3="decline")
        session.when(e.AttemptEnded, answer)
        finished = await session.run()
        assert finished.champion
        assert finished.champion.id == "1.1"
        taken = [event.answer.partition(":")[0] for event in session.of(e.RequestTaken)]
        assert taken == ["declined", "declined", "refused", "refused", "accepted"]


async def test_the_champion_changed_meanwhile(folder: Path) -> None:
    """Who waits is compared with the champion of then: one that is no longer better ends without an answer."""
    async with scripted(folder, None, {"value": 5}, {"value": 9}, ask=True, width=2) as session:

        def accept(_: e.PromotionAsked) -> None:
            if all(session.nodes[name].waits_for_person for name in ("1.1", "1.2")):
                ask(folder, "accept", {"node": "1.2"})

        session.when(e.PromotionAsked, accept)
        finished = await session.run()
        first = session.nodes["1.1"]
        assert finished.champion
        assert finished.champion.id == "1.2"
        assert (first.ending, first.kept, first.promotion) == (Ending.SCORED, False, None)
        assert not first.waits_for_person
        assert "no better" in first.why


async def test_a_guard_that_came_meanwhile(folder: Path) -> None:
    """What is hung on it while it waits holds for it, too, before and after a person's yes."""
    async with scripted(folder, None, {"value": 5}, ask=True) as session:
        session.script.unsound = (5,)
        guard = {"name": "late", "command": ["guard"], "limits": {"wall": 5}}
        session.when(e.PromotionAsked, lambda _: ask(folder, "guard", {"node": "1", "guard": guard}))
        await session.run()
        node = session.nodes["1.1"]
        assert (node.kept, node.why) == (False, "better, but the guard late does not pass")


async def interrupted(folder: Path) -> Scripted:
    """A session that ends while a candidate waits for a person's word."""
    return await ran(folder, None, {"value": 5}, ask=True, stop=(e.PromotionAsked, 1))


@pytest.mark.parametrize("answered", ["while it is down", "afterwards"])
async def test_resume(folder: Path, answered: str) -> None:
    """Interrupted while it waits, it keeps its verdict: after a resume it asks no second time and runs no second
    trial, whenever the answer comes.
    """
    session = await interrupted(folder)
    node = session.nodes["1.1"]
    assert (node.phase, node.ending, node.waits_for_person) == (Phase.QUEUED, Ending.INTERRUPTED, True)
    assert not session.accounts.holds
    if answered == "while it is down":
        ask(folder, "accept", {"node": "1.1"})
    async with scripted(folder, None, {"value": 5}, how=How.RESUME) as session:
        session.when(e.AttemptResumed, lambda _: ask(folder, "accept", {"node": "1.1"}))
        finished = await session.run()
        assert finished.champion
        assert (finished.champion.id, finished.champion.trials) == ("1.1", node.trials)
        assert session.of(e.PromotionAsked) == session.of(e.TrialIntended) == []
        assert session.charged == 1


async def test_resume_without_asking(folder: Path) -> None:
    """Who goes on without --ask lets everything pass that waits."""
    await interrupted(folder)
    session = await ran(folder, None, {"value": 5}, how=How.RESUME, ask=False)
    assert (session.champion, session.nodes["1.1"].promotion) == ("1.1", None)


async def test_an_answer_counts_without_asking(folder: Path) -> None:
    """What a person declined is not kept by whoever goes on without --ask."""
    await interrupted(folder)
    ask(folder, "decline", {"node": "1.1"})
    session = await ran(folder, None, {"value": 5}, how=How.RESUME, ask=False)
    node = session.nodes["1.1"]
    assert (node.ending, node.kept, node.why) == (Ending.SCORED, False, "declined by a person")


async def test_cancelled_while_it_waits(folder: Path) -> None:
    """It can be cancelled like any other; then it is not charged, and nothing stays reserved."""
    async with scripted(folder, None, {"value": 5}, ask=True) as session:
        session.when(e.PromotionAsked, lambda _: ask(folder, "cancel", {"node": "1.1"}))
        await session.run()
        node = session.nodes["1.1"]
        assert (node.ending, node.waits_for_person) == (Ending.CANCELLED, False)
        assert session.charged == 0
        assert not session.accounts.holds


async def test_a_new_run_while_it_waits(folder: Path) -> None:
    """A new run drops it and says so, and can begin with its files: nothing that was found is lost without a word."""
    await interrupted(folder)
    async with scripted(folder, None, {"value": 3}, how=How.NEW_RUN, start="1.1", ask=False) as session:
        assert "1.1 waited for your word and is dropped; --from 1.1 begins with its files" in session.notes
        await session.run()
        state = session.state
        assert state.nodes["1.1"].ending is Ending.CANCELLED
        assert await session.bench.tree("2") == await session.bench.tree("1.1")
    async with scripted(folder, None, {"value": 3}, how=How.NEW_RUN, ask=False) as session:
        assert not any("waited" in note for note in session.notes)


async def test_the_clock_runs_out(folder: Path) -> None:
    """The cap on the clock ends a wait that nobody answers: interrupted, refunded and queued."""
    async with scripted(folder, None, {"value": 5}, ask=True, wall=3600.0) as session:
        session.when(e.PromotionAsked, lambda _: session.clock.skip(4000))
        await session.run()
        node = session.nodes["1.1"]
        assert (node.phase, node.ending, node.waits_for_person) == (Phase.QUEUED, Ending.INTERRUPTED, True)
        assert session.charged == 0


async def test_answers_to_no_question(folder: Path) -> None:
    """An answer about what does not wait is refused, and nothing is recorded of it."""
    asked = [(kind, node) for node in ("1", "1.1", "1.9", "2.1") for kind in ("accept", "decline")]
    async with scripted(folder, None, {"value": -1}, {"value": -2}) as session:

        def act(event: e.AttemptEnded) -> None:
            for kind, node in asked if event.node == "1.1" else ():
                ask(folder, kind, {"node": node})

        session.when(e.AttemptEnded, act)
        await session.run()
        refused = [f"refused: {node} does not wait for a person's word" for _, node in asked]
        assert [it.answer for it in session.of(e.RequestTaken)] == refused
        assert session.of(e.PromotionAnswered) == []


async def test_no_deadlock_at_width_one(folder: Path) -> None:
    """The only place is taken by one that waits: nothing else goes on, and requests are answered all the same."""
    async with scripted(folder, None, {"value": 5}, {"value": 9}, ask=True) as session:
        running = asyncio.create_task(session.run())
        nodes = session.nodes
        async with asyncio.timeout(240):
            await until(session, lambda: "1.1" in nodes and nodes["1.1"].waits_for_person)
            ask(folder, "pause", {"paused": True})
            await until(session, lambda: session.state.campaign.paused)
            assert "1.2" not in nodes
            ask(folder, "pause", {"paused": False})
            for name in ("1.1", "1.2"):
                await until(session, lambda name=name: name in nodes and nodes[name].waits_for_person)  # type: ignore[misc]
                ask(folder, "accept", {"node": name})
        assert (await running).champion == nodes["1.2"]
        replays = [it for it in session.state.trials_of("1.1") if it.purpose is Purpose.REPLAY]
        assert len(replays) == 1
