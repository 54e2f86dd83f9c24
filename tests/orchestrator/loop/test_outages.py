"""T86: a provider that is away, for however long, costs nobody anything but time."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Phase
from orchestrator.loop.breaker import CampaignBreaker
from orchestrator.proposers import Brief, Tuned
from orchestrator.turns import HELDOUT
from orchestrator.units import utc_now
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job, Unavailable
from sandbox.backends.fake.backend import FakeWorld
from tests.messages import MessagesServer
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import TUNE, Scripted, make_site, proposal, scripted, write_task
from tests.orchestrator.loop.test_models import CHEAP, settings_for

POINTS = [{"value": number} for number in range(1, 13)]


class Now(Protocol):
    def __call__(self) -> datetime: ...


@dataclass
class World(FakeWorld):
    """A provider that comes back at a time of the session's clock."""

    clock: Now = utc_now
    back_at: float = 0.0

    def check(self) -> None:
        self.answers = self.answers or self.clock().timestamp() >= self.back_at
        super().check()


def away_for(session: Scripted, seconds: float, after: int) -> None:
    """It goes away, and every connection breaks, once so many attempts have ended."""
    world, ended = session.script.world, 0
    assert isinstance(world, World)
    world.clock = session.clock

    def go(_: e.AttemptEnded) -> None:
        nonlocal ended
        ended += 1
        if ended == after:
            world.back_at = session.clock().timestamp() + seconds
            world.cut()

    session.when(e.AttemptEnded, go)


async def test_t86_outages_that_follow_each_other(tmp_path: Path) -> None:
    """What was under way ends free, once each; nobody is charged or proposed for meanwhile, and however often: an
    attempt that was there each time is not set aside for it.
    """
    script = Script(world=World())
    site = make_site(script, usd_per_second=0.001, ceiling=2)
    async with scripted(write_task(tmp_path / "task"), script, *POINTS, site=site, width=2, attempts=12) as session:
        for after in (2, 5, 8):
            away_for(session, 700, after=after)
        await session.run()
        assert not session.of(e.AttemptQuarantined)
        assert len(session.of(e.AttemptRequeued)) <= 3 * 4
        assert len(session.of(e.BreakerClosed)) == 3
        assert session.charged == 12
        assert all(node.phase is Phase.ENDED for node in session.nodes.values())


async def test_t86_nothing_is_opened_or_proposed_while_the_breaker_is_open(tmp_path: Path) -> None:
    """Not a new attempt, nor one that waits, nor the control's; what was reserved is given back meanwhile. A cap on
    dollars is not used up: what the outage broke off is all that it costs, however long it lasts.
    """
    script = Script(world=World())
    site = make_site(script, usd_per_second=0.001)
    folder = write_task(tmp_path / "task")
    async with scripted(folder, script, *POINTS[:6], site=site, usd=5.0, control="random", attempts=6) as session:
        away_for(session, 3000, after=2)
        starts = (e.AttemptOpened, e.AttemptResumed, e.Proposed, e.TrialIntended, e.Reserved, e.ModelCallIntended)
        began: list[e.Event] = []
        held: list[object] = []

        def look(event: e.Event, _: str) -> None:
            if session.bench.breaker.is_open and isinstance(event, e.BreakerOpened) and event.tries:
                held.extend(session.accounts.holds)
            began.extend([event] if session.state.campaign.away and not script.world.answers else [])

        session.bench.book.listeners.append(look)
        await session.run()
        assert len(session.of(e.BreakerOpened)) > 10
        assert not [event for event in began if isinstance(event, starts)]
        assert not held
        assert session.charged == 6
        assert len(session.of(e.AttemptRequeued)) <= 2
        assert session.accounts.losses.usd < 1000


async def test_an_attempt_that_asks_nobody_does_not_keep_others_from_trying(tmp_path: Path) -> None:
    """One that has thought for an hour by then is no try of the provider that is back."""
    script, done = Script(world=World()), asyncio.Event()

    async def thinks(_: Brief) -> Sequence[Proposal]:
        await done.wait()
        return [proposal({"value": 99})]

    folder = write_task(tmp_path / "task", high=99)
    async with scripted(folder, script, thinks, *POINTS[:3], width=3, attempts=4) as session:
        away_for(session, 150, after=2)
        session.when(e.BreakerClosed, lambda _: done.set())
        await session.run(30)
        assert session.of(e.BreakerTried)
        assert session.charged == 4


