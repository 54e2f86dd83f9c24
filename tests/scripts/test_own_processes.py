"""Processes are found by what only ours carry, and ended one by one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from own_processes import end_all, own_processes, processes_saying

SECONDS = "97.531"


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", SECONDS])
    yield process
    process.kill()
    process.wait()


def test_only_ours_are_found_and_ended(tmp_path: Path, stranger: "subprocess.Popen[bytes]") -> None:
    """One knows the folder by its environment, one ignores SIGTERM; somebody else's lives on."""
    by_environment = _answering(["cat"], env=os.environ | {"PLACE": str(tmp_path)})
    stubborn = _answering(
        ["sh", "-c", f"trap '' TERM; : {tmp_path}; read line; echo $line; while :; do sleep 0.1; done"]
    )
    try:
        assert {process.pid for process in own_processes(tmp_path, None)} >= {by_environment.pid, stubborn.pid}
        assert end_all(tmp_path, None, 20) == []
        assert by_environment.wait(60) < 0
        assert stubborn.wait(60) == -9
        assert stranger.poll() is None
        assert stranger.pid in {process.pid for process in processes_saying(rf"^sleep {SECONDS}$")}
    finally:
        for process in (by_environment, stubborn):
            process.kill()
            process.communicate()


def _answering(words: list[str], env: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """It answers before it is looked at: the kernel tells a starter that a program runs before it knows its
    environment, and a shell is begun before it ignores a signal.
    """
    process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"there?\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"there?\n"
    return process


TITLED = """
import os, sys, time
import setproctitle
os.chdir(sys.argv[1])
setproctitle.setproctitle("SkyPilot:executor:short")
print(flush=True)
time.sleep(97)
"""


@pytest.mark.parametrize(
    ("variables", "leaves"), [({}, False), ({"SPT_NOENV": "1"}, True)], ids=["works in it", "told"]
)
def test_one_that_gave_itself_a_title_is_found_and_ended(
    tmp_path: Path, variables: dict[str, str], leaves: bool
) -> None:
    """By where it works though its words and environment are gone; elsewhere, by the environment it is told to keep."""
    place = "/" if leaves else str(tmp_path)
    environment = os.environ | {"PLACE": str(tmp_path)} | variables
    titled = subprocess.Popen([sys.executable, "-c", TITLED, place], env=environment, stdout=subprocess.PIPE)
    try:
        assert titled.stdout
        titled.stdout.readline()
        assert str(tmp_path).encode() not in Path(f"/proc/{titled.pid}/cmdline").read_bytes()
        assert titled.pid in {process.pid for process in own_processes(tmp_path, None)}
        assert end_all(tmp_path, None, 20) == []
        assert titled.wait(60) == -signal.SIGTERM
    finally:
        titled.kill()
        titled.wait()


def test_this_process_and_its_parents_are_never_among_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = own_processes(Path("/"), os.getuid())  # every process says that somewhere
    assert not {os.getpid(), os.getppid()} & {process.pid for process in found}
