"""Candidates are sent away; judge, gold, what stands beside them and agents stay at home."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.events import read_event
from orchestrator.domain.records import Purpose
from orchestrator.domain.verdict import Mode
from orchestrator.task import Task, TaskError
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import read_campaign
from orchestrator.wiring.site import Site
from sandbox import Gpu, Limits, Refused
from sandbox.backends.fake.backend import Guest
from tests.messages import MessagesServer
from tests.orchestrator.loop.scripted import GUARD, HELDOUT, TUNE, WALL_S, make_site, ran, scripted
from tests.orchestrator.loop.test_agents import AGENT, MODEL, WithAgents, campaign, does
from tests.orchestrator.loop.two_sites import CAVEATS, GOLD, JUDGE, Witnessed, gold_task, two_sites

BESIDE = (
    f'[[guards]]\nname = "beside"\ncommand = ["guard", "--beside"]\nin = "judge"\nlimits = {{wall = "{WALL_S}s"}}\n'
)


def judged_in(folder: Path, mode: str) -> Path:
    """A task whose judge works in this mode."""
    text = (folder / "blastdoor.toml").read_text()
    (folder / "blastdoor.toml").write_text(text.replace('command = ["judge"]', f'command = ["judge"]\nmode = "{mode}"'))
    return folder


@pytest.fixture
def home() -> Witnessed:
    return Witnessed()


@pytest.fixture
def away() -> Witnessed:
    return Witnessed()


@dataclass
class BesideJudge(Witnessed):
    """A guard beside the judge finds the candidate in a folder of its own."""

    async def program(self, guest: Guest) -> int:
        if "--beside" not in guest.job.command:
            return await super().program(guest)
        self.jobs.append((guest.job, dict(guest.files)))
        return 0


async def test_who_gets_which_bytes(tmp_path: Path, away: Witnessed) -> None:
    """Not a byte of gold or of the judge leaves; no candidate's command runs at home, and no judge away from it."""
    home = BesideJudge()
    folder = gold_task(tmp_path / "task", TUNE, GUARD, BESIDE, HELDOUT)
    session = await ran(folder, home, {"value": 5}, {"value": 9}, site=two_sites(home, away))
    assert session.champion == "1.2"
    assert session.of(e.HeldOutAsked)
    sent, kept = away.received(), home.received()
    assert GOLD not in sent
    assert JUDGE not in sent
    assert b"blastdoor_judge" not in sent
    assert GOLD in kept
    assert away.ran_here == {"trial", "tune", "guard"}
    assert home.ran_here == {"judge", "guard"}
    assert (away.images, home.images) == ({"away-image"}, {"home-image"})
    beside = [files for job, files in home.jobs if job.command[0] == "guard"]
    assert all("candidate/params.json" in files and "judge/judge.txt" in files for files in beside)
    assert len(beside) == sum(event.guard == "beside" for event in session.of(e.GuardEnded)) > 0


