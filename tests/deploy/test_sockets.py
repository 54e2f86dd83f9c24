"""Nothing that runs candidate code is handed the Docker socket: held over every image, template and chamber."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.docker.workbench import workbench
from sandbox.errors import Refused
from sandbox.inputs import InputStore
from sandbox.job import Input, Limits
from sandbox.posture import Posture, container_config
from tests.deploy.templates import COMPOSE, DEPLOY, ROOT, definitions, files, load

SOCKET = re.compile(r"(?:docker|containerd|podman|crio)[^\s\"']*\.sock", re.IGNORECASE)
# Who may speak of a socket: settings that tell the orchestrator where its engine is, and pages.
TOLD = {"compose/compose.yaml", "modal/settings.toml", "skypilot/settings.toml", "README.md"}


@pytest.mark.parametrize("path", definitions(), ids=lambda path: str(path.relative_to(ROOT)))
def test_images_know_none(path: Path) -> None:
    """No image holds a socket, a client of an engine, or a place for either."""
    text = path.read_text()
    assert not SOCKET.search(text)
    assert not re.search(r"\bVOLUME\b|DOCKER_HOST|docker\.io|docker-cli", text)


def test_templates_name_it_for_the_orchestrator_only() -> None:
    """Where a template names a socket, it is in the orchestrator's own settings."""
    naming = {str(path.relative_to(DEPLOY)) for path in files() if SOCKET.search(path.read_text())}
    assert naming <= TOLD


def test_services() -> None:
    """No service but the engine and the orchestrator mounts the folder of its socket, and none the machine's."""
    for name, service in load(COMPOSE)["services"].items():
        for mount in service.get("volumes", []):
            source, target = mount.split(":")[:2]
            assert not SOCKET.search(mount)
            assert source not in ("/", "/run", "/var/run", "/var")
            assert (source == "engine") <= (name in ("engine", "orchestrator") and target == "/run/engine")


@pytest.mark.parametrize("runtime", ["runc", "runsc"])
@pytest.mark.parametrize("gpus", [(), ("0",)], ids=["plain", "gpu"])
def test_chambers_mount_inputs_and_nothing_else(runtime: str, gpus: tuple[str, ...]) -> None:
    """What is asked of an engine for a chamber has one kind of mount, read-only, and no socket anywhere."""
    item = Input(name="data", digest="0" * 64)
    wanted: Any = container_config(Posture(), Limits(), runtime, "boot", "image", [("/store/0", item)], gpus=gpus)
    assert not SOCKET.search(json.dumps(wanted))
    host = wanted["HostConfig"]
    assert (host["Binds"], host["VolumesFrom"], host["Privileged"]) == ([], [], False)
    assert [mount["Target"] for mount in host["Mounts"]] == ["/inputs/data"]
    driver = host["Mounts"][0]["VolumeOptions"]["DriverConfig"]
    assert driver["Options"] == {"type": "overlay", "device": "overlay", "o": "ro,lowerdir=/store/0:/store/.empty"}


@pytest.mark.parametrize("network", ["none", "host"])
def test_containers_that_become_images_mount_nothing(network: str) -> None:
    """The lines of a task's [image] run without any mount."""
    wanted = workbench("image", network)
    assert not SOCKET.search(json.dumps(wanted))
    assert not {"Binds", "Mounts", "VolumesFrom", "Devices", "Privileged"} & set(
        json.loads(json.dumps(wanted))["HostConfig"]
    )


def test_a_socket_is_no_input(tmp_path: Path) -> None:
    """Whoever names an engine's socket as an input of a task is refused: inputs are copies of plain files."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        for source in (path, tmp_path):
            with pytest.raises(Refused):
                InputStore(tmp_path / "store").add("engine", source)
