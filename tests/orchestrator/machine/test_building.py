"""`blastdoor images`, with a docker command that only pretends: what is told, what is built, and what goes wrong."""

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import Result

from orchestrator.machine import docker_builder, programs
from orchestrator.machine.images import LABEL, plan
from orchestrator.views.cli import cli
from orchestrator.views.exits import Exit
from orchestrator.views.failing import explained
from tests.clicking import runner
from tests.started import FRESH

DOCKER = """#!/bin/sh
echo "$@" >>{folder}/called
env >{folder}/environment
case $1 in
image) cat {folder}/there; [ ! -e {folder}/silent ] || {{ cat {folder}/silent >&2; exit 1; }} ;;
*) [ ! -e {folder}/fails ] || {{ cat {folder}/fails; exit 1; }} ;;
esac
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a docker command: `there` is what it tells of images, `silent` and `fails` what it complains of."""
    folder = tmp_path / "docker"
    folder.mkdir()
    (folder / "docker").write_text(DOCKER.format(folder=folder))
    (folder / "docker").chmod(0o755)
    (folder / "there").touch()
    monkeypatch.setattr(programs, "SEARCH_PATH", f"{folder}:/usr/bin:/bin")
    return folder


def _has(engine: Path, **digests: str) -> None:
    rows = [[[f"blastdoor-{name}:latest"], {LABEL: digest}, 1 << 20] for name, digest in digests.items()]
    (engine / "there").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _images(*words: str) -> Result:
    return runner().invoke(cli, ["images", *words])


def _said(result: Result) -> tuple[str, Exit] | None:
    return explained(result.exception) if isinstance(result.exception, Exception) else None


def test_ready_stale_and_missing(engine: Path) -> None:
    """An image is ready when it carries the digest of this version's definition, and stale with any other."""
    trial = next(image for image in plan() if image.name == "blastdoor-trial")
    _has(engine, trial=trial.digest, attack="another")
    found = {row["image"]: row["state"] for row in json.loads(_images("--json").output)}
    assert found.pop("blastdoor-trial:latest") == "ready"
    assert found.pop("blastdoor-attack:latest") == "stale"
    assert set(found.values()) == {"missing"}
    assert "stale on engine: " in _images().output


