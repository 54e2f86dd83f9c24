"""What another terminal asks for, and what becomes of it while the campaign runs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Phase, Role
from orchestrator.ledger import Request
from orchestrator.loop.workbench import BaselineFailed
from orchestrator.proposers import Brief, Stalled
from orchestrator.views.campaign.history import read_moments
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, Scripted, ran, scripted
from tests.orchestrator.loop.telling import at, in_moments

DIFF = """--- a/params.json
+++ b/params.json
@@ -1,3 +1,3 @@
 {
-  "value": 0
+  "value": 7
 }
"""


def ask_after(session: Scripted, folder: Path, after: str, kind: str, **body: object) -> None:
    """Ask once a node has ended."""
    session.when(e.AttemptEnded, lambda event: ask(folder, kind, body) if event.node == after else None)


def answers(session: Scripted) -> list[str]:
    return [event.answer for event in session.of(e.RequestTaken)]


@in_moments
async def test_pause(folder: Path) -> None:
    """Paused, nothing more is opened; what is under way ends, and it goes on when told so."""
    async with scripted(folder, None, {"value": 1}, {"value": 2}) as session:
        ask_after(session, folder, "1.1", "pause", paused=True)
        running = asyncio.create_task(session.run())
        paused = asyncio.Event()
        session.when(e.PauseSet, lambda event: paused.set())
        await paused.wait()
        await asyncio.sleep(0.5)
        assert "1.2" not in session.nodes
        ask(folder, "pause", {"paused": False})
        await running
        assert session.nodes["1.2"].ending is Ending.SCORED
        assert answers(session) == ["paused", "going on"]


async def test_who_asked_is_on_record(folder: Path) -> None:
    """By the name that they gave, or none; what is no name does no harm."""
    names = ["ada on here", "", "x" * 10_000, 7]
    async with scripted(folder, None, {"value": 1}) as session:
        for by in names:
            ask_after(session, folder, "1", "cancel", node="1.9", **({"by": by} if by else {}))
        await session.run()
        taken = session.of(e.RequestTaken)
        assert [it.by for it in taken] == [str(by)[:200] for by in names]
        assert [f" by {it.by}:" in it.said for it in taken] == [True, False, True, True]


async def test_half_a_character(folder: Path) -> None:
    """What a shell hands over of a byte that is no text is on record as a question mark in a name; elsewhere it is
    refused. Each record can be read.
    """
    async with scripted(folder, None, {"value": 1}) as session:
        ask_after(session, folder, "1", "cancel", node="1.9", by="\udcff on here")
        ask_after(session, folder, "1", "inject", text=DIFF, description="half \udcff", by="ada")
        await session.run()
        taken = [it for _, it in read_moments(session.bench.book.ledger) if isinstance(it, e.RequestTaken)]
        assert taken[0].by == "? on here"
        assert taken[1].answer == "refused: what is asked for (inject) cannot be read"
        assert session.of(e.InjectionQueued) == []


async def test_inject_on_the_champion(folder: Path) -> None:
    """A person's change goes before the proposer's, builds on the champion and uses an attempt."""
    async with scripted(folder, None, {"value": 1}, {"value": 2}) as session:
        ask_after(session, folder, "1", "inject", text=DIFF, description="seven")
        finished = await session.run()
        node = session.nodes["1.1"]
        assert (node.role, node.operator, node.description) == (Role.INJECTED, "inject", "seven")
        assert finished.champion == node
        assert session.charged == 3


async def test_inject_on_a_node(folder: Path) -> None:
    """The node to build on can be named, whatever the champion is."""
    on_one = DIFF.replace('-  "value": 0', '-  "value": 1')
    async with scripted(folder, None, {"value": 1}, {"value": 2}) as session:
        ask_after(session, folder, "1.2", "inject", text=on_one, on="1.1")
        await session.run()
        node = session.nodes["1.1.1"]
        assert (node.parent, node.ending, node.kept) == ("1.1", Ending.SCORED, True)


async def test_refused_injection(folder: Path) -> None:
    """A change that is refused is an attempt all the same: invalid, with the reason, and charged."""
    async with scripted(folder, None, {"value": 1}) as session:
        for text in ("no change at all", DIFF.replace("params.json", "../escape"), DIFF[:40]):
            ask_after(session, folder, "1", "inject", text=text)
        await session.run()
        nodes = [node for node in session.nodes.values() if node.role is Role.INJECTED]
        assert [node.ending for node in nodes] == [Ending.INVALID] * 3
        assert all("refused" in node.why for node in nodes)
        assert session.charged == 4


async def test_injection_waits_for_a_resume(folder: Path) -> None:
    """What was asked while nobody worked is taken by the next one who does."""
    session = await ran(folder, None, {"value": 1})
    ask(folder, "inject", {"text": DIFF.replace('-  "value": 0', '-  "value": 1')})
    session = await ran(folder, None, {"value": 1}, how=How.RESUME)
    assert session.nodes["1.1.1"].ending is Ending.SCORED


async def test_cancel_a_running_attempt(folder: Path) -> None:
    """A cancelled attempt is ended, refunded and not tried again; the others go on."""
    async with scripted(folder, None, {"value": 9, "do": "wait"}, {"value": 1}) as session:

        def cancel(event: e.TrialIntended) -> None:
            if event.node == "1.1":
                ask(folder, "cancel", {"node": "1.1"})
                ask(folder, "cancel", {"node": "1.1"})

        session.when(e.TrialIntended, cancel)
        await session.run()
        assert len(session.of(e.KillIntended)) == len(session.of(e.KillConfirmed)) == 1
        node = session.nodes["1.1"]
        assert (node.phase, node.ending) == (Phase.ENDED, Ending.CANCELLED)
        assert session.state.trials["1.1-1"].ending is Ending.INTERRUPTED
        assert session.charged == 1
        assert not session.accounts.holds
        assert node.spent == node.booked


async def test_cancel_a_waiting_attempt(folder: Path) -> None:
    """An attempt that waits for its next turn can be cancelled too."""

    async def stall(_: Brief) -> Sequence[Proposal]:
        raise Stalled("nothing")

    async with scripted(folder, None, stall, {"value": 1}) as session:
        session.when(e.AttemptRequeued, lambda event: ask(folder, "cancel", {"node": event.node}))
        await session.run()
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        assert len(session.of(e.AttemptRequeued)) == 1


async def test_an_attempt_that_ends_while_requests_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them may take long. What ended meanwhile is over: a cancel finds it waiting, and nothing runs twice."""
    may_end = asyncio.Event()

    async def stall(_: Brief) -> Sequence[Proposal]:
        await may_end.wait()
        raise Stalled("nothing")

    async with scripted(folder, None, stall, {"value": 1}, width=3) as session:
        book = session.bench.book
        at_once = book.requests

        async def requests() -> list[Request]:
            if "1.1" in book.state.nodes and not may_end.is_set():
                may_end.set()
                await asyncio.wait([task for task in asyncio.all_tasks() if task.get_name() == "1.1"])
                ask(folder, "cancel", {"node": "1.1"})
            return await at_once()

        monkeypatch.setattr(book, "requests", requests)
        await session.run()
        assert answers(session) == ["cancelled"]
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        assert session.of(e.AttemptResumed) == []
        assert session.charged == 1
        assert not book.accounts.holds


