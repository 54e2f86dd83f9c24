"""A clock that goes back, as after a resume on another host: what came before what is said by the ledger, not by it."""

from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.goodput import in_order, iterations
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Role
from orchestrator.examine.replay import beaten
from orchestrator.views.campaign.opening import metrics_of
from orchestrator.views.campaign.sections.rounds import nodes_of
from orchestrator.views.page.board import Board
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import read_campaign
from tests.orchestrator.loop.noise import noisy, scripted_scores
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, scripted, write_task

POINTS: list[Point] = [{"value": value} for value in (3, 7, 5, 9, 2)]
ORDER = ["1", "1.1", "1.2", "1.3", "1.4", "1.5"]


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Every attempt ends an hour before the one before it; 1.1, 1.2 and 1.4 become champion; round 2 follows 1.3."""
    made = write_task(tmp_path / "task")
    async with scripted(made, None, *POINTS, attempts=5, width=1) as session:

        def back(event: e.Event, _: str) -> None:
            if isinstance(event, e.AttemptEnded):
                session.clock.skip(-3600)

        session.bench.book.observers.append(back)
        session.stop_at(e.AttemptEnded, 4)
        await session.run()
        session.bench.book.record(e.RoundStarted(run=1, number=2, size=2))
    async with scripted(made, None, *POINTS, how=How.RESUME, width=1) as session:
        session.clock.skip(-36_000)
        await session.run()
        times = [session.state.nodes[name].ended_at for name in ORDER]
        assert times[:4] == sorted(times[:4], reverse=True)
        assert max(times[4:]) < min(times[:4])
    return made


def test_what_stands_on_the_order(folder: Path) -> None:
    """Tables, charts and the page show nodes as they were opened, and number results as they ended. A replay is held
    against the champion of the time when a node was not kept, not one that the clock puts before it. A round brought
    what ended after it began, whatever the time was then.
    """
    with read_campaign(folder) as reading:
        state, run = reading.state, reading.state.run
        assert [node.id for node in in_order(state, run)] == ORDER
        assert iterations(state, run) == {name: number for number, name in enumerate(ORDER, 1)}
        board = Board(state, metrics_of(reading), run)
        board.fill(state.nodes.values())  # type: ignore[arg-type]  # a node has all that its line has
        assert board.names() == ORDER
        cohort = run.cohort or ""
        assert beaten(state, state.nodes["1.3"], cohort) == "1.2"
        assert beaten(state, state.nodes["1.5"], cohort) == "1.4"
        assert [it.id for it in state.nodes.values() if it.role is Role.SEARCH and it.kept] == ["1.1", "1.2", "1.4"]
        made = state.campaign.round
        assert made
        assert [node.id for node in nodes_of(state, made)] == ["1.4", "1.5"]


async def test_what_a_noisy_score_stands_on(tmp_path: Path) -> None:
    """Its repeats count, though the clock says that it ended before they began."""
    made, script = write_task(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(made, script, {"value": 3}, width=1) as session:

        def back(event: e.Event, _: str) -> None:
            if isinstance(event, e.TrialEnded):
                session.clock.skip(-60)

        session.bench.book.observers.append(back)
        script.noise = scripted_scores(session.state, {"1.1": (5.0, 0.0)})
        await session.run()
    found = headline(session.state, session.nodes["1.1"])
    assert found
    assert (dict(found.metrics), found.screened, found.runs > 1) == ({"score": 3.0}, False, True)