def no_machine_for(*nodes: str) -> tuple[Callable[[Job], Awaitable[None]], Callable[[e.TrialIntended], None]]:
    """What opens chambers for all but some attempts, and what tells it whose is opened next."""
    intended = ContextVar("intended", default="")

    async def on_open(job: Job) -> None:
        if job.command[0] == "trial" and intended.get() in nodes:
            raise Unavailable("no machine for this one")

    def begins(event: e.TrialIntended) -> None:
        intended.set(event.node)

    return on_open, begins


@pytest.mark.parametrize(("width", "many"), [(3, 2), (1, 1)])
async def test_an_attempt_that_alone_finds_no_chamber_is_set_aside(tmp_path: Path, width: int, many: int) -> None:
    """Others get through each time it fails: then it is not the provider's doing, and nobody else waits for it. Nor is
    it the only one that is tried when the provider is back: else nothing would ever be tried but what fails alone.
    """
    on_open, intended = no_machine_for("1.1")
    folder = write_task(tmp_path / "task", "[stall]\nrefunds = 3\n")
    async with scripted(folder, Script(on_open=on_open), *POINTS, width=width, attempts=12) as session:
        session.bench.breaker.pure.many = many
        session.when(e.TrialIntended, intended)
        await session.run()
        assert [it.node for it in session.of(e.AttemptQuarantined)] == ["1.1"]
        assert session.charged == 11


async def test_those_that_fail_when_they_are_tried_take_turns(tmp_path: Path) -> None:
    """No more are opened than it takes to have another one: a provider that is away must not fill the queue."""
    on_open, intended = no_machine_for(*(f"1.{number}" for number in range(1, 13)))
    async with scripted(write_task(tmp_path / "task"), Script(on_open=on_open), *POINTS, width=1) as session:
        session.bench.breaker.pure.many = 1
        session.when(e.TrialIntended, intended)
        session.stop_at(e.AttemptResumed, 6)
        await session.run(60)
        assert [it.node for it in session.of(e.TrialIntended)][1:7] == ["1.1", "1.1", "1.2", "1.1", "1.2", "1.1"]


async def test_t86_a_silence_is_known_while_those_at_work_still_wait(folder: Path) -> None:
    """They may wait for minutes: meanwhile nothing is started, `status` says why, and what they bring closes it."""
    script = Script(world=World())
    async with scripted(folder, script, {"value": 3, "do": "wait"}, {"value": 4}, width=1) as session:
        world, turns = script.world, itertools.count()
        session.bench.breaker.clock = lambda: next(turns)
        assert isinstance(world, World)

        async def hush() -> None:
            while script.commands.count("trial") < 2:  # noqa: ASYNC110 the second is the one that waits
                await asyncio.sleep(0.01)
            world.answers, world.back_at = False, 1e12

        def speak(_: e.BreakerOpened) -> None:
            assert session.state.trials["1.1-1"].ending is None
            assert session.state.campaign.away
            world.back_at = 0.0
            script.gate.set()

        session.when(e.BreakerOpened, speak)
        await asyncio.gather(session.run(), hush())
        assert session.of(e.BreakerOpened)
        assert not session.of(e.AttemptRequeued)
        assert (session.charged, session.state.campaign.away) == (2, "")


async def test_one_that_goes_away_while_another_is_probed_has_to_answer_too(folder: Path) -> None:
    """Else an attempt would be let through that needs it."""
    go, asked, now = asyncio.Event(), list[str](), 1e6

    def probe(name: str) -> Callable[[], Awaitable[bool]]:
        async def answers() -> bool:
            asked.append(name)
            await go.wait()
            return True

        return answers

    async with scripted(folder, None, {"value": 1}) as session:
        probes = {name: probe(name) for name in ("engine", "model")}
        breaker = CampaignBreaker(session.bench.book, probes, {}, away="engine", home="engine")
        breaker.clock = lambda: now + len(asked)
        for _ in range(2):
            breaker.failed("engine", "away")
        now = 2e6
        for turn in range(8):
            breaker.look(at_work=True)
            await asyncio.sleep(0)
            if turn == 2:
                for _ in range(2):
                    breaker.failed("model", "away, too")
                go.set()
            assert breaker.is_open or "model" in asked
        assert asked == ["engine", "engine", "model"]
        assert breaker.is_trying
        await breaker.close()


