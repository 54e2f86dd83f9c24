"""The orchestrator's image, run as the compose file has it: a whole campaign on an engine that it is told of.

Two things differ from there, for want of a registry: the engine is the one of these tests, and the ledger is a file.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.config.docker import default_docker_host
from tests.deploy.templates import COMPOSE, ROOT, load

# The image's own user, unless the files of this test can only be ours.
USER = 10001 if os.geteuid() == 0 else os.geteuid()
pytestmark = pytest.mark.docker


def _run(tmp_path: Path, *words: str, entrypoint: str = "blastdoor") -> subprocess.CompletedProcess[str]:
    service = load(COMPOSE)["services"]["orchestrator"]
    socket = default_docker_host().removeprefix("unix://")
    cache = tmp_path / "cache"
    command = ["docker", "run", "--rm", "--network", "none", "--user", f"{USER}:{USER}", "--entrypoint", entrypoint]
    command += ["--read-only"] if service["read_only"] else []
    command += ["--init"] if service["init"] else []
    command += [f"--cap-drop={name}" for name in service["cap_drop"]]
    command += [f"--security-opt={option}" for option in service["security_opt"]]
    command += [f"--tmpfs={path}" for path in service["tmpfs"]]
    # The engine of these tests has a group of its own for its socket, and sees inputs where this machine has them.
    command += [f"--group-add={Path(socket).stat().st_gid}", f"--volume={socket}:/run/engine/docker.sock:ro"]
    command += [f"--volume={tmp_path / 'tasks'}:/tasks", f"--volume={cache}:{cache}", f"--env=XDG_CACHE_HOME={cache}"]
    command += [f"--env=BLASTDOOR_DOCKER_HOST={service['environment']['BLASTDOOR_DOCKER_HOST']}"]
    return subprocess.run([*command, service["image"], *words], capture_output=True, text=True, check=False)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task with inputs, small enough for a test, that belongs to the image's user."""
    place = tmp_path / "tasks" / "mine"
    shutil.copytree(ROOT / "examples" / "circle_packing", place)
    settings = place / "blastdoor.toml"
    text = settings.read_text()
    assert "attempts = 40" in text
    settings.write_text(text.replace("attempts = 40", "attempts = 2"))
    (tmp_path / "cache").mkdir()
    if os.geteuid() == 0:
        for path in (tmp_path / "cache", tmp_path / "tasks", *(tmp_path / "tasks").rglob("*")):
            os.chown(path, USER, USER)
        for folder in (it for it in tmp_path.parents if it.name.startswith("pytest-")):
            folder.chmod(folder.stat().st_mode | 0o011)  # the engine's root sees it anyway, the user in it has to
    return place


def test_begins_and_goes_on(task: Path, tmp_path: Path) -> None:
    """The first start begins the campaign, a second one goes on with it; both end well, and nothing is left."""
    for _ in range(2):
        result = _run(tmp_path, "/tasks/mine", entrypoint="blastdoor-campaign")
        assert result.returncode == 0, result.stdout + result.stderr
        assert "2 of 2 attempts are used" in result.stdout
    assert (task / ".blastdoor").stat().st_uid == USER


def test_a_task_at_fault_ends_with_2(task: Path, tmp_path: Path) -> None:
    """A service that sees this code does not try again."""
    (task / "blastdoor.toml").write_text("nothing = 1\n")
    assert _run(tmp_path, "/tasks/mine", entrypoint="blastdoor-campaign").returncode == 2


def test_holds_what_it_needs(task: Path, tmp_path: Path) -> None:
    """Its own user, no client of an engine; the definitions of the images and Modal's package are in it."""
    look = "import modal; from sandbox.definitions import lineage; print([it.name for it in lineage('blastdoor-cuda')])"
    script = f'id -u; command -v docker; /opt/blastdoor/bin/python -c "{look}"'
    result = _run(tmp_path, "-c", script, entrypoint="sh")
    assert result.stdout.splitlines() == [str(USER), "['trial', 'cuda']"], result.stderr
