"""Samplers in a campaign: a resume goes on as it would have, no point is paid for twice, and an end is said."""

from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.proposal import Value
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.scripted import Scripted, scripted, write_task


def points(session: Scripted) -> list[dict[str, Value] | None]:
    nodes = sorted(session.bench.state.nodes.values(), key=lambda node: node.number)
    return [node.params for node in nodes if node.parent and node.params is not None]


@pytest.mark.parametrize("name", ["tpe", "cmaes", "gp", "thompson", "de"])
async def test_a_resumed_campaign_is_the_same(tmp_path: Path, name: str) -> None:
    """At width 1: attempt for attempt the points of a campaign that nothing stopped."""
    whole, cut = write_task(tmp_path / "whole", high=250), write_task(tmp_path / "cut", high=250)
    async with scripted(whole, None, proposer=name, attempts=16, width=1) as session:
        await session.run()
        wanted = points(session)
    async with scripted(cut, None, proposer=name, attempts=16, width=1) as session:
        session.stop_at(e.AttemptEnded, 12)
        await session.run()
        assert points(session) == wanted[:11]  # the baseline ended too
    async with scripted(cut, None, proposer=name, attempts=16, width=1, how=How.RESUME) as session:
        await session.run()
        assert points(session) == wanted
    assert len({str(point) for point in wanted}) == 16


@pytest.mark.parametrize("name", ["tpe", "thompson", "de"])
async def test_all_points_are_tried(tmp_path: Path, name: str) -> None:
    """Several at a time: each of them once, then the campaign ends and says why."""
    folder = write_task(tmp_path / "task", high=7)
    async with scripted(folder, None, proposer=name, attempts=50, width=3) as session:
        finished = await session.run()
        assert finished.reason == "all 7 points of the space are tried"
        assert session.charged == 7
        assert sorted(str(point) for point in points(session)) == [f"{{'value': {at}}}" for at in range(1, 8)]
