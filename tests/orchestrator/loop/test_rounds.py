"""With --review a session ends after each round: what a round is, and that a resume goes on with it."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Role
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import Point, Proposing, ran, scripted, take_words
from tests.orchestrator.loop.telling import at
from tests.orchestrator.loop.test_requests import DIFF

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5, 9, 2)]


class Serial(Proposing):
    serial = True


@pytest.mark.parametrize("width", [1, 3])
async def test_rounds_of_points(folder: Path, width: int) -> None:
    """A round of points is as many attempts as are tried at a time; each session is one round, until all is tried."""
    reasons, how = [], How.START
    given: dict[str, Any] = {"width": width, "review": True}
    for number in range(1, len(POINTS) // width + 1):
        async with scripted(folder, None, *POINTS, how=how, **given) as session:
            reasons.append((await session.run()).reason)
            assert session.charged == number * width
            assert [event.number for event in session.of(e.RoundStarted)] == [number]
        how, given = How.RESUME, {}
    assert all(reason.startswith(f"round {number} is over") for number, reason in enumerate(reasons, 1))
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        assert (await session.run()).reason == "all is proposed"


async def test_rounds_of_code(folder: Path) -> None:
    """A round of a proposer that works on one change after the other is one asking, however wide it runs."""
    async with scripted(folder, None, width=2, review=True) as session:
        session.bench.proposers[Role.SEARCH] = proposer = Serial(*POINTS)
        assert (await session.run()).reason.startswith("round 1 is over")
        assert len(proposer.asked) == session.charged == 1


@pytest.mark.parametrize("width", [1, 5])
async def test_changes_of_one_asking(folder: Path, width: int) -> None:
    """All changes that one asking brought belong to its round; nobody is asked again before it is over, however many
    places are free, and a round that was interrupted goes on with what is left of them.
    """
    last: Point = {"value": 2, "do": "wait"}  # so that it never ends before the stop
    offers: list[list[Point]] = [[{"value": 3}, {"value": 1}, last], [{"value": 5}, {"value": 4}]]
    proposer = Serial(*[offers[0]] * 3, *[offers[1]] * 3)
    charged, how, given = [], How.START, {"width": width, "review": True}
    for stopped in (True, False, False):
        flags: dict[str, Any] = given
        script = Script()
        async with scripted(folder, script, how=how, **flags) as session:
            session.bench.proposers[Role.SEARCH] = proposer
            take_words(session.bench, [last])
            object.__setattr__(session.bench, "at_once", 3)
            if stopped:
                session.stop_at(e.AttemptEnded, 2)
            else:
                script.gate.set()
            reason = (await session.run()).reason
            charged.append((session.charged, len(proposer.asked), reason[:7]))
        how, given = How.RESUME, {}
    assert charged[0][1:] == (1, "Ctrl-C")
    assert charged[1:] == [(3, 1, "round 1"), (5, 2, "round 2")]


async def test_no_review(folder: Path) -> None:
    """Without it there are no rounds; --no-review at a resume takes what the campaign was started with back."""
    session = await ran(folder, None, *POINTS, review=True, attempts=4)
    session = await ran(folder, None, *POINTS, how=How.RESUME, review=False)
    assert session.charged == 4
    assert session.of(e.RoundStarted) == []
    async with scripted(folder, None, *POINTS, how=How.RESUME, review=True, attempts=6) as session:
        assert (await session.run()).reason.startswith("round 2 is over")
        assert session.charged == 5


@pytest.mark.parametrize("kind", [e.AttemptOpened, e.TrialEnded])
async def test_stopped_in_a_round(folder: Path, kind: type[e.Event]) -> None:
    """A round that was interrupted is finished by the next session: none begins in between, and none is cut short."""
    points: list[Point] = [*POINTS[:2], {"value": 7, "do": "wait"}, *POINTS[3:]]
    script = Script()
    session = await ran(folder, script, *points, width=3, review=True, stop=(kind, 3))
    assert session.charged < 3
    script.gate.set()
    async with scripted(folder, script, *points, how=How.RESUME) as session:
        assert (await session.run()).reason.startswith("round 1 is over")
        assert session.of(e.RoundStarted) == []
        assert session.charged == 3


async def test_control_is_part_of_a_round(folder: Path) -> None:
    """The control gets what it is owed before the round is over."""
    session = await ran(folder, None, *POINTS, width=2, control="random", review=True)
    state = session.state
    assert (state.count(Role.SEARCH), state.count(Role.CONTROL)) == (2, 2)


async def test_control_that_has_nothing_more(folder: Path) -> None:
    """A control that is through does not keep the rounds from going on."""
    async with scripted(folder, None, *POINTS, control="random", review=True) as session:
        session.bench.proposers[Role.CONTROL] = Proposing()
        assert (await session.run()).reason.startswith("round 1 is over")
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        session.bench.proposers[Role.CONTROL] = Proposing()
        assert (await session.run()).reason.startswith("round 2 is over")
        assert session.charged == 2


async def test_free_endings_belong_to_their_round(folder: Path) -> None:
    """What is queued again after a free ending is waited for: a round is over when its attempts are."""
    async with scripted(folder, failing(1, after=1), *POINTS, review=True) as session:
        assert (await session.run()).reason.startswith("round 1 is over")
        assert len(session.of(e.AttemptRequeued)) == 1
        assert session.nodes["1.1"].ending is Ending.SCORED


async def test_cancelled_is_no_part_of_a_round(folder: Path) -> None:
    """An attempt that was cancelled brought nothing to look at; another one is made in its place."""
    async with scripted(folder, None, {"value": 9, "do": "wait"}, *POINTS, review=True) as session:
        at(session, e.TrialIntended, "1.1", lambda: ask(folder, "cancel", {"node": "1.1"}))
        await session.run()
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        assert session.charged == 1


async def test_caps_come_first(folder: Path) -> None:
    """A cap that is reached inside a round ends the session as ever; raised, the same round goes on."""
    async with scripted(folder, None, *POINTS, width=3, attempts=2, review=True) as session:
        assert "attempts" in (await session.run()).reason
    async with scripted(folder, None, *POINTS, how=How.RESUME, attempts=9) as session:
        assert (await session.run()).reason.startswith("round 1 is over")
        assert session.charged == 3


async def test_changes_by_hand(folder: Path) -> None:
    """What a person brings is tried on top of a round, and before it is over."""
    async with scripted(folder, None, *POINTS, review=True) as session:
        at(session, e.AttemptOpened, "1", lambda: ask(folder, "inject", {"text": DIFF}))
        await session.run()
        state = session.state
        assert (state.count(Role.SEARCH), state.count(Role.INJECTED)) == (1, 1)


async def test_new_run(folder: Path) -> None:
    """Rounds are a run's own."""
    await ran(folder, None, *POINTS, review=True)
    async with scripted(folder, None, *POINTS, how=How.NEW_RUN, review=True) as session:
        assert (await session.run()).reason.startswith("round 1 is over")
        assert session.state.count(Role.SEARCH) == 1


async def test_review_and_ask(folder: Path) -> None:
    """A round with a candidate that waits for a person's word is not over before the answer."""
    async with scripted(folder, None, *POINTS, review=True, ask=True) as session:
        session.when(e.PromotionAsked, lambda event: ask(folder, "accept", {"node": event.node}))
        finished = await session.run()
        assert finished.reason.startswith("round 1 is over")
        assert finished.champion
        assert finished.champion.id == "1.1"