async def test_a_baseline_that_fails_while_requests_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own words are told, whenever it ends."""
    may_end = asyncio.Event()

    async def on_open(job: Job) -> None:
        if job.command[0] == "judge":
            await may_end.wait()

    async with scripted(folder, Script(on_open=on_open, judge_is_broken=True), width=3) as session:
        book = session.bench.book
        at_once = book.requests

        async def requests() -> list[Request]:
            if "1" in book.state.nodes and not may_end.is_set():
                may_end.set()
                await asyncio.wait([task for task in asyncio.all_tasks() if task.get_name() == "1"])
            return await at_once()

        monkeypatch.setattr(book, "requests", requests)
        with pytest.raises(BaselineFailed, match=r"^the baseline ended as"):
            await session.run()


async def test_requeue(folder: Path) -> None:
    """What was cancelled can be run again; what was charged cannot."""
    script = Script()
    async with scripted(folder, script, {"value": 9, "do": "wait"}, {"value": 1}) as session:
        at(session, e.TrialIntended, "1.1-1", lambda: ask(folder, "cancel", {"node": "1.1"}))
        await session.run()
    script.gate.set()
    for node in ("1.1", "1.2", "1.9"):
        ask(folder, "requeue", {"node": node})
    session = await ran(folder, script, {"value": 9}, {"value": 1}, how=How.RESUME)
    assert session.nodes["1.1"].ending is Ending.SCORED
    again, charged, unknown = answers(session)
    assert again == "queued again"
    assert "1.2 is scored" in charged
    assert "no node" in unknown
    assert session.charged == 2


async def test_what_can_not_be_done(folder: Path) -> None:
    """A request that makes no sense is answered, and neither this session nor the next one falls over it."""
    late = {"name": "g", "command": ["true"], "limits": {"wall": "soon"}}
    asked: list[tuple[str, dict[str, object]]] = [
        ("dance", {}),
        ("cancel", {}),
        ("cancel", {"node": "1.99"}),
        ("release", {"node": "1"}),
        ("inject", {}),
        ("inject", {"text": DIFF, "on": "1.99"}),
        ("guard", {"node": "1"}),
        ("guard", {"node": "1", "guard": {"name": 3}}),
        ("guard", {"node": "1", "guard": late}),
        ("pause", {}),
    ]
    async with scripted(folder, None, {"value": 1}) as session:
        for kind, body in asked:
            ask_after(session, folder, "1", kind, **body)
        await session.run()
        assert [answer.partition(":")[0] for answer in answers(session)] == ["refused"] * len(asked)
        assert session.nodes["1.1"].ending is Ending.SCORED
    session = await ran(folder, None, {"value": 1}, {"value": 2}, how=How.RESUME)
    assert session.nodes["1.2"].ending is Ending.SCORED


async def test_nodes_of_an_earlier_run(folder: Path) -> None:
    """A run is not mixed with the nodes of another: they can neither be run again nor be built on in it."""
    async with scripted(folder, None, {"value": 1, "do": "wait"}) as session:
        session.when(e.TrialIntended, lambda event: session.campaign.stop("x") if event.node == "1.1" else None)
        await session.run()
    async with scripted(folder, None, {"value": 2}, how=How.NEW_RUN) as session:
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        ask(folder, "requeue", {"node": "1.1"})
        ask(folder, "inject", {"text": DIFF, "on": "1"})
        ask(folder, "guard", {"node": "1", "guard": {"name": "g", "command": ["guard"]}})
        finished = await session.run()
        assert [answer.partition(":")[0] for answer in answers(session)] == ["refused"] * 3
        assert session.nodes["1.1"].phase is Phase.ENDED
        assert finished.champion is not None
        assert finished.champion.id == "2.1"


async def test_requeue_the_end_of_a_branch(folder: Path) -> None:
    """The last step of a branch, cancelled and run again, is the last step still: the branch does not grow."""
    points: list[Point] = [{"value": 1}, {"value": 9, "do": "wait"}, {"value": 2}]
    script = Script()
    async with scripted(folder, script, *points, branching=True, depth=2, attempts=3) as session:

        def again(event: e.AttemptEnded) -> None:
            if event.ending is Ending.CANCELLED:
                script.gate.set()
                ask(folder, "requeue", {"node": "1.1.1"})

        at(session, e.TrialIntended, "1.1.1-1", lambda: ask(folder, "cancel", {"node": "1.1.1"}))
        session.when(e.AttemptEnded, again)
        await session.run()
        nodes = session.nodes
        assert nodes["1.1.1"].ending is Ending.SCORED
        assert [(node.branch, node.step) for node in nodes.values()] == [(0, 0), (1, 1), (1, 2), (2, 1)]
