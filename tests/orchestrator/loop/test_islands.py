"""Islands: populations that search apart, each with its own best, and get their neighbour's best now and then."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.records import Node, Role
from orchestrator.task import StoredTask
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.campaign.sections.population import population
from orchestrator.views.campaign.tree import Layout, tree
from orchestrator.views.render.model import Section, Table, raw
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.scripted import CPU, Point, Scripted, ran, scripted, write_task

GRID = "[search.archive.features]\nscore = {low = 0, high = 12, bins = 6}\n"
# The first of each pair is tried on island 1, the second on island 2.
RISING: list[Point] = [{"value": value, "number": at} for at, value in enumerate((5, 3, 6, 4, 2, 7, 1, 1, 8, 2, 1, 1))]


def searched(session: Scripted) -> list[Node]:
    nodes = [node for node in session.state.nodes.values() if node.role is Role.SEARCH]
    return sorted(nodes, key=lambda node: node.number)


def parents(session: Scripted) -> dict[int, str | None]:
    return {node.number: node.parent for node in searched(session)}


async def run_on(folder: Path, points: list[Point] = RISING, **flags: Any) -> Scripted:
    return await ran(folder, None, *points, **{"branching": True, "depth": 1, "attempts": len(points), **flags})


def told_of(session: Scripted) -> Section:
    """What the report says of the population."""
    bench = session.bench
    task = StoredTask(bench.task.canonical())
    return population(Material(bench.state, bench.book.accounts, bench.state.run, bench.ranking, task))


async def test_each_island_builds_on_its_own_best(tmp_path: Path) -> None:
    """Branches are dealt out in turn; an island does not see what another one found."""
    session = await run_on(write_task(tmp_path / "task"), islands=2, migrate=1000)
    nodes = searched(session)
    assert [node.island for node in nodes] == [1, 2] * 6
    names = {node.number: node.id for node in nodes}
    # 1 has 5, 6, then 8; 2 has 3, 4, then 7.
    built_on = (1, 2, 3, 4, 3, 6, 3, 6, 9, 6)
    assert parents(session) == {1: "1", 2: "1"} | {at: names[number] for at, number in enumerate(built_on, 3)}
    assert session.nodes[session.champion].number == 9


async def test_the_best_of_a_neighbour_is_brought(tmp_path: Path) -> None:
    """Each island may build on it; it is shown, and after a stop neither lost nor done twice."""
    flags: dict[str, Any] = {"islands": 2, "migrate": 4}
    session = await run_on(write_task(tmp_path / "one"), **flags)
    moved = [(it.after, dict(it.moves)) for it in session.of(e.Migrated)]
    names = {node.number: node.id for node in searched(session)}
    assert moved[0] == (4, {names[4]: 1, names[3]: 2})
    assert parents(session)[6] == names[3]
    assert session.nodes[names[3]].migrated == (2,)
    assert [after for after, _ in moved] == [4, 8]
    assert "[island 1>2]" in tree(session.state, session.bench.ranking.metrics, Layout(unicode=False)).plain
    found = told_of(session)
    assert raw(found.brief) == "2 islands"
    [table] = found.body
    assert isinstance(table, Table)
    best = max(searched(session), key=lambda node: session.score(node.id))
    assert [raw(cell) for cell in table.rows[0]][:4] == ["1", "6", best.id, "score=8"]
    assert len(table.rows) == 2

    folder = write_task(tmp_path / "two")
    stopped = await ran(folder, None, *RISING, branching=True, depth=1, attempts=12, **flags, stop=(e.Migrated, 1))
    resumed = await ran(folder, None, *RISING, how=How.RESUME, branching=True)
    assert len(stopped.of(e.Migrated)) + len(resumed.of(e.Migrated)) == len(moved)
    assert parents(resumed) == parents(session)


async def test_the_archive_is_shown(tmp_path: Path) -> None:
    """Cells are counted and listed with their best."""
    points: list[Point] = [{**point, "tasks": f"{at % 2},{at % 3}"} for at, point in enumerate(RISING)]
    found = told_of(await run_on(write_task(tmp_path / "task", GRID), points, selection="archive"))
    assert raw(found.brief).startswith("branches start by the rule archive, ")
    [table] = found.body
    assert isinstance(table, Table)
    assert len(table.rows) > 2


async def test_a_feature_that_no_judge_reports_is_told(tmp_path: Path) -> None:
    """No node has a cell then, so the rule chooses nothing, and branches start at the best: that is said."""
    task = write_task(tmp_path / "task", GRID.replace("score", "size"))
    found = told_of(await run_on(task, RISING[:2], selection="archive"))
    assert raw(found.brief).endswith("0 cells filled, no node has size, so it is in no cell")
    assert found.data
    assert found.data["population"]["unknown_features"] == ["size"]


async def test_one_island_is_what_it_was(tmp_path: Path) -> None:
    """Nothing is dealt out, migrates or is told; every branch starts at the champion."""
    plain = await run_on(write_task(tmp_path / "one"))
    said = await run_on(write_task(tmp_path / "two"), islands=1, migrate=1)
    assert parents(plain) == parents(said)
    assert {node.island for node in searched(said)} == {0}
    assert said.of(e.Migrated) == []
    found = told_of(plain)
    assert (raw(found.brief), list(found.body)) == ("", [])


@pytest.mark.parametrize("rule", ["champion", "tournament", "novelty", "archive", "tasks"])
async def test_a_resume_goes_on_alike(tmp_path: Path, rule: str) -> None:
    """Stopped and gone on with, it builds on the same nodes of the same islands as in one go, by any rule."""
    points: list[Point] = [{**point, "tasks": f"{at % 3},{at % 5}"} for at, point in enumerate(RISING)]
    seen = []
    for name, stops in (("one", []), ("two", [6])):
        folder, how = write_task(tmp_path / name, GRID), How.START
        flags: dict[str, Any] = {"attempts": 12, "depth": 2, "islands": 2, "migrate": 3, "selection": rule}
        for at in [*stops, None]:
            async with scripted(folder, None, *points, how=how, branching=True, **flags) as session:
                if at:
                    session.stop_at(e.AttemptEnded, at)
                await session.run()
                how, flags = How.RESUME, {}
        seen.append({node.number: (node.parent, node.island, node.migrated) for node in searched(session)})
    assert len(seen[0]) == 12
    assert seen[0] == seen[1]


async def test_a_second_run_has_islands_of_its_own(tmp_path: Path) -> None:
    """What the first run found is on none of them: each begins at the second run's root."""
    folder = write_task(tmp_path / "task")
    await run_on(folder, islands=2)
    again: list[Point] = [{**point, "run": 2} for point in RISING]
    session = await run_on(folder, again, how=How.NEW_RUN, islands=3, migrate=1000)
    nodes = [node for node in searched(session) if node.id.startswith("2.")]
    assert {node.island for node in nodes} == {1, 2, 3}
    assert {node.parent for node in nodes if node.number <= 3} == {"2"}


