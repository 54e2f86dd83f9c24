"""The package of examples/plugin, installed by pip like anybody's: its names are on the command line, and its own tests
pass against the installed Blastdoor, a campaign among them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.views.cli import cli
from tests.clicking import runner

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put it; it is built from a copy, since a build leaves files behind."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, folder / "source")
    command = [sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(folder / "site")]
    subprocess.run([*command, str(folder / "source")], check=True)
    return folder / "site"


def test_names_on_the_command_line(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help lists them with ours."""
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    said = "".join(runner().invoke(cli, ["run", "--help"]).output.split())
    assert "|inject|neighbour]" in said
    assert "|mini-swe-agent|scribe]" in said


def test_its_own_tests(installed: Path, tmp_path: Path) -> None:
    """In a process that finds the package where it is installed, not in our tree."""
    shutil.copytree(PLUGIN / "tests", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"]
    env = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "9 passed" in ran.stdout
