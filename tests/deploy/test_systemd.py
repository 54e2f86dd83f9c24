"""The units: read by systemd's own checks, in line with the command's exit codes, and no danger to each other."""

import http.server
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from distribution import program, require
from held_port import HeldPort
from orchestrator.views.exits import Exit
from tests.deploy.templates import DEPLOY

UNIT = DEPLOY / "systemd" / "blastdoor@.service"
SERVER = DEPLOY / "systemd" / "blastdoor-skypilot.service"
NAMES = ("blastdoor@my-task.service", SERVER.name)
SYSTEM = Path("/usr/lib/systemd/system")
# In tenths, as systemd counts: 100 is a service without any protection.
EXPOSURE = 20


@pytest.fixture(scope="module", autouse=True)
def systemd(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its programs, installed where they are missing; it need not run."""
    require("systemd-analyze", log=tmp_path_factory.mktemp("systemd") / "apt.log")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root of a machine on which the units were installed as the page says."""
    shutil.copytree(SYSTEM, tmp_path / "usr/lib/systemd/system", symlinks=True)
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    (tmp_path / "opt/blastdoor/bin").mkdir(parents=True)
    shutil.copy(DEPLOY / "campaign", tmp_path / "opt/blastdoor/bin/blastdoor-campaign")
    shutil.copy(DEPLOY / "campaign", tmp_path / "opt/blastdoor/bin/sky")  # any program
    (tmp_path / "bin").mkdir()
    shutil.copy("/bin/sh", tmp_path / "bin/sh")
    for unit in (UNIT, SERVER):
        shutil.copy(unit, tmp_path / "etc/systemd/system")
    return tmp_path


def _analyze(*words: str) -> subprocess.CompletedProcess[str]:
    command = [program("systemd-analyze") or "systemd-analyze", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_verify(machine: Path, name: str) -> None:
    """systemd has nothing to say about it: no key that it does not know, no program that is not there."""
    result = _analyze("verify", f"--root={machine}", name)
    assert (result.returncode, result.stderr) == (0, "")


def test_verify_without_skypilot_and_with_a_slip(machine: Path) -> None:
    """Who rents nothing installs no server, and a campaign is whole without it; a key that systemd does not know
    would be seen.
    """
    (machine / "etc/systemd/system" / SERVER.name).unlink()
    result = _analyze("verify", f"--root={machine}", NAMES[0])
    assert (result.returncode, result.stderr) == (0, "")
    unit = machine / "etc/systemd/system" / UNIT.name
    unit.write_text(unit.read_text().replace("ProtectSystem=", "ProtectSystems="))
    assert "ProtectSystems" in _analyze("verify", f"--root={machine}", "blastdoor@my-task.service").stderr


@pytest.mark.parametrize("unit", [UNIT, SERVER], ids=lambda unit: unit.name)
def test_exposure(unit: Path) -> None:
    """By systemd's own count, little of the machine is open to it."""
    result = _analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", str(unit))
    assert result.returncode == 0, result.stdout[-300:]


def test_exit_codes() -> None:
    """A task at fault is not tried again, an interrupted campaign is no failure, a lost engine is tried again."""
    service = _section(UNIT)
    assert service["RestartPreventExitStatus"] == f"{int(Exit.NOT_GOOD)} {int(Exit.BAD_INPUT)}"
    assert service["SuccessExitStatus"] == str(int(Exit.INTERRUPTED))
    assert service["Restart"] == "on-failure"


def test_the_warden_outlives_it() -> None:
    """Only the orchestrator itself is killed, and no privilege can be gained."""
    service = _section(UNIT)
    assert service["KillMode"] == "process"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""


def test_no_server_outlives_its_tmp() -> None:
    """systemd removes a private /tmp with its unit: what survives the unit must not be a server that needs it."""
    from sky.utils.env_options import Options

    for unit in DEPLOY.joinpath("systemd").iterdir():
        service = _section(unit)
        survivors = service.get("KillMode", "control-group") in ("process", "none")
        forbidden = _environment(unit).get(Options.DISABLE_LOCAL_API_SERVER.env_key) == "1"
        assert forbidden or not (survivors and service["PrivateTmp"] == "yes"), unit.name
    assert _section(SERVER)["KillMode"] in ("mixed", "control-group")


def test_campaigns_wait_for_the_server_and_do_not_end_with_it() -> None:
    """Started before them where it is there, ended after them, and its restart is not theirs."""
    campaign = _section(UNIT, "Unit")
    assert SERVER.name in campaign["Wants"].split()
    assert SERVER.name in campaign["After"].split()
    for unit in (UNIT, SERVER):
        assert not {"Requires", "BindsTo", "PartOf", "Requisite", "Conflicts"} & set(_section(unit, "Unit"))
        # A shared /tmp would go with whoever ends last, and mix the connections of both.
        assert "JoinsNamespaceOf" not in _section(unit, "Unit")


def test_the_server_is_the_one_that_campaigns_ask() -> None:
    """The same account, home and programs, no engine's socket, and its start can be seen."""
    from sky.client.cli import command

    for key in ("User", "Group", "StateDirectory", "WorkingDirectory"):
        assert _section(SERVER)[key] == _section(UNIT)[key]
    for name in ("HOME", "PATH"):
        assert _environment(SERVER)[name] == _environment(UNIT)[name]
    assert "SupplementaryGroups" not in _section(SERVER)
    assert _environment(SERVER)["SKYPILOT_DISABLE_USAGE_COLLECTION"] == "1"
    assert "SKYPILOT_DISABLE_LOCAL_API_SERVER" not in _environment(SERVER)
    program_, *words, option = shlex.split(_section(SERVER)["ExecStart"])
    assert (Path(program_).name, words) == ("sky", ["api", "start"])
    assert option in {name for it in command.api_start.params for name in it.opts}


def test_a_campaign_starts_no_server(tmp_path: Path) -> None:
    """SkyPilot's own client, with the unit's environment: it says so instead, and leaves nothing running."""
    asking = [sys.executable, "-c", "from sky.client import sdk; sdk.get(sdk.status())"]
    with HeldPort() as port:
        own = {"HOME": str(tmp_path), "SKYPILOT_API_SERVER_LOCAL_PORT": str(port.number), "PATH": os.environ["PATH"]}
        environment = os.environ | _environment(UNIT) | own
        environment.pop("SKYPILOT_API_SERVER_ENDPOINT", None)
        result = subprocess.run(asking, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "SKYPILOT_DISABLE_LOCAL_API_SERVER" in result.stderr
    assert not (tmp_path / ".sky" / "api_server" / "server.log").exists()


def test_the_server_is_waited_for(tmp_path: Path) -> None:
    """The line that lets campaigns start fails while nothing answers, and ends when a server does."""
    shell, flag, line = shlex.split(_section(SERVER)["ExecStartPost"])
    once = line.removeprefix("until ").partition(";")[0]
    with http.server.HTTPServer(("127.0.0.1", 0), _Healthy) as server:
        own = {"HOME": str(tmp_path), "SKYPILOT_API_SERVER_LOCAL_PORT": str(server.server_port)}
        environment = os.environ | own | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        environment.pop("SKYPILOT_API_SERVER_ENDPOINT", None)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert subprocess.run([shell, flag, line], env=environment, check=False, timeout=120).returncode == 0
        finally:
            server.shutdown()
            thread.join()
    with HeldPort() as port:
        environment["SKYPILOT_API_SERVER_LOCAL_PORT"] = str(port.number)
        assert subprocess.run([shell, flag, once], env=environment, check=False, timeout=120).returncode != 0


class _Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        from sky.server import constants

        health = {"status": "healthy", "api_version": str(constants.API_VERSION), "version": "", "commit": ""}
        self.send_response(200 if self.path == "/api/health" else 404)
        self.end_headers()
        self.wfile.write(json.dumps(health).encode())

    def log_message(self, *_: object) -> None: ...


def _section(unit: Path, name: str = "Service") -> dict[str, str]:
    """Keys that stand there more than once are lists, and go on."""
    found: dict[str, list[str]] = {}
    _, _, rest = unit.read_text().partition(f"[{name}]\n")
    for line in rest.partition("\n[")[0].splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return {key: " ".join(values) for key, values in found.items()}


def _environment(unit: Path) -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(_section(unit)["Environment"]))
