"""The command line as a user meets it: a process, its output and its exit code."""

import asyncio
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from sandbox import DockerConfig
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from tests.started import Started, completed

pytestmark = [pytest.mark.docker, pytest.mark.e2e]


def blastdoor(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return completed(*words, env={**os.environ, **environment})


def containers() -> set[str]:
    async def listed() -> set[str]:
        engine = await asyncio.to_thread(Engine, DockerConfig().host)
        try:
            return {item["Id"] for item in await engine.containers(OWNER_LABEL)}
        finally:
            engine.close()

    return asyncio.run(listed())


def test_exec_brings_files_in_and_out(tmp_path: Path) -> None:
    """Files go in, the log is shown, outputs are written, the exit code is 0."""
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "tool").write_text("#!/bin/sh\necho tool ran\ncp deep/tool $BLASTDOOR_OUT/copy\n")
    (source / "deep" / "tool").chmod(0o755)
    ran = blastdoor("exec", "--in", str(source), "--out", str(tmp_path / "out"), "--", "deep/tool")
    assert (ran.returncode, ran.stdout) == (0, "tool ran\n"), ran.stderr
    assert (tmp_path / "out" / "copy").read_text() == (source / "deep" / "tool").read_text()
    assert "completed" in ran.stderr


def test_example_of_the_docs(tmp_path: Path) -> None:
    """The first command of docs/chamber.md does what it says."""
    example = Path(__file__).parents[2] / "examples" / "hello"
    ran = blastdoor(
        "exec", "--in", str(example), "--out", str(tmp_path / "result"), "--wall", "30s", "--", "python3", "main.py"
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "result" / "total.txt").read_text() == "29\n"


def test_exec_as_json() -> None:
    """With --json, stdout is one object and the log is on stderr."""
    ran = blastdoor("exec", "--json", "--", "sh", "-c", "echo hello; exit 4")
    record = json.loads(ran.stdout)
    assert (ran.returncode, record["ending"], record["exit_code"]) == (1, "failed", 4)
    assert "hello" in ran.stderr


def test_hostile_log_is_escaped() -> None:
    """What a candidate prints cannot move the cursor or clear the screen."""
    ran = blastdoor("exec", "--", "printf", r"\033[2J\033]0;owned\007\rover\n")
    assert ran.returncode == 0
    assert "\x1b" not in ran.stdout
    assert "\\x1b[2J" in ran.stdout


BAD: list[tuple[list[str], int, str]] = [
    (["exec", "--", "no-such-command"], 1, "exit code 127"),
    (["exec", "--image", "no-such-image", "--", "true"], 2, "build it"),
    (["exec", "--image", "Bad Name", "--", "true"], 2, "image"),
    (["exec", "--memory", "1KiB", "--", "true"], 2, "at least 16MiB"),
    (["exec", "--memory", "lots", "--", "true"], 2, "write it like 512MiB"),
    (["exec", "--wall", "-5", "--", "true"], 2, "duration"),
    (["exec", "--cpus", "0", "--", "true"], 2, "at least 0.01"),
    (["exec", "--gpu", "A100:x", "--", "true"], 2, "A100:8"),
    (["exec", "--env", "1x=2", "--", "true"], 2, "not a variable name"),
    (["exec", "--env", "novalue", "--", "true"], 2, "NAME=VALUE"),
    (["exec", "--in", "/no/such/folder", "--", "true"], 2, "existing one"),
    (["exec", "--runtime", "runnix", "--", "true"], 2, "register it"),
    (["exec", "--bogus", "--", "true"], 2, "No such option"),
    (["exec"], 2, "Missing argument"),
    (["doctor", "--only", "nonsense"], 2, "no row"),
    (["nonsense"], 2, "No such command"),
]


@pytest.mark.alone
def test_bad_input() -> None:
    """Bad input gets one clear line, its documented exit code, and leaves nothing behind."""
    before = containers()
    for words, code, says in BAD:
        ran = blastdoor(*words)
        assert ran.returncode == code, words
        assert says in ran.stderr, words
        assert "Traceback" not in ran.stderr, words
    assert containers() <= before


def test_a_gpu_that_the_engine_has_not(tmp_path: Path) -> None:
    """It is refused before a run is opened, so the run before it stays the one that is spoken of."""
    task = tmp_path / "task"
    assert blastdoor("init", str(task)).returncode == 0
    assert blastdoor("run", str(task), "--attempts", "1").returncode == 0
    refused = blastdoor("run", str(task), "--new-run", "--gpu", "A10")
    assert refused.returncode == 2
    assert "GPU" in refused.stderr
    assert "Traceback" not in refused.stderr
    standing = json.loads(blastdoor("status", str(task), "--json").stdout)
    assert standing["campaign"]["run"] == 1, standing
    assert blastdoor("show", "best", str(task)).returncode == 0


def test_folders_that_are_refused(tmp_path: Path) -> None:
    """One over the bundle's cap, with the limit to raise; a link, which could lead anywhere; and for outputs one with
    something in it: it is not written to, and the command is not even run.
    """
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "file").write_bytes(bytes(5000))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "link").symlink_to("/etc/passwd")
    for words, says in (
        (("--in", str(tmp_path / "big"), "--bundle-bytes", "2KiB"), "raise bundle_bytes"),
        (("--in", str(tmp_path / "linked")), "lead out of the folder"),
        (("--out", str(tmp_path / "big")), "big"),
    ):
        ran = blastdoor("exec", *words, "--", "sh", "-c", "echo started; echo x >$BLASTDOOR_OUT/file")
        assert (ran.returncode, "started" in ran.stdout) == (2, False), words
        assert says in ran.stderr, words
    assert (tmp_path / "big" / "file").read_bytes() == bytes(5000)


def test_no_engine() -> None:
    """Without an engine: exit code 3 and the way to get one."""
    nowhere = "unix:///no/such/socket"
    ran = blastdoor("exec", "--", "true", DOCKER_HOST=nowhere, BLASTDOOR_DOCKER_HOST=nowhere)
    assert ran.returncode == 3
    assert "no Docker engine answers; start Docker" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.alone
def test_ctrl_c_leaves_nothing() -> None:
    """Ctrl-C ends the command and its chamber; the exit code is 130."""
    before = containers()
    words = ("exec", "--", "sh", "-c", "echo started; sleep 60")
    with tempfile.TemporaryFile() as stderr:
        with Started(*words, stdout=subprocess.PIPE, stderr=stderr) as process:
            said = process.said.readline()
            process.send_signal(signal.SIGINT)
        stderr.seek(0)
        errors = stderr.read()
    assert (said, process.wait()) == ("started\n", 130), errors
    assert b"Traceback" not in errors
    assert containers() <= before


@pytest.mark.alone
def test_reap_says_what_it_did() -> None:
    """`reap` on a clean engine says that nothing was left, as text or JSON."""
    deadline = time.monotonic() + 90
    while (ran := blastdoor("reap", "--json")).returncode == 0 and json.loads(ran.stdout):
        assert time.monotonic() < deadline
    assert blastdoor("reap").stdout == "nothing was left behind\n"