def test_only_what_is_not_ready_is_built(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a base that is named: the trial's image stays, the attack's is built; no secret of ours is told."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    planned = {image.name: image for image in plan("mine:1", ["attack"])}
    _has(engine, trial=planned["blastdoor-trial"].digest, attack="another")
    result = _images("build", "attack", "--base", "mine:1")
    assert result.exit_code == Exit.OK, result.output
    built = [line for line in (engine / "called").read_text().splitlines() if line.startswith("build ")]
    assert ["--tag blastdoor-attack:latest" in line for line in built] == [True]
    assert "canary" not in (engine / "environment").read_text()


def test_a_build_that_fails(engine: Path, tmp_path: Path) -> None:
    """One line: what failed, what it said last, and where the rest is."""
    (engine / "fails").write_text("Step 1\nno space left on device\n")
    line, code = _said(_images("build", "trial", "--base", "mine:1")) or ("", Exit.OK)
    log = tmp_path / "state" / "blastdoor" / "images.log"
    assert (line, code) == (f"docker build failed with 1: no space left on device (log: {log})", Exit.NO_ENGINE)
    assert log.read_text().startswith("Step 1")


def test_no_engine(engine: Path) -> None:
    """The line says what was asked, and what to do."""
    (engine / "silent").write_text("Cannot connect to the Docker daemon\n")
    for words in ((), ("build",)):
        line, code = _said(_images(*words)) or ("", Exit.OK)
        assert (code, "start Docker, set DOCKER_HOST, or run `blastdoor up`" in line) == (Exit.NO_ENGINE, True)
        assert line.endswith("without an engine: `blastdoor images build --backend runc`")


def test_what_is_missing(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is no image is refused with those that are. Where the docker command is missing, the line says how
    to get it; without Debian's tool, and where it may not be installed, an official image is the other way.
    """
    result = _images("build", "agents")
    assert (result.exit_code, "there is no image agents; images are trial, attack" in result.output) == (2, True)
    with monkeypatch.context() as patched:
        patched.setattr(docker_builder, "program", lambda _: None)
        line, code = _said(_images("build")) or ("", Exit.OK)
        assert (code, line.startswith("the docker command is missing: install it")) == (Exit.NO_ENGINE, True)
    monkeypatch.setattr(programs, "may_install", lambda: False)
    monkeypatch.setattr(programs, "SEARCH_PATH", str(engine))
    (engine / "docker").write_text("#!/bin/sh\n")
    line, code = _said(_images("build")) or ("", Exit.OK)
    assert (code, line.startswith("missing: mmdebstrap.")) == (Exit.NO_ENGINE, True)
    assert line.endswith("Or build on an official image: --base python:3.11-slim-bookworm")


def test_a_mirror_that_is_not_there(engine: Path) -> None:
    """The line has the reason, not the last one who failed because of it."""
    tool = engine / "mmdebstrap"
    lines = (
        "Err:1 mirror\nE: Failed to fetch mirror  Could not connect\nE: apt-get failed\nI: removing\nE: failed to run"
    )
    tool.write_text(f"#!/bin/sh\necho '{lines}' >&2\nexit 25\n")
    tool.chmod(0o755)
    line, code = _said(_images("build")) or ("", Exit.OK)
    assert code == Exit.NO_ENGINE
    assert line.startswith("mmdebstrap failed with 25: E: Failed to fetch mirror  Could not connect (log: ")


@pytest.mark.crash
def test_a_build_that_is_killed(engine: Path, tmp_path: Path) -> None:
    """What it had started dies with it, what it was at goes with the next build, and nothing else does."""
    temporary, begun = tmp_path / "tmp", tmp_path / "begun"
    temporary.mkdir()
    tool = engine / "mmdebstrap"
    tool.write_text(f'#!/bin/sh\nsleep 600 &\nsleep 600 & cd "$TMPDIR" && mkdir root && echo x >{begun}\nwait\n')
    tool.chmod(0o755)
    paths = {"PATH": f"{engine}:{os.environ['PATH']}", "TMPDIR": str(temporary), "PYTHONPATH": str(Path.cwd())}
    process = subprocess.Popen([*FRESH, "images", "build"], env={**os.environ, **paths}, stderr=subprocess.DEVNULL)
    assert _comes_true(begun.exists)
    process.kill()
    process.wait()
    assert _comes_true(lambda: not _at_work_in(temporary)), "its processes work on"
    left = list(temporary.iterdir())
    assert [(it / "root").is_dir() for it in left] == [True]
    (temporary / "of-others").mkdir()
    tool.write_text("#!/bin/sh\nexit 9\n")
    again = subprocess.run(
        [*FRESH, "images", "build"], env={**os.environ, **paths}, capture_output=True, text=True, check=False
    )
    assert "mmdebstrap failed with 9" in again.stderr
    assert [it.name for it in temporary.iterdir()] == ["of-others"]


def _comes_true(look: Callable[[], bool]) -> bool:
    for _ in range(600):
        if look():
            return True
        time.sleep(0.1)
    return False


def _at_work_in(folder: Path) -> list[str]:
    """Processes whose working folder is below."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(process.name)
    return found


def test_a_record_that_is_no_workplace(engine: Path, tmp_path: Path) -> None:
    """A record that was cut off, or that somebody changed, removes nothing."""
    mine = tmp_path / "mine"
    mine.mkdir()
    for said in ("", str(mine), "/"):
        at = tmp_path / "state/blastdoor/images.at"
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(said)
        _images("build", "trial", "--base", "mine:1")
        assert mine.is_dir()


def test_a_second_build_waits(engine: Path, tmp_path: Path) -> None:
    """It says so, and has nothing to do when the first one was at the same."""
    _has(engine, **{image.name.removeprefix("blastdoor-"): image.digest for image in plan()})
    lock = tmp_path / "state/blastdoor/images.lock"
    lock.parent.mkdir(parents=True)
    paths = {"PATH": f"{engine}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = [*FRESH, "images", "build"]
        second = subprocess.Popen(command, env={**os.environ, **paths}, stderr=subprocess.PIPE, text=True)
        assert second.stderr
        assert second.stderr.readline() == "another process builds images; waiting for it\n"
    assert (second.wait(), second.stderr.read()) == (0, "")
