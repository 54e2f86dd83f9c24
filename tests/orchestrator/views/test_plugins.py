"""Packages of others on the command line: their names are in the help, their faults are one line, and no more fails."""

from pathlib import Path

import click
import pytest
from click.testing import Result

from orchestrator.views.cli import cli
from orchestrator.views.commands import load
from orchestrator.wiring.reading import campaign_folder
from tests.clicking import runner
from tests.orchestrator.loop.scripted import write_task
from tests.plugins import Packages


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path / "packages", monkeypatch)


def blastdoor(*words: str | Path) -> Result:
    return runner().invoke(cli, [str(word) for word in words])


def test_help_has_the_names_of_packages(packages: Packages) -> None:
    """Beside those that are built in; one that cannot be loaded does no harm there."""
    packages.install("import nosuchthing")
    said = "".join(blastdoor("run", "--help").output.split())
    assert "[grid|random|tpe|cmaes|gp|thompson|de|operators|mixed|hybrid|llm|llm-params|agent|inject|counting]" in said
    assert blastdoor("status", "--help").exit_code == 0


def test_an_unknown_name(packages: Packages, tmp_path: Path) -> None:
    """Exit code 2, all names, and the nearest."""
    packages.install()
    ran = blastdoor("run", tmp_path, "--proposer", "countng")
    assert ran.exit_code == 2
    assert '"inject" or "counting", not "countng"; did you mean "counting"?' in ran.output


def test_a_dry_run(packages: Packages, tmp_path: Path) -> None:
    """A package's proposer is planned with like any other; one that is broken is told with its package."""
    task = write_task(tmp_path / "task", '[search]\nproposer = "counting"\n')
    place = packages.install()
    ran = blastdoor("run", task, "--dry-run")
    assert ran.exit_code == 0, ran.output
    assert "counting" in ran.output
    packages.remove(place)
    packages.install("import nosuchthing")
    broken = blastdoor("run", task, "--dry-run")
    assert 'the proposer "counting" of the package blastdoor-counting 1.2 cannot be loaded' in str(broken.exception)
    assert blastdoor("run", task, "--dry-run", "--proposer", "random").exit_code == 0
    assert not campaign_folder(task).exists()


def test_completion(packages: Packages) -> None:
    """A shell completes names of packages, too."""
    packages.install()
    option = next(it for it in load("run").params if it.name == "proposer")
    found = option.shell_complete(click.Context(load("run")), "co")
    assert [item.value for item in found] == ["counting"]
