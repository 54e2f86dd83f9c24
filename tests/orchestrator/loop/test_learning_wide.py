"""A search that learns with several attempts in flight: all that it goes by is in the ledger, at any moment."""

import asyncio
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.domain.state import State
from orchestrator.loop.history import History
from orchestrator.meta.policy import View
from orchestrator.proposers import Brief, Stalled, Tried
from orchestrator.proposers.operators import Operators
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.books import check_books, ledger_of
from tests.orchestrator.loop.scripted import Scripted, ran, scripted
from tests.orchestrator.loop.test_operators import SOLVE, Reading, code_task, history

WIDTH, ATTEMPTS = 4, 18
FLAGS: dict[str, Any] = {
    "proposer": "operators",
    "attempts": ATTEMPTS,
    "seed": 5,
    "width": WIDTH,
    "depth": 3,
    "meta": "gradient",
    "credit": "lineage",
    "selection": "drawn",
    "walk": 4,
}


@dataclass
class Unlike(Reading):
    """Every third trial takes longer, so that attempts end in another order than they began. Those after the baseline
    and its profile wait until `together` have begun.
    """

    begun: int = 0
    together: int = 0
    all_there: asyncio.Event = field(default_factory=asyncio.Event)

    async def program(self, guest: Guest) -> int:
        if guest.job.command[0] == "trial":
            self.begun += 1
            if self.begun == self.together + 2:
                self.all_there.set()
            if self.begun > 2 and self.together:
                await self.all_there.wait()
            for _ in range(40 * (self.begun % 3 == 0)):
                await asyncio.sleep(0)
        return await super().program(guest)


def known(session: Scripted) -> tuple[list[Tried], list[Tried], View | None]:
    """What the next draw would go by, by what the campaign keeps as it goes."""
    past = session.bench.pasts[Role.SEARCH]
    return list(past.ended), list(past.running), session.bench.meta.view(past.ended, past.running)


def read_again(session: Scripted, state: State) -> tuple[list[Tried], list[Tried], View | None]:
    """The same by one who has the state alone."""
    bench = session.bench
    past = History(state, bench.ranking, Role.SEARCH, bench.pasts[Role.SEARCH].baseline, bench.tree_here)
    meta = type(bench.meta)(bench.meta.learnt)
    return list(past.ended), list(past.running), meta.view(past.ended, past.running)


@dataclass
class Stalling:
    """Asks another one, but every third attempt has no token at first: it is refunded, and queued again."""

    asked: Operators
    stalled: set[int] = field(default_factory=set)
    serial: bool = False
    branching: bool = True

    def exhausted(self, number: int) -> str | None:
        return self.asked.exhausted(number)

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if brief.number % 3 == 0 and brief.number not in self.stalled:
            self.stalled.add(brief.number)
            raise Stalled("no token for 30 s")
        return await self.asked.propose(brief)


@pytest.mark.parametrize(
    "more", [{"islands": 2, "migrate": 3}, {"minimise": True}, {"width": 16, "attempts": 30}], ids=str
)
async def test_what_is_learnt_is_in_the_ledger_at_any_moment(tmp_path: Path, more: dict[str, Any]) -> None:
    """After every event, with several in flight that end out of order: who ended, in which order, who is under way with
    what, and how likely each choice is now. So it is with islands, where a winner is minimised, and with sixteen of
    which a third stalls, is refunded and comes again: each counts once, when it ends.
    """
    task, most, flags = code_task(tmp_path / "task"), 0, {**FLAGS, **more}
    async with scripted(task, Unlike(together=flags["width"]), **flags) as session:
        if flags["width"] == 16:
            asked = session.bench.proposers[Role.SEARCH]
            assert isinstance(asked, Operators)
            session.bench.proposers[Role.SEARCH] = Stalling(asked)

        def compare(_: e.Event) -> None:
            nonlocal most
            assert read_again(session, session.state) == known(session)
            most = max(most, len(session.bench.pasts[Role.SEARCH].running))

        for kind in (e.Proposed, e.Promoted, e.AttemptEnded, e.AttemptRequeued):
            session.when(kind, compare)
        await session.run()
        numbers = [it.number for it in session.bench.pasts[Role.SEARCH].ended]
        stalls = len(session.of(e.AttemptRequeued))
    assert most == flags["width"]
    assert sorted(numbers) == list(range(1, flags["attempts"] + 1))
    assert numbers != sorted(numbers), "all ended in the order in which they began"
    assert stalls == (10 if flags["width"] == 16 else 0)


def diff_of_solve(after: bytes) -> str:
    lines = (SOLVE.splitlines(keepends=True), after.decode().splitlines(keepends=True))
    return "".join(unified_diff(*lines, "a/solve.py", "b/solve.py"))


