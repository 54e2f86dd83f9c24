"""What a proposer is shown of the past, and that nothing is paid for twice."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.proposers import Brief, Tried
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, ran, scripted, write_task

POINTS: list[Point] = [{"value": 3}, {"value": 5}, {"value": 4, "do": "exit"}, {"value": 9}]


class Counting:
    """Proposes the value of its number, and keeps what it was shown."""

    serial = False
    branching = False

    def __init__(self, *values: int) -> None:
        self._values = values
        self.asked: list[Brief] = []
        self.shown: list[list[Tried]] = []

    def exhausted(self, number: int) -> str | None:
        return "that was all" if number > len(self._values) else None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        self.asked.append(brief)
        self.shown.append(list(brief.past.ended))
        value = self._values[brief.number - 1] + (10 * brief.again if brief.number == 3 else 0)
        return [Proposal(operator="count", description="", params={"value": value})]


async def test_past_is_shown(tmp_path: Path) -> None:
    """Every charged attempt is shown in its order, with merits where it has a score and None where it failed."""
    past = (await ran(write_task(tmp_path / "task"), None, *POINTS)).bench.pasts[Role.SEARCH]
    assert [(it.number, it.merits) for it in past.ended] == [(1, (3.0,)), (2, (5.0,)), (3, None), (4, (9.0,))]
    assert (past.ended[0].params, past.ended[1].parent_merits) == ({"value": 3}, (0.0,))
    assert not past.running


@pytest.mark.parametrize("told", [False, True])
async def test_notes_of_a_judge_only_where_the_task_says_so(tmp_path: Path, told: bool) -> None:
    """They are recorded in any case."""
    more = "[model]\nnotes = true\n" if told else ""
    session = await ran(write_task(tmp_path / "task", more), None, {"value": 3, "notes": "row 7 is off"})
    bench = session.bench
    [tried] = bench.pasts[Role.SEARCH].ended
    verdict = bench.state.nodes[tried.node].verdict
    assert verdict
    assert verdict.notes == "row 7 is off"
    assert tried.notes == ("row 7 is off" if told else "")


async def test_past_is_the_same_after_a_resume(tmp_path: Path) -> None:
    """Made again from the rows, it is what grew with the events, also where the clock went back."""
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, *POINTS) as session:

        def back(event: e.Event, _: str) -> None:
            if isinstance(event, e.AttemptEnded):
                session.clock.skip(-3600)

        session.bench.book.observers.append(back)
        session.stop_at(e.AttemptEnded, 4)
        await session.run()
    before = session.bench.pasts[Role.SEARCH]
    times = [session.nodes[it.node].ended_at for it in before.ended]
    assert len(times) == 3
    assert times == sorted(times, reverse=True)
    trees = [draft.tree or "" for name in ("1.1", "1.2", "1.3") for draft in session.state.drafts(name)]
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        again = session.bench.pasts[Role.SEARCH]
        assert (list(again.ended), again.running) == (list(before.ended), before.running)
        assert [again.first_with(it) for it in trees] == [before.first_with(it) for it in trees] != []


async def test_running_attempts_are_shown(tmp_path: Path) -> None:
    """An attempt with a proposal and no ending yet is shown as running, without merits; to look makes nothing new."""
    async with scripted(write_task(tmp_path / "task"), None, {"value": 3}) as session:
        seen: list[list[Tried]] = []
        session.when(e.TrialIntended, lambda event: seen.append(list(session.bench.pasts[Role.SEARCH].running)))
        await session.run()
        assert session.bench.pasts[Role.SEARCH].running is session.bench.pasts[Role.SEARCH].running
    assert [[tried.params for tried in running] for running in seen][-1] == [{"value": 3}]
    assert seen[-1][0].merits is None


async def test_known_files_are_not_paid_for(tmp_path: Path) -> None:
    """What was tried before is asked for again; where nothing else comes, the attempt ends without a charge."""
    script = Script()
    async with scripted(write_task(tmp_path / "task", high=13), script, {"value": 3}) as session:
        proposer = Counting(3, 3, 3, 4, 0)
        session.bench.proposers[Role.SEARCH] = proposer
        await session.run()
        nodes, accounts = session.nodes, session.accounts
        ended = (Ending.SCORED, Ending.CANCELLED, Ending.SCORED, Ending.SCORED, Ending.CANCELLED)
        assert tuple(nodes[f"1.{n}"].ending for n in range(1, 6)) == ended
        assert nodes["1.2"].why == "what is proposed was tried before: 1.1 has the same files"
        assert nodes["1.3"].params == {"value": 13}
        assert accounts.used(Account.ATTEMPTS) == 3
        assert [brief.again for brief in proposer.asked] == [0, *range(8), 0, 1, 0, *range(8)]
        assert "1 has the same files" in nodes["1.5"].why, "the baseline is known, too"
        assert nodes["1.5"].trials == 0


async def test_nothing_new_any_more(tmp_path: Path) -> None:
    """A proposer that only repeats itself ends the campaign, with the reason, and is not asked for ever."""
    async with scripted(write_task(tmp_path / "task", high=13), None, {"value": 3}, attempts=100) as session:
        session.bench.proposers[Role.SEARCH] = Counting(*[3] * 99)  # another one only at its third attempt
        finished = await session.run()
        assert finished.reason.startswith("20 times in a row nothing new was proposed")
        assert session.charged == 2
