"""T87: free endings come to an end, and what was tuned well by then is not lost with the agent that tuned it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Campaign, Phase, Spent
from orchestrator.loop.free_bound import FreeBound
from orchestrator.loop.models import FoundStalled
from orchestrator.proposers import Brief
from orchestrator.watch.pulse import Cause, Life, Pulse
from orchestrator.wiring.beginning import How
from tests.messages import MessagesServer
from tests.orchestrator.loop.scripted import TUNE, Act, Point, Scripted, proposal, ran, scripted, write_task
from tests.orchestrator.loop.test_free_endings import stalling
from tests.orchestrator.loop.test_models import CHEAP, open_asking

LOOP = Pulse(Life.STALLED, 0.0, 0.0, 10, 1.0, cause=Cause.LOOP, detail="the same call 5 times in a row")


def looping(value: int) -> Act:
    """An agent that tunes once, with such a score, and then goes in circles."""

    async def act(brief: Brief) -> Sequence[Proposal]:
        assert brief.tune is not None
        await brief.tune(proposal({"value": value + brief.number, "tuned": value}))
        raise FoundStalled(LOOP, 1.0, 0.0)

    return act


def words_of(value: int) -> list[Point]:
    """All that it proposes."""
    return [{"value": value + number, "tuned": value} for number in range(31)]


async def test_t87_an_agent_that_tunes_and_loops_is_ended(tmp_path: Path, messages_server: MessagesServer) -> None:
    """At one attempt: it is never used up, so the endings are counted; a tune or a proposal does not clear that."""
    folder = write_task(tmp_path, CHEAP, TUNE, "[stall]\nin_a_row = 5\n")
    async with open_asking(folder, messages_server, *[looping(-5)] * 9, attempts=1, words=words_of(-5)) as session:
        finished = await session.run()
        assert finished.gave_up
        assert "5 attempts in a row ended free" in finished.reason
        assert session.charged == 0
        assert len(session.of(e.StallFound)) == 5
        assert not session.of(e.BreakerOpened), "the model answers, so it is the agents' doing"


async def test_t87_a_draft_that_was_tuned_well_is_submitted(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Its agent is given up on after its stalls; what it tuned is better than the baseline, and becomes the attempt."""
    folder = write_task(tmp_path, CHEAP, TUNE, "[stall]\nafter = 2\n")
    async with open_asking(folder, messages_server, looping(7), looping(7), attempts=1, words=words_of(7)) as session:
        finished = await session.run()
        node = session.nodes["1.1"]
        assert (node.ending, node.kept, session.charged) == (Ending.SCORED, True, 1)
        assert (node.stalls, len(session.of(e.StallFound))) == (1, 2)
        assert not session.of(e.AttemptQuarantined)
        assert not finished.gave_up


async def test_a_draft_that_is_no_better_is_not(tmp_path: Path, messages_server: MessagesServer) -> None:
    """It is set aside with its agent: an attempt is worth more than that."""
    folder = write_task(tmp_path, CHEAP, TUNE, "[stall]\nafter = 2\nin_a_row = 2\n")
    async with open_asking(folder, messages_server, looping(0), attempts=1, words=words_of(0)) as session:
        await session.run()
        assert session.nodes["1.1"].phase is Phase.QUARANTINED


async def test_a_person_lets_it_go_on_and_a_crash_does_not(tmp_path: Path) -> None:
    """The count begins again with a resume of what the bound had ended; after any other end it goes on."""
    folder = write_task(tmp_path / "task", "[stall]\nin_a_row = 3\nafter = 99\nrefunds = 99\n")
    async with scripted(folder, None, stalling(99)) as session:
        assert (await session.run()).gave_up
        assert session.state.campaign.free == 3
    async with scripted(folder, None, stalling(99), how=How.RESUME) as session:
        assert session.state.campaign.free == 0
        _dies_after(session, 2)
        with pytest.raises(ZeroDivisionError):
            await session.run()
    async with scripted(folder, None, stalling(1), how=How.RESUME) as session:
        assert session.state.campaign.free == 2
        session.campaign.stop("Ctrl-C")
        assert not (await session.run()).gave_up
    async with scripted(folder, None, stalling(1), how=How.RESUME) as session:
        assert session.state.campaign.free == 2
        assert (await session.run()).gave_up


def _dies_after(session: Scripted, endings: int) -> None:
    def die(_: e.AttemptRequeued) -> None:
        nonlocal endings
        endings -= 1
        if not endings:
            session.bench.book.fail(ZeroDivisionError("as kill -9 does it, nothing more is written"))

    session.when(e.AttemptRequeued, die, on_disk=True)


async def test_an_attempt_that_is_used_up_begins_the_count_anew(tmp_path: Path) -> None:
    """Now and then a free ending is no reason to stop."""
    folder = write_task(tmp_path / "task", "[stall]\nin_a_row = 2\n")

    def once(value: int) -> Act:
        left = 1

        async def act(brief: Brief) -> Sequence[Proposal]:
            nonlocal left
            left -= 1
            return [] if left == 0 else [proposal({"value": value})]

        return act

    session = await ran(folder, None, *(once(value) for value in range(1, 6)))
    assert not session.ends[-1].gave_up
    assert session.charged == 5
    assert session.accounts.losses.endings == 5


@pytest.mark.parametrize(
    ("free", "usd", "reached"), [(2, 0, False), (3, 0, True), (1, 4_999_999, False), (1, 5_000_000, True)]
)
def test_either_of_count_and_dollars_is_enough(free: int, usd: int, reached: bool) -> None:
    """Which were spent for nothing since an attempt was last used up."""
    bound = FreeBound(endings=3, microdollars=5_000_000)
    assert str(bound) == "at most 3 attempts in a row, and $5.00, may end free"
    campaign = Campaign(id="x", name="x", version="1", free=free, free_usd=usd)
    assert bool(bound.reached(campaign)) is reached


async def test_the_default_in_dollars_is_never_less_than_a_few_attempts(folder: Path) -> None:
    """Where a machine costs $30 an hour, one that is taken away must not end the campaign."""
    async with scripted(folder, None, {"value": 1}) as session:
        cheap = FreeBound.of(session.bench)
        dear = FreeBound.of(replace(session.bench, asking=Spent(microdollars=10_000_000)))
    assert (cheap.endings, cheap.microdollars) == (20, 5_000_000)
    assert dear.microdollars == 30_000_000
