"""What a run keeps of the packages that it works with, and what a resume makes of it."""

import errno
from pathlib import Path

import pytest

from orchestrator.api import How, read_campaign, search
from orchestrator.domain.records import Brought, Phase, Run
from orchestrator.proposers import PluginFailed
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, load_task
from orchestrator.wiring.backends.docker import Docker
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.options import resolve
from orchestrator.wiring.plugins import brought_by_others, changed_since, faults, refuse_missing
from orchestrator.wiring.sites import make_provider, open_site
from sandbox import Bundle, Channel, Job, Report, Unavailable
from tests.orchestrator.agents.test_presets import POLITE, PRESET
from tests.orchestrator.loop.scripted import Proposing, write_task
from tests.plugins import Packages


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path / "packages", monkeypatch)


FAILED = r"of the package blastdoor-counting 1\.2 failed: "
POINTS = [{"value": value} for value in (3, 5, 7)]


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


def test_another_package_brings_it_now(packages: Packages) -> None:
    """It goes on, and says so; where two bring it, a resume names both, and the one that the run was begun with."""
    packages.install(package="another", version="3")
    run = run_with(Brought(kind="proposer", name="counting", package="blastdoor-counting", version="1.2"))
    refuse_missing(run)
    assert changed_since(run) == [
        'the proposer "counting" was that of blastdoor-counting 1.2 when the run began, and is that of another 3 now'
    ]
    packages.install()
    with pytest.raises(TaskError, match=r"counting 1\.2, which cannot be used here \(.* two packages, .*another 3"):
        refuse_missing(run)


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


SLOTTED = """

class Slots:
    __slots__ = ("backend", "capabilities", "opened")

    def __init__(self, backend):
        self.backend, self.capabilities, self.opened = backend, backend.capabilities, 0

    async def open(self, job):
        self.opened += 1
        broken = self.opened >= AT
        if broken and METHOD == "open":
            {}["missing"]
        return Slot(await self.backend.open(job), broken)

    async def reap(self):
        return []

    async def close(self):
        await self.backend.close()


class Slot:
    __slots__ = ("chamber", "broken")

    def __init__(self, chamber, broken):
        self.chamber, self.broken = chamber, broken

    def at(self, method):
        if self.broken and method == METHOD:
            {}["missing"]
        return self.chamber

    facts = property(lambda self: self.at("facts").facts)
    bill = property(lambda self: self.at("bill").bill)

    async def run(self, bundle, *, listener=None, talk=None):
        return await self.at("run").run(bundle, listener=listener, talk=talk)

    async def stop(self):
        await self.at("stop").stop()

    async def kill(self):
        await self.at("kill").kill()

    async def __aenter__(self):
        await self.at("enter").__aenter__()
        return self

    async def __aexit__(self, *error):
        await self.chamber.__aexit__(*error)
        self.at("exit")


METHOD, AT = "", 0
"""
IN_SLOTS = (BACKEND + SLOTTED).replace(OPENED, OPENED + "        site = replace(site, backend=Slots(site.backend))\n")
IN_SLOTS = IN_SLOTS.replace("from contextlib", "from dataclasses import replace\nfrom contextlib")


@pytest.mark.parametrize("method", ["open", "facts", "bill", "run", "enter", "exit"])
async def test_a_backend_that_fails_in_the_middle(packages: Packages, tmp_path: Path, method: str) -> None:
    """Nothing is put into what others made, so it may be closed; a fault in it ends the session with its name. Nothing
    is charged, and a mended one goes on with the same attempt.
    """
    place = packages.install(IN_SLOTS.replace('METHOD, AT = "", 0', f'METHOD, AT = "{method}", 8'), PRETEND)
    folder = write_task(tmp_path / "task", '[stall]\nheartbeat = "60s"\n')  # by it, a chamber is asked for its facts
    told = 'the backend "pretend" of the package blastdoor-counting 1.2 failed: KeyError'
    with pytest.raises(PluginFailed, match=f"^{told}"):
        await search(folder, proposer=Proposing(*POINTS), backend="pretend", rate=1e6, width=1)
    with read_campaign(folder) as campaign:
        assert campaign.state.campaign.stopped.startswith(told)
        if method in ("open", "run"):
            assert [it.id for it in campaign.state.nodes.values() if it.phase is Phase.QUEUED] == ["1.2"]
    packages.remove(place)
    packages.install(IN_SLOTS, PRETEND)
    finished = await search(folder, how=How.RESUME, proposer=Proposing(*POINTS))
    assert finished.champion
    assert finished.champion.params == {"value": 7}
    with read_campaign(folder) as campaign:
        assert len(campaign.state.nodes) == 1 + len(POINTS)


