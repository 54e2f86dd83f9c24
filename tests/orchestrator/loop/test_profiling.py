"""One more run of the root before the first change, on the fake backend: what comes of it, and of all that can fail."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.judge.profile import FOLDER
from orchestrator.wiring.beginning import How
from sandbox import Job, Unavailable
from sandbox.backends.fake.backend import Guest
from sandbox.backends.fake.rent import Rent
from tests.orchestrator.loop import relay_script
from tests.orchestrator.loop.relay_script import RelayScript, write_relay_task
from tests.orchestrator.loop.rented import rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Scripted, ran, scripted
from tests.orchestrator.loop.test_operators import Reading, code_task, history

# Of test_operators: line 1 is the number, lines 4 to 7 the function.
TOLD = {"reached": [[1, 1]], "unknown": [], "never": [[5, 7]], "heat": [[1, 900]]}


@dataclass
class Told(Reading):
    """A candidate whose run tells this; it does as any other for the rest."""

    told: bytes = json.dumps({"profile": 1, "samples": 50, "ms": 1000, "files": {"solve.py": TOLD}}).encode()
    runs: int = 0

    async def program(self, guest: Guest) -> int:
        if folder := guest.job.env.get("BLASTDOOR_PROFILE"):
            assert folder == f"/work/out/{FOLDER}"
            assert guest.job.env["PYTHONPATH"] == "/work/src/.blastdoor"
            assert ".blastdoor/sitecustomize.py" in guest.files
            self.runs += 1
            guest.out[f"{FOLDER}/7.json"] = self.told
        else:
            assert not any(name.startswith(".blastdoor") for name in guest.files)
        return await super().program(guest)


def flags(**more: Any) -> dict[str, Any]:
    return {"proposer": "operators", "attempts": 8, "seed": 5, "width": 1, **more}


def changes_inside(session: Scripted) -> int:
    """How many changed the function that no run reached."""
    return sum(" in f()," in node.description for node in session.nodes.values())


async def test_profile_comes_before_the_first_change(tmp_path: Path) -> None:
    """Once, after the baseline. It is no trial, takes no attempt, and what it cost is booked; changes stay away from
    what was not reached.
    """
    script = Told()
    session = await ran(code_task(tmp_path), script, **flags(attempts=30, seed=7))
    kinds = [type(it) for it in session.events]
    assert script.runs == 1
    assert kinds.index(e.ProfileTaken) < kinds.index(e.AttemptOpened, kinds.index(e.AttemptEnded))
    assert [it.profile is not None and not it.why for it in session.of(e.ProfileTaken)] == [True]
    assert session.charged == 30
    assert not session.accounts.holds
    state = session.state
    assert sum(node.trials for node in state.nodes.values()) == len(session.of(e.TrialIntended))
    inside = changes_inside(session)
    script = Told()
    session = await ran(code_task(tmp_path / "off"), script, **flags(hints="off", attempts=30, seed=7))
    assert not script.runs
    assert changes_inside(session) > 3 * inside


async def test_profile_that_tells_nothing(tmp_path: Path) -> None:
    """The search goes on with the very draws of one without a profile, and one line says so."""
    off = await ran(code_task(tmp_path / "off"), Told(), **flags(hints="off", attempts=4))
    for number, told in enumerate((b"", b"{}", b"\xff", b'{"profile": 1, "samples": 5, "ms": 5, "files": {}}')):
        session = await ran(code_task(tmp_path / str(number)), Told(told=told), **flags(attempts=4))
        [taken] = session.of(e.ProfileTaken)
        assert taken.said.startswith("run 1 goes on without a profile: no Python of the workspace told anything")
        assert session.state.run.profiled
        assert history(session.state) == history(off.state), told


@pytest.mark.parametrize(
    "more",
    [
        {"islands": 2, "migrate": 2, "branching": True},
        {"proposer": "mixed"},
        {"proposer": "hybrid", "arms": "random,operators"},
    ],
    ids=["islands", "mixed", "hybrid"],
)
async def test_beside_other_choices(tmp_path: Path, more: dict[str, Any]) -> None:
    """One profile for all islands and arms, and a resume takes no second one. Each of them leaves alone what was
    not reached.
    """
    folder, script, half = code_task(tmp_path), Told(), 12
    async with scripted(folder, script, **flags(attempts=2 * half, hints="hot", **more)) as session:
        session.stop_at(e.AttemptEnded, half)
        await session.run()
        assert script.runs == len(session.of(e.ProfileTaken)) == 1
    session = await ran(folder, script, how=How.RESUME)
    assert script.runs == 1
    assert session.charged == 2 * half
    assert not session.accounts.holds
    inside = changes_inside(session)
    session = await ran(code_task(tmp_path / "off"), Told(), **flags(attempts=2 * half, hints="off", **more))
    assert inside < changes_inside(session) / 2


async def test_no_chamber_for_it(tmp_path: Path) -> None:
    """A provider that fails then costs the search nothing but the hint."""
    script = Told()

    async def fail(job: Any) -> None:
        if "BLASTDOOR_PROFILE" in job.env:
            raise Unavailable("no room")

    script.on_open = fail
    session = await ran(code_task(tmp_path), script, **flags(attempts=3))
    [taken] = session.of(e.ProfileTaken)
    assert "no room" in taken.why
    assert session.charged == 3


async def test_nothing_to_see(tmp_path: Path) -> None:
    """Where no editable file is Python, nothing is run; where nobody takes hints, nothing is asked."""
    folder = code_task(tmp_path / "a")
    (folder / "workspace/solve.py").rename(folder / "workspace/solve.c")
    task = folder / "blastdoor.toml"
    task.write_text(task.read_text().replace("solve.py", "solve.c"))
    session = await ran(folder, Script(), **flags(attempts=1))
    assert [it.why for it in session.of(e.ProfileTaken)] == ["no editable file is Python"]
    assert session.script.commands.count("trial") == 2
    session = await ran(code_task(tmp_path / "b"), Script(), proposer="random", attempts=1)
    assert not session.of(e.ProfileTaken)


@pytest.mark.parametrize(("hints", "part"), [("hot", True), ("off", False)])
async def test_profiles_that_differ_by_a_hair(tmp_path: Path, hints: str, part: bool) -> None:
    """The same seed gives the same campaign where hints are off. Else it may part: times are measured."""
    found = []
    for share in (124, 126):
        file = {**TOLD, "heat": [[1, share]]}
        told = json.dumps({"profile": 1, "samples": 50, "ms": 1000, "files": {"solve.py": file}}).encode()
        session = await ran(code_task(tmp_path / str(share)), Told(told=told), **flags(hints=hints))
        found.append(history(session.state))
    assert (found[0] != found[1]) == part


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize("kind", [e.ProfileIntended, e.ProfileTaken])
async def test_killed_around_it(tmp_path: Path, kind: type[e.Event]) -> None:
    """What is on disk at that moment, as after kill -9, goes on with the draws of a campaign that nobody killed. What
    was under way is booked, and run again.
    """
    task, copy = code_task(tmp_path / "task"), tmp_path / "copy"
    async with scripted(task, Told(), **flags(attempts=6)) as session:
        session.when(kind, lambda _: shutil.copytree(task, copy), on_disk=True)
        await session.run()
        whole = history(session.state)
    script = Told()
    session = await ran(copy, script, how=How.RESUME)
    assert history(session.state) == whole
    assert script.runs == (kind is e.ProfileIntended)
    assert len(session.of(e.ProfileTaken)) == (kind is e.ProfileIntended)
    assert not session.accounts.holds


async def test_run_that_is_under_way_gets_none(tmp_path: Path) -> None:
    """What was begun without hints goes on without them."""
    folder = code_task(tmp_path)
    session = await ran(folder, Told(), **flags(attempts=4, hints="off"), stop=(e.AttemptEnded, 2))
    session = await ran(folder, Told(), how=How.RESUME)
    assert not session.of(e.ProfileTaken)


@pytest.mark.parametrize(("hints", "runs"), [("auto", 0), ("reached", 1)])
async def test_rented_chambers_only_where_it_is_said(tmp_path: Path, hints: str, runs: int) -> None:
    """It costs money there: unless somebody asks for it, there is none, and one line says so."""
    script = Told()
    site = rented_site(script, Rent(usd_per_second=0.01))
    session = await ran(code_task(tmp_path), script, site=site, **flags(hints=hints, attempts=2))
    [taken] = session.of(e.ProfileTaken)
    assert script.runs == runs
    assert ("--hints" in taken.why) == (not runs)
    assert len(session.of(e.ProfileIntended)) == runs
    assert session.charged == 2


async def test_no_longer_than_it_is_worth(tmp_path: Path) -> None:
    """A few times what the baseline took, and a minute, and the grace of a stop: a trial may be allowed far more."""
    folder, script, walls = code_task(tmp_path), Told(), []
    task = folder / "blastdoor.toml"
    task.write_text(task.read_text().replace('wall = "60s"', 'wall = "1h"'))

    async def note(job: Job) -> None:
        if "BLASTDOOR_PROFILE" in job.env:
            walls.append(job.limits.wall)

    script.on_open = note
    session = await ran(folder, script, **flags(attempts=1))
    took_s = session.state.trials["1-1"].spent.milliseconds / 1000
    assert took_s < 600
    assert walls == [pytest.approx(60 + 4 * took_s + 1)]


async def test_no_longer_where_the_judge_calls(tmp_path: Path) -> None:
    """Its chamber is ended sooner by as much as its turns are shorter."""
    folder, script, walls = write_relay_task(tmp_path), RelayScript(), []

    async def note(job: Job) -> None:
        if job.command[0] == "trial":
            walls.append(job.limits.wall)

    script.on_open = note
    async with scripted(folder, script, {"value": 1}) as session:
        bench = session.bench
        tree = bench.jobs.snapshot.tree
        await bench.judge_mode.profile(bench, tree)
        await bench.judge_mode.profile(bench, tree, relay_script.WALL_S - 2)
    assert walls[0] - walls[1] == 2
