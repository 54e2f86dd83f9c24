"""The unit: read by systemd's own checks, and in line with the exit codes of the command."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from distribution import program, require
from orchestrator.views.exits import Exit
from tests.deploy.templates import DEPLOY

UNIT = DEPLOY / "systemd" / "blastdoor@.service"
SYSTEM = Path("/usr/lib/systemd/system")
# In tenths, as systemd counts: 100 is a service without any protection.
EXPOSURE = 20


@pytest.fixture(scope="module", autouse=True)
def systemd(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its programs, installed where they are missing; it need not run."""
    require("systemd-analyze", log=tmp_path_factory.mktemp("systemd") / "apt.log")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root of a machine on which the unit was installed as the page says."""
    shutil.copytree(SYSTEM, tmp_path / "usr/lib/systemd/system", symlinks=True)
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    (tmp_path / "opt/blastdoor/bin").mkdir(parents=True)
    shutil.copy(DEPLOY / "campaign", tmp_path / "opt/blastdoor/bin/blastdoor-campaign")
    shutil.copy(UNIT, tmp_path / "etc/systemd/system")
    return tmp_path


def _analyze(*words: str) -> subprocess.CompletedProcess[str]:
    command = [program("systemd-analyze") or "systemd-analyze", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_verify(machine: Path) -> None:
    """systemd has nothing to say about it: no key that it does not know, no program that is not there."""
    result = _analyze("verify", f"--root={machine}", "blastdoor@my-task.service")
    assert (result.returncode, result.stderr) == (0, "")


def test_verify_finds_a_slip(machine: Path) -> None:
    """The check above would see a key that systemd does not know."""
    unit = machine / "etc/systemd/system" / UNIT.name
    unit.write_text(unit.read_text().replace("ProtectSystem=", "ProtectSystems="))
    assert "ProtectSystems" in _analyze("verify", f"--root={machine}", "blastdoor@my-task.service").stderr


def test_exposure() -> None:
    """By systemd's own count, little of the machine is open to it."""
    result = _analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", str(UNIT))
    assert result.returncode == 0, result.stdout[-300:]


def test_exit_codes() -> None:
    """A task at fault is not tried again, an interrupted campaign is no failure, a lost engine is tried again."""
    service = _service()
    assert service["RestartPreventExitStatus"] == str(int(Exit.BAD_INPUT))
    assert service["SuccessExitStatus"] == str(int(Exit.INTERRUPTED))
    assert service["Restart"] == "on-failure"


def test_the_warden_outlives_it() -> None:
    """Only the orchestrator itself is killed, and no privilege can be gained."""
    service = _service()
    assert service["KillMode"] == "process"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""


def _service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=True, interpolation=None, delimiters=["="], comment_prefixes=["#"])
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys of a unit have capitals
    parser.read(UNIT)
    return parser["Service"]