async def test_inputs_are_where_they_are_read(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """Candidate and judge find the same inputs, each in its own store."""
    added: list[tuple[str, str]] = []

    def noting(site: Site, where: str) -> Site:
        def add(name: str, path: Path) -> Any:
            added.append((where, name))
            return site.add_input(name, path)

        return replace(site, add_input=add)

    site = two_sites(home, away)
    assert site.judging
    site = replace(noting(site, "away"), judging=noting(site.judging, "home"))
    await ran(gold_task(tmp_path / "task", HELDOUT), home, {"value": 5}, site=site)
    assert {where for where, _ in added} == {"home", "away"}
    assert sorted(name for where, name in added if where == "home") == sorted(n for w, n in added if w == "away")


async def test_same_verdicts_in_another_cohort(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """The same candidates get the same scores, endings and tree on either site, and no cohort in common."""
    points: list[Any] = [{"value": 5}, {"value": 3}, {"value": 1, "do": "failed"}, {"value": 7}]
    found = []
    for number, site in enumerate((make_site(home), two_sites(home, away))):
        folder = gold_task(tmp_path / f"task{number}")
        session = await ran(folder, home, *points, site=site)
        found.append(session.state)
    one, other = found
    assert one.nodes.keys() == other.nodes.keys()
    for name, node in one.nodes.items():
        twin = other.nodes[name]
        assert (node.ending, node.kept, node.parent) == (twin.ending, twin.kept, twin.parent)
        scores = [it.verdict.metrics if it.verdict else None for it in (node, twin)]
        assert scores[0] == scores[1]
    assert not one.run.champions.keys() & other.run.champions.keys()


async def test_resumed_elsewhere(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """Whoever goes on at another site opens a cohort there: baseline and champion are measured again, not mixed."""
    folder = gold_task(tmp_path / "task")
    points = [{"value": 5}, {"value": 4}]
    session = await ran(folder, home, *points, attempts=1)
    session = await ran(folder, home, *points, how=How.RESUME, attempts=2, site=two_sites(home, away))
    state = session.state
    (opened,) = session.of(e.CohortOpened)
    assert opened.why == "backend"
    assert [it.node for it in state.trials.values() if it.purpose is Purpose.RERUN] == ["1", "1.1"]
    assert state.nodes["1.2"].kept is False
    assert [site.backend for site in state.run.sites] == ["fake", "rented"]


async def test_what_people_are_told(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """The site and its caveats are on record once; a resume at the same site says nothing new. Whoever rents waits as
    long as the provider may take, not what a container may.
    """
    folder = gold_task(tmp_path / "task")
    async with scripted(folder, home, {"value": 5}, site=two_sites(home, away), attempts=1) as session:
        assert (session.bench.task.stall.provision, Task.model_fields["stall"].default.provision) == (300, 120)
        place = session.state.run.site
        assert place
        assert (place.backend, place.judge, place.caveats) == ("rented", "docker/runc", CAVEATS)
        await session.run()
    async with scripted(folder, home, {"value": 5}, how=How.RESUME, site=two_sites(home, away)) as session:
        assert len(session.state.run.sites) == 1
        events = [read_event(entry.body) for entry in session.bench.book.ledger.read()]
        assert sum(isinstance(event, e.SiteOpened) for event in events) == 1


async def test_shared_mode_stays_at_home(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """Where judge and candidate share a chamber, gold would leave: that is refused before anything runs."""
    folder = judged_in(gold_task(tmp_path / "task"), "shared")
    with pytest.raises(TaskError, match=r'judge\.mode is "shared", so judge and gold would be sent to rented'):
        async with scripted(folder, home, {"value": 5}, site=two_sites(home, away)):
            pass
    assert not home.jobs
    assert not away.jobs


@pytest.mark.parametrize(
    ("more", "trial", "lacks", "line"),
    [
        ('[judge]\nmode = "relay"\n', "", {"relay": False}, 'judge.mode is "relay", but .* has no relay'),
        ('[stall]\nheartbeat = "10s"\n', "", {"stop": False}, "stall.heartbeat needs a backend that can stop"),
        ("", "steps = 5", {"live_log": False}, "trial.steps needs a backend that can stop"),
        ('[pruning]\nrule = "median"\n', "", {"live_log": False}, r"\[pruning\] needs a backend that can stop"),
    ],
)
async def test_what_a_site_lacks(
    tmp_path: Path, home: Witnessed, away: Witnessed, more: str, trial: str, lacks: dict[str, Any], line: str
) -> None:
    """What the task needs and the candidates' site has not is one line; what home lacks or has does not matter."""
    folder = gold_task(tmp_path / "task", "" if "relay" in more else more, trial=trial)
    if "relay" in more:
        judged_in(folder, "relay")
    site = two_sites(home, away)
    site.backend.capabilities = replace(site.backend.capabilities, **lacks)
    with pytest.raises(TaskError, match=line):
        async with scripted(folder, home, {"value": 5}, site=site):
            pass


async def test_judges_wait_for_their_turn(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """Many candidates may be away at once; at home no more judges run than the machine holds."""
    points: list[Any] = [{"value": value, "takes": 0.05} for value in range(1, 9)]
    site = two_sites(home, away, holds=1)
    session = await ran(gold_task(tmp_path / "task"), home, *points, site=site, width=4)
    assert session.nodes["1.8"].verdict
    assert home.most == 1
    assert away.most > 1


async def test_width_of_a_rented_site(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """Where nobody said how wide, it is what the rented site is given; a judge that must be there too bounds it."""
    saturates = '[search]\nsaturates = ["cpu"]\n'
    for number, (mode, width) in enumerate((("data", 10), ("relay", 2))):
        folder = judged_in(gold_task(tmp_path / f"task{number}", saturates), mode)
        async with scripted(folder, home, {"value": 1}, site=two_sites(home, away, holds=2), width=None) as session:
            assert session.shape.width == width


async def test_gpu_of_trials_alone(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """The GPU that was asked for is the trials', tuning included; the task on record is what its folder says."""
    folder = gold_task(tmp_path / "task", TUNE, GUARD)
    gpu = Gpu.parse("A10")
    async with scripted(folder, home, {"value": 5}, site=two_sites(home, away, gpu=gpu), gpu="A10") as session:
        jobs = session.bench.jobs
        assert {jobs.trial(mode).limits.gpu for mode in Mode} == {gpu}
        assert jobs.judge(Mode.SUBMIT).limits.gpu is None
        assert session.bench.task.guards[0].limits.gpu is None
        await session.run()
    with read_campaign(folder) as reading:
        assert reading.task.limits.gpu is None
    # The GPU is kept with the run, and asking for another one is another cohort, not another task.
    other = two_sites(home, away, gpu=Gpu.parse("H100"))
    async with scripted(folder, home, {"value": 5}, {"value": 4}, how=How.RESUME, site=other, attempts=2) as session:
        assert session.options["gpu"] == "A10"
        await session.run()
        (opened,) = session.of(e.CohortOpened)
        assert opened.why == "limits"


async def test_price_ceiling(tmp_path: Path, home: Witnessed, away: Witnessed) -> None:
    """A site that refuses a price is refused before anything is baked or run."""

    def dear(limits: Limits) -> float:
        raise Refused(f"{limits.cpus:g} processors cost too much")

    site = replace(two_sites(home, away), usd_per_second=dear)
    with pytest.raises(Refused, match="cost too much"):
        async with scripted(gold_task(tmp_path / "task"), home, {"value": 5}, site=site):
            pass
    assert not away.jobs


async def test_agents_stay_at_home(tmp_path: Path, away: Witnessed, messages_server: MessagesServer) -> None:
    """An agent works at home even where candidates go to a site without relay; what it wrote is run over there."""
    home = WithAgents()
    messages_server.play(does({"value": 5}, ["submit", "five"]))
    site = two_sites(home, away)
    site.backend.capabilities = replace(site.backend.capabilities, relay=False)
    async with campaign(gold_task(tmp_path, AGENT, MODEL), messages_server, home, site=site) as session:
        await session.run()
        node = session.nodes["1.1"]
        assert (node.description, node.kept) == ("five", True)
    assert away.ran_here == {"trial"}
    assert json.loads(away.jobs[-1][1]["params.json"]) == {"value": 5}