@pytest.mark.usefixtures("on_disk")
async def test_several_in_flight_outlive_a_kill(tmp_path: Path) -> None:
    """What was proposed is run again as it was, each attempt charged once, and learnt from as before."""
    task, copy = code_task(tmp_path / "task"), tmp_path / "copy"
    async with scripted(task, Unlike(), **FLAGS) as session:
        seen = itertools.count(1)
        session.when(e.Proposed, lambda _: shutil.copytree(task, copy) if next(seen) == 11 else None, on_disk=True)
        await session.run()
    with ledger_of(copy) as ledger:
        before = State.from_rows(ledger.rows())
    async with scripted(copy, Unlike(), how=How.RESUME) as session:
        assert read_again(session, before) == known(session)
        await session.run()
        state = session.state
        assert session.charged == ATTEMPTS
        for node in before.nodes.values():
            after = state.nodes[node.id]
            if node.drafts:
                assert (after.drawn, after.description) == (node.drawn, node.description)
            assert (after.parent, after.branch, after.step) == (node.parent, node.branch, node.step)
        assert read_again(session, state) == known(session)
    with ledger_of(copy) as ledger:
        check_books(ledger)


async def test_what_a_person_injects(tmp_path: Path) -> None:
    """It is evidence of no choice, and no draw; what is built on it is, also after a resume."""
    task = code_task(tmp_path / "task")
    change = SOLVE.replace("2.0", "25.0").encode()
    async with scripted(task, Unlike(), **{**FLAGS, "selection": "champion"}) as session:

        def inject(event: e.AttemptEnded) -> None:
            if event.node == "1":
                ask(task, "inject", {"text": diff_of_solve(change), "description": "mine"})

        def compare(_: e.Event) -> None:
            assert read_again(session, session.state) == known(session)

        session.when(e.AttemptEnded, inject)
        for kind in (e.Proposed, e.AttemptEnded):
            session.when(kind, compare)
        session.stop_at(e.AttemptEnded, 12)
        await session.run()
        injected = next(node for node in session.state.nodes.values() if node.role is Role.INJECTED)
        assert (injected.kept, injected.drawn) == (True, None)
    async with scripted(task, Unlike(), how=How.RESUME) as session:
        await session.run()
        ended, _, view = known(session)
        assert injected.id not in {it.node for it in ended}
        assert any(it.parent == injected.id for it in ended)
        assert view is not None
        assert read_again(session, session.state) == known(session)


STAGE = """
[combine]
pool = 3
diversity = 0
editable = ["solve.py"]
[combine.trial]
command = ["combination"]
[combine.search]
proposer = "operators"
meta = "gradient"
credit = "lineage"
selection = "drawn"
depth = 3
[budget]
combination = 18
"""


async def base_and_stage(task: Path, **flags: Any) -> Path:
    """Code changes in both; one at a time, for a stage's numbers and draws depend on who ended first in the base."""
    code_task(task)
    file = task / "blastdoor.toml"
    file.write_text(file.read_text() + STAGE)
    (task / "combine").mkdir()
    (task / "combine" / "solve.py").write_text(SOLVE.replace("2.0", "7.0"))
    assert (await ran(task, Unlike(), **{**FLAGS, **flags})).charged == ATTEMPTS
    return task


def of_stage(session: Scripted) -> list[Any]:
    return [it for it in history(session.state) if str(it[0]).startswith("2.")]


@pytest.mark.touching("learning")
@pytest.mark.usefixtures("on_disk")
async def test_in_a_combination_stage(tmp_path: Path) -> None:
    """A stage learns from its own attempts and from none of the base's: the first draw is by the usual weights. With
    several in flight, at any moment and after a resume, what it knows is in the ledger; one at a time, a stage that was
    stopped goes on with the very draws of one that was not.
    """
    task = await base_and_stage(tmp_path / "wide")
    async with scripted(task, Unlike(), how=How.COMBINE, width=WIDTH) as stage:
        assert (list(stage.bench.pasts[Role.SEARCH].ended), stage.options["meta"]) == ([], "gradient")

        def compare(_: e.Event) -> None:
            assert read_again(stage, stage.state) == known(stage)

        for kind in (e.Proposed, e.Promoted, e.AttemptEnded):
            stage.when(kind, compare)
        stage.stop_at(e.AttemptEnded, 8)
        await stage.run()
    async with scripted(task, Unlike(), how=How.RESUME) as stage:
        ended, _, view = known(stage)
        assert {it.node.split(".")[0] for it in ended} == {"2"}
        assert view is not None
        assert read_again(stage, stage.state) == known(stage)
        await stage.run()
        numbers = [it.number for it in stage.bench.pasts[Role.SEARCH].ended]
        assert sorted(numbers) == list(range(1, ATTEMPTS + 1))

    calm = await base_and_stage(tmp_path / "calm", width=1)
    stopped = shutil.copytree(calm, tmp_path / "stopped")
    expected = of_stage(await ran(calm, Reading(), how=How.COMBINE, seed=3))
    await ran(stopped, Reading(), how=How.COMBINE, seed=3, stop=(e.AttemptEnded, 9))
    assert of_stage(await ran(stopped, Reading(), how=How.RESUME)) == expected
    assert len(expected) == ATTEMPTS
