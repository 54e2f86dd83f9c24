"""What a run keeps of the packages that it works with, and what a resume makes of it."""

from pathlib import Path

import pytest

from orchestrator.domain.records import Brought, Run
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, load_task
from orchestrator.wiring import Flags, resolve
from orchestrator.wiring.plugins import brought_by_others, changed_since, refuse_missing
from tests.orchestrator.agents.test_presets import POLITE, PRESET
from tests.orchestrator.loop.scripted import write_task
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
    found = brought_by_others(resolve(Flags(**flags), loaded, Settings()), loaded)  # type: ignore[arg-type]  # texts, all
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