async def test_a_site_that_fails(packages: Packages, tmp_path: Path) -> None:
    """All that a site is asked for is told with its package; nothing has begun, and a mended one starts."""
    folder = write_task(tmp_path / "task")
    (folder / "data").mkdir()
    (folder / "data" / "rows").write_text("1\n")
    with (folder / "blastdoor.toml").open("a") as file:
        file.write('[inputs]\ndata = "data"\n')
    for name in ("bake", "add_input", "usd_per_second", "ceiling", "keep_apart", "ask_first"):
        broken = f"        site = replace(site, {name}=lambda *_: {{}}['{name}'])\n"
        place = packages.install(IN_SLOTS.replace(OPENED, OPENED + broken), PRETEND)
        with pytest.raises(PluginFailed, match=f"{FAILED}KeyError: '{name}'"):
            await search(folder, proposer=Proposing({"value": 3}), backend="pretend")
        packages.remove(place)
    packages.install(IN_SLOTS, PRETEND)
    assert (await search(folder, proposer=Proposing({"value": 3}), backend="pretend")).champion


class Full:
    """A log of ours on a disk that is full."""

    error = OSError(errno.ENOSPC, "No space left on device", "live.log")

    def line(self, text: str) -> None:
        raise self.error

    def report(self, report: Report) -> None:
        raise self.error

    async def talk(self, channel: Channel) -> None:
        raise self.error


@pytest.mark.parametrize("called", ["listener.line('x')", "listener.report(None)", "await talk(None)"])
async def test_what_is_not_its_fault(packages: Packages, called: str) -> None:
    """An error of our own code that it calls is told as what it is."""
    packages.install(
        IN_SLOTS.replace("        return await self.at", f"        {called}\n        return await self.at"), PRETEND
    )
    async with open_site(Settings(), CHOICE) as site, await site.backend.open(Job(command=("x",))) as chamber:
        with pytest.raises(OSError, match="No space left") as caught:
            await chamber.run(Bundle({}), listener=Full(), talk=Full().talk)
        assert caught.value is Full.error
    packages.install(
        BACKEND.replace(OPENED, f"        progress('x')\n{OPENED}"),
        {"blastdoor.backends": {"loud": "{module}:Pretend"}},
    )
    with pytest.raises(OSError, match="No space left"):
        async with open_site(Settings(), SiteChoice("loud"), Full().line):
            raise AssertionError("it was opened")


async def test_a_full_disk_of_its_own(packages: Packages) -> None:
    """The same error, raised by itself, is told with its package."""
    own = "        raise OSError(28, 'No space left')\n        return await self.at"
    packages.install(IN_SLOTS.replace("        return await self.at", own), PRETEND)
    async with open_site(Settings(), CHOICE) as site, await site.backend.open(Job(command=("x",))) as chamber:
        with pytest.raises(PluginFailed, match=f"{FAILED}OSError: .* No space left"):
            await chamber.run(Bundle({}))


async def test_a_site_that_cannot_be_left(packages: Packages) -> None:
    """It is told with its package; what ended the session before is told first."""
    packages.install(BACKEND.replace("        await site.backend.close()", "        {}['missing']"), PRETEND)
    with pytest.raises(Unavailable, match=f"{FAILED}KeyError: 'missing'"):
        async with open_site(Settings(), CHOICE):
            pass
    closing = BACKEND.replace(
        "        yield site\n        await", "        try:\n            yield site\n        finally:\n            await"
    )
    packages.install(
        closing.replace("await site.backend.close()", "{}['missing']"),
        {"blastdoor.backends": {"other": "{module}:Pretend"}},
    )
    with pytest.raises(ValueError, match="of the session") as caught:
        async with open_site(Settings(), SiteChoice("other")):
            raise ValueError("of the session")
    assert "failed as it was closed: KeyError" in caught.value.__notes__[0]


def test_a_backend_with_a_taken_name(packages: Packages) -> None:
    """Ours is meant, and the package is named."""
    packages.install(BACKEND, {"blastdoor.backends": {"docker": "{module}:Pretend"}})
    assert type(make_provider(Settings(), SiteChoice("docker"))) is Docker
    assert faults() == [
        'blastdoor-counting 1.2 brings a backend "docker", a name that is built in; it is left out; rename it'
    ]


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