async def test_a_session_that_finds_the_breaker_open_probes_before_it_starts_anything(folder: Path) -> None:
    """As after kill -9: what the ledger says of the provider is heeded."""
    script = Script(world=World())
    async with scripted(folder, script, *POINTS[:3]) as session:
        away_for(session, 1e9, after=2)
        session.stop_at(e.BreakerOpened, 3)
        await session.run()
        assert session.state.campaign.away
    script = Script(world=World(answers=False, back_at=1e12))
    async with scripted(folder, script, *POINTS[:3], how=How.RESUME) as session:
        assert isinstance(script.world, World)
        script.world.back_at = session.clock().timestamp() + 100
        script.world.clock = session.clock
        await session.run()
        assert not session.of(e.AttemptRequeued)
        assert session.of(e.BreakerOpened)
        assert (session.charged, session.state.campaign.away) == (3, "")


async def test_pause_off_tries_at_once(folder: Path) -> None:
    """A person who knows that the provider is back need not wait for the next probe."""
    script = Script(world=World())
    async with scripted(folder, script, *POINTS[:3]) as session:
        away_for(session, 20, after=2)
        session.bench.book.listeners.remove(session.clock.skip_wait)

        def come_back(event: e.BreakerOpened) -> None:
            session.clock.skip(event.wait_s if event.tries < 2 else 1.0)
            if event.tries == 2:
                script.world.answers = True
                ask(folder, "pause", {"paused": False})

        session.when(e.BreakerOpened, come_back)
        session.when(e.AttemptRequeued, lambda _: session.clock.skip(2))
        await session.run()
        assert session.charged == 3


async def test_a_tune_does_not_wait_for_one_that_is_alone(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A held-out trial waits for all that run, and may take an hour then: an agent would stall behind it."""
    told: list[Tuned] = []

    async def act(brief: Brief) -> Sequence[Proposal]:
        assert brief.tune is not None
        turns = session.bench.door.turns
        async with turns.take(HELDOUT):
            told.append(await brief.tune(proposal({"value": 5})))
        told.append(await brief.tune(proposal({"value": 5})))
        return [proposal({"value": 8})]

    settings, folder = settings_for(messages_server), write_task(tmp_path, CHEAP, TUNE)
    async with scripted(folder, None, act, settings=settings, proposer="llm", attempts=1) as session:
        await session.run(30)
        assert [it.score for it in told] == [None, 5]
        assert told[0].ending.startswith("the machine is taken")
        assert told[1].left == told[0].left - 1
        assert session.charged == 1


async def test_a_tune_while_a_provider_is_away_costs_nothing(tmp_path: Path, messages_server: MessagesServer) -> None:
    """An agent at work is told so; its pool, the engine and the ledger are left alone."""
    script = Script(world=World())
    told: list[Tuned] = []

    async def act(brief: Brief) -> Sequence[Proposal]:
        assert brief.tune is not None
        script.world.answers = brief.number == 1
        told.extend([await brief.tune(proposal({"value": number})) for number in (5, 6, 7)])
        script.world.answers = True
        return [proposal({"value": 8 + brief.number})]

    settings = settings_for(messages_server)
    folder = write_task(tmp_path, CHEAP, TUNE)
    async with scripted(folder, script, act, act, settings=settings, proposer="llm", attempts=2) as session:
        assert isinstance(script.world, World)
        script.world.back_at = 1e12
        await session.run()
        away = [it.ending for it in told[3:]]
        assert [it.score for it in told[:3]] == [5, 6, 7]
        assert away[:2] == ["infrastructure"] * 2
        assert away[2].startswith("a provider is away")
        assert session.charged == 2
        assert not session.of(e.AttemptRequeued)
