"""With selection = "tasks", a branch starts from whoever is best at something; the champion stays the ranking's."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.frontier import frontier_of
from orchestrator.domain.records import Role
from orchestrator.loop.openings import next_opening
from orchestrator.loop.selection import Population
from orchestrator.population.rules import BestAtTasks
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.scripted import Point, Scripted, ran, scripted, write_task

TASKS = '[search]\nselection = "tasks"\n'
# Each has its own task that it solves; the third is the best on the whole.
POINTS: list[Point] = [
    {"value": 3, "tasks": "1,0,0"},
    {"value": 2, "tasks": "0,1,0"},
    {"value": 4, "tasks": "0,0,1"},
]
POINTS += [{"value": 1, "tasks": "0,0,0", "number": number} for number in range(30)]


def parents(session: Scripted) -> Counter[str | None]:
    nodes = session.nodes.values()
    return Counter(node.parent for node in nodes if node.role is Role.SEARCH and node.number > 3)


async def test_branches_start_where_something_is_best(tmp_path: Path) -> None:
    """All three that are best at a task are built on, others are not, and the champion is the best on the whole."""
    folder = write_task(tmp_path / "task", TASKS)
    session = await ran(folder, None, *POINTS, branching=True, depth=1, attempts=33)
    best = set(frontier_of(session.state).best_at)
    assert len(best) == 3
    assert set(parents(session)) == best
    champion = session.state.champion()
    assert champion
    assert champion.verdict
    assert champion.verdict.metrics["score"] == 4


async def test_by_default_branches_start_at_the_champion(tmp_path: Path) -> None:
    """Tasks change nothing unless they are asked for."""
    folder = write_task(tmp_path / "task")
    session = await ran(folder, None, *POINTS[:12], branching=True, depth=1, attempts=12)
    champion = session.state.champion()
    assert champion
    assert set(parents(session)) == {champion.id}


async def in_one_go_and_in_two(
    tmp_path: Path, points: Sequence[Point], stop: int, **flags: Any
) -> tuple[Scripted, Scripted]:
    """Two campaigns alike, of which the second is stopped once so many attempts have ended, and resumed."""
    one, two = write_task(tmp_path / "one"), write_task(tmp_path / "two")
    whole = await ran(one, None, *points, branching=True, **flags)
    async with scripted(two, None, *points, branching=True, **flags) as session:
        session.stop_at(e.AttemptEnded, stop)
        await session.run()
    return whole, await ran(two, None, *points, branching=True, how=How.RESUME)


async def test_a_resume_draws_the_same(tmp_path: Path) -> None:
    """Stopped half-way and gone on with, it builds on the same nodes as in one go."""
    sessions = await in_one_go_and_in_two(tmp_path, POINTS, 8, attempts=14, depth=1, selection="tasks")
    one, two = ({node.number: node.parent for node in it.nodes.values() if node.parent} for it in sessions)
    assert len(one) == 14
    assert one == two


async def test_without_tasks_it_is_the_champion(tmp_path: Path) -> None:
    """A judge that tells no tasks leaves nothing to choose by."""
    folder = write_task(tmp_path / "task", TASKS)
    points: list[Point] = [{"value": value} for value in (2, 9, 3, 4)]
    session = await ran(folder, None, *points, branching=True, depth=1, attempts=4)
    champion = session.state.champion()
    assert champion
    state = session.state
    selection = Population(state, session.bench.ranking, lambda _: BestAtTasks())
    opening = next_opening(state, session.bench.ranking, branching=True, width=1, selection=selection)
    assert opening
    assert opening.parent == champion.id


async def test_a_branch_goes_on_where_it_is_best(tmp_path: Path) -> None:
    """A step that made things worse is not built on: the next one starts where the branch did, or at its best."""
    points: list[Point] = [{"value": value} for value in (5, 2, 9, 3, 4)]
    session = await ran(write_task(tmp_path / "task"), None, *points, branching=True, depth=5, attempts=5)
    assert list(session.nodes) == ["1", "1.1", "1.1.1", "1.1.2", "1.1.2.1", "1.1.2.2"]


async def test_a_worse_branch_returns_to_its_start(tmp_path: Path) -> None:
    """Where nothing in a branch is as good as what it started from, that is built on once more."""
    points: list[Point] = [{"value": value} for value in (-5, -2, 3)]
    session = await ran(write_task(tmp_path / "task"), None, *points, branching=True, depth=3, attempts=3)
    assert list(session.nodes) == ["1", "1.1", "1.2", "1.3"]


def neutral(count: int) -> list[Point]:
    """As good as the baseline, and each another one."""
    return [{"value": 0, "number": number} for number in range(count)]


@pytest.mark.parametrize("flags", [{}, {"walk": 6}])
async def test_a_branch_builds_on_one_neutral_change(tmp_path: Path, flags: dict[str, Any]) -> None:
    """The first: more of them would be ballast, as long as the search finds something, or nobody said otherwise."""
    folder = write_task(tmp_path / "task")
    session = await ran(folder, None, *neutral(5), branching=True, depth=5, attempts=5, **flags)
    assert list(session.nodes) == ["1", "1.1", "1.1.1", "1.1.2", "1.1.3", "1.1.4"]


async def test_a_search_that_is_stuck_walks_over_neutral_changes(tmp_path: Path) -> None:
    """After so many attempts for nothing a branch goes on from one neutral change to the next, over a worse one too,
    and what is found at the end is kept; a resume in the middle walks on alike. A new branch starts at the champion.
    """
    worse: list[Point] = [{"value": -1, "number": number} for number in range(6)]
    points: list[Point] = [*worse[:5], *neutral(3), worse[5], {"value": 5}, {"value": 3}]
    for session in await in_one_go_and_in_two(tmp_path, points, 8, attempts=11, depth=5, width=1, walk=5):
        assert session.champion == "1.6.1.1.2"
        walked = ["1.6", "1.6.1", "1.6.1.1", "1.6.1.1.1", "1.6.1.1.2", "1.6.1.1.2.1"]
        assert list(session.nodes)[-6:] == walked


@pytest.mark.parametrize("meta", ["off", "gradient"])
async def test_a_rule_is_drawn_for_each_branch(tmp_path: Path, meta: str) -> None:
    """Which one is on record with every attempt of the branch, under which probability, so all that they bring is
    credited to it; a resume draws the same.
    """
    points: list[Point] = [{"value": value, "tasks": f"{value % 3},{value % 4}"} for value in range(1, 13)]
    flags = {"attempts": 12, "depth": 2, "selection": "drawn", "meta": meta}
    seen = []
    for session in await in_one_go_and_in_two(tmp_path, points, 5, **flags):
        nodes = [node for node in session.nodes.values() if node.role is Role.SEARCH]
        drawn = {node.id: node.drawn.arms["parent"] for node in nodes if node.drawn}
        assert len(drawn) == 12
        arms, firsts = list(drawn.values()), {node.branch: drawn[node.id] for node in nodes if node.step == 1}
        assert all(drawn[node.id] == firsts[node.branch] for node in nodes)
        assert any(node.step > 1 for node in nodes)
        assert all(set(arm.among) == {"champion", "tasks", "tournament", "novelty", "archive"} for arm in arms)
        assert len({arm.option for arm in arms}) > 1
        assert arms[0].p == pytest.approx(0.2)
        seen.append(drawn)
    assert seen[0] == seen[1]