async def test_branches_side_by_side_stay_on_their_islands(tmp_path: Path) -> None:
    """With two at a time and steps in a branch, a branch never changes its island, nor builds on another one's node."""
    session = await run_on(write_task(tmp_path / "task"), islands=3, migrate=1000, depth=2, width=2)
    nodes = session.state.nodes
    for node in searched(session):
        assert nodes[node.parent or ""].island in (0, node.island)
    assert {node.island for node in searched(session)} == {1, 2, 3}


async def test_what_a_person_brings_is_on_all_islands(tmp_path: Path) -> None:
    """An injected change that is the best is where the next branch of every island starts."""
    folder = write_task(tmp_path / "task")
    change = '--- a/params.json\n+++ b/params.json\n@@ -1,3 +1,3 @@\n {\n-  "value": 0\n+  "value": 11\n }\n'
    async with scripted(folder, None, *RISING, branching=True, depth=1, attempts=7, islands=2) as session:
        session.stop_at(e.AttemptEnded, 3)
        await session.run()
        session.bench.artifacts.sync()
        stored = session.bench.artifacts.put(change.encode())
        session.bench.book.record(e.InjectionQueued(injection=1, change=stored, description="mine", on="1"))
    async with scripted(folder, None, *RISING, how=How.RESUME, branching=True, attempts=7) as session:
        await session.run()
        [mine] = [node for node in session.state.nodes.values() if node.role is Role.INJECTED]
        assert mine.island == 0
        after = [node for node in searched(session) if node.number > 3]
        assert {node.island for node in after} == {1, 2}
        assert {node.parent for node in after} == {mine.id}


async def test_the_control_is_on_no_island(tmp_path: Path) -> None:
    """What the control measured is never built on, and belongs to no island."""
    session = await run_on(write_task(tmp_path / "task"), RISING[:6], islands=2, control="random")
    controls = {node.id: node for node in session.state.nodes.values() if node.role is Role.CONTROL}
    assert controls
    assert {node.island for node in controls.values()} == {0}
    assert not set(parents(session).values()) & set(controls)


async def test_another_machine_does_not_empty_islands(tmp_path: Path) -> None:
    """In a new cohort an island goes on with what was best of it before, not with the baseline."""
    folder = write_task(tmp_path / "task", CPU)
    flags: dict[str, Any] = {"attempts": 8, "depth": 1, "islands": 2, "migrate": 1000}
    async with scripted(folder, None, *RISING, branching=True, **flags) as session:
        session.when(e.AttemptEnded, lambda event: _swap(session, event))
        await session.run()
        nodes = {node.number: node for node in searched(session)}
        assert len(session.state.run.champions) == 2
        late = [node for node in nodes.values() if node.number > 5]
        assert late
        assert "1" not in {node.parent for node in late}


def _swap(session: Scripted, event: e.AttemptEnded) -> None:
    if session.state.nodes[event.node].number == 4:
        session.script.cpu = "another"


async def test_a_proposer_that_starts_at_the_root_has_no_islands(tmp_path: Path) -> None:
    """Where every change is one of the baseline there is nothing to keep apart, and a note says so."""
    folder = write_task(tmp_path / "task", '[search]\nproposer = "tpe"\n')
    async with scripted(folder, None, attempts=3, islands=4) as session:
        assert any("islands" in note for note in session.notes)
        await session.run()
        assert session.state.run.islands == 1
        assert {node.island for node in session.state.nodes.values()} == {0}


def test_records_of_older_ledgers() -> None:
    """An opening that says nothing of islands belongs to the one population."""
    body = {"kind": "attempt opened", "node": "1.1", "parent": "1", "role": "search", "number": 1}
    opened = e.read_event(json.dumps(body))
    assert isinstance(opened, e.AttemptOpened)
    assert opened.island == 0
