"""What a run keeps of the packages that it works with, and what a resume makes of it."""

from pathlib import Path

import pytest

from orchestrator.api import How, read_campaign, search
from orchestrator.domain.records import Brought, Phase, Run
from orchestrator.proposers import PluginFailed
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, load_task
from orchestrator.wiring import Flags, SiteChoice, open_site, resolve
from orchestrator.wiring.plugins import brought_by_others, changed_since, refuse_missing
from sandbox import Unavailable
from tests.orchestrator.agents.test_presets import POLITE, PRESET
from tests.orchestrator.loop.scripted import Proposing, write_task
from tests.plugins import Packages


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path / "packages", monkeypatch)


def task(folder: Path, more: str = "") -> Task:
    return load_task(write_task(folder / "task", more))


def run_with(brought: Brought) -> Run:
    told = {"task": "", "digests": {}, "seed": 0, "control": None, "width": 1, "depth": 1, "why": "", "root": "1"}
    return Run(number=1, proposer=brought.name, brought=(brought,), **told)


@pytest.mark.parametrize(
    ("flags", "more", "kept"),
    [
        ({"proposer": "agent", "agent": "polite"}, "", ["polite"]),
        ({"proposer": "agent"}, '[agent]\nname = "polite"\n', ["polite"]),
        ({"proposer": "agent"}, '[agent]\nname = "polite"\nimage = "x:1"\ncommand = ["x"]\n', []),
        ({"proposer": "agent"}, "", []),
        ({"proposer": "random"}, '[agent]\nname = "polite"\n', []),
    ],
)
def test_the_agent_of_a_run(
    tmp_path: Path, packages: Packages, flags: dict[str, str], more: str, kept: list[str]
) -> None:
    """Its package is kept where the agent is known by a name that the package brought, and works in this run."""
    packages.install(PRESET, POLITE)
    loaded = task(tmp_path, more)
    found = brought_by_others(resolve(Flags(**flags), loaded, Settings()), loaded)
    assert [it.name for it in found] == kept
    assert all((it.kind, it.package, it.version) == ("agent", "blastdoor-counting", "1.2") for it in found)


def test_two_packages_bring_it_now(packages: Packages) -> None:
    """A resume names both, and the one that the run was begun with."""
    packages.install()
    packages.install(package="another", version="3")
    brought = Brought(kind="proposer", name="counting", package="blastdoor-counting", version="1.2")
    with pytest.raises(TaskError, match=r"counting 1\.2, which cannot be used here \(.* two packages, another 3"):
        refuse_missing(run_with(brought))


def test_another_package_brings_it_now(packages: Packages) -> None:
    """It goes on, and says so."""
    packages.install(package="another", version="3")
    run = run_with(Brought(kind="proposer", name="counting", package="blastdoor-counting", version="1.2"))
    refuse_missing(run)
    assert changed_since(run) == [
        'the proposer "counting" was that of blastdoor-counting 1.2 when the run began, and is that of another 3 now'
    ]


BACKEND = """
from contextlib import asynccontextmanager

from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import make_site

blastdoor_interface = 1


class Pretend:
    def __init__(self, context):
        pass

    def planned(self):
        return make_site(Script())

    @asynccontextmanager
    async def open(self, progress):
        site = self.planned()
        yield site
        await site.backend.close()
"""
PRETEND = {"blastdoor.backends": {"pretend": "{module}:Pretend"}}
CHOICE = SiteChoice("pretend")
OPENED = "        site = self.planned()\n"


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (BACKEND.replace("def open", "def start"), TaskError, "cannot be made (TypeError: it has no open"),
        (BACKEND.replace("        pass", "        {}['missing']"), TaskError, "cannot be made (KeyError"),
        (BACKEND.replace(OPENED, "        {}['missing']\n" + OPENED), Unavailable, "failed: KeyError: 'missing'"),
        ("import nosuchthing", TaskError, "cannot be loaded (ModuleNotFoundError"),
    ],
)
async def test_a_backend_that_is_wrong(packages: Packages, code: str, kind: type[Exception], says: str) -> None:
    """One line with its package, and an error that has an exit code."""
    packages.install(code, PRETEND)
    with pytest.raises(kind) as caught:
        async with open_site(Settings(), CHOICE):
            raise AssertionError("it was opened")
    assert 'the backend "pretend" of the package blastdoor-counting 1.2 ' in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize("method", ["open", "run"])
async def test_a_backend_that_fails_in_the_middle(packages: Packages, tmp_path: Path, method: str) -> None:
    """The session ends with its name; nothing is charged, and a mended one goes on with the same attempt."""
    broken = """
        original = site.backend.open
        opened = 0
        async def fail(*_, **__):
            {}['missing']
        async def open(job):
            nonlocal opened
            opened += 1
            if opened == 8:
                METHOD
            chamber = await original(job)
            if opened == 8:
                chamber.run = fail
            return chamber
        site.backend.open = open
""".replace("METHOD", "await fail()" if method == "open" else "pass")
    place = packages.install(BACKEND.replace(OPENED, OPENED + broken), PRETEND)
    folder = write_task(tmp_path / "task")
    points = [{"value": value} for value in (3, 5, 7)]
    told = 'the backend "pretend" of the package blastdoor-counting 1.2 failed: KeyError'
    with pytest.raises(PluginFailed, match=told):
        await search(folder, proposer=Proposing(*points), backend="pretend", rate=1e6, width=1)
    with read_campaign(folder) as campaign:
        assert campaign.state.campaign.stopped.startswith(told)
        queued = [node.id for node in campaign.state.nodes.values() if node.phase is Phase.QUEUED]
        assert queued == ["1.2"]
    packages.remove(place)
    packages.install(BACKEND, PRETEND)
    finished = await search(folder, how=How.RESUME, proposer=Proposing(*points))
    assert finished.champion
    assert finished.champion.params == {"value": 7}


def test_a_run_goes_on_elsewhere(packages: Packages) -> None:
    """A backend that is gone is not needed where another one is named; to replay, nothing else is needed."""
    packages.install()
    backend = Brought(kind="backend", name="pretend", package="gone", version="1")
    run = run_with(backend).model_copy(update={"brought": (backend, backend.model_copy(update={"kind": "proposer"}))})
    with pytest.raises(TaskError, match='the backend "pretend" of the package gone 1'):
        refuse_missing(run)
    with pytest.raises(TaskError, match='the proposer "pretend" of the package gone 1'):
        refuse_missing(run, backend="docker")
    refuse_missing(run, backend="docker", searches=False)
    assert changed_since(run) == []
