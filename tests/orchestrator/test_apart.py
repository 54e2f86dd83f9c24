"""Reading that is ended by the kernel, and that never ends but in an answer or in one line."""

import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from orchestrator import apart
from orchestrator.apart import ReaderFault, note, read_apart
from orchestrator.task import TaskError

FOLDER = Path("there")


def read(work: Callable[[], object], form: type = str) -> object:
    return read_apart(work, form, FOLDER, TaskError, seconds=1)


def endless() -> str:
    note("a.py")
    while True:
        pass


def endless_in_c() -> str:
    return str(re.fullmatch("(a|a)*b", "a" * 60))


def crashed() -> str:
    note("b.py")
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def refused() -> str:
    raise TaskError("there: {is} refused")


def odd() -> str:
    raise KeyError("a\nb")


def deep() -> str:
    return deep()


ENDINGS: dict[str, Callable[[], object]] = {
    "there: reading a.py takes more than 1 s of processor; make it smaller or plainer, or leave it out": endless,
    "there: reading it takes more than 1 s of processor; make it smaller or plainer, or leave it out": endless_in_c,
    "there: reading it takes more than 1 s; make it smaller or plainer, or leave it out": lambda: time.sleep(600),
    "there: reading it failed: it takes more than 2 GiB of memory, or than ulimit -v": lambda: "a" * (8 << 30),
    "there: reading it failed: it comes to more than 1 MiB; make it": lambda: "a" * (1 << 20),
    "there: reading it failed: it is nested too deeply; make it": deep,
    "there: reading b.py ended its reader (SIGKILL); make it": crashed,
    "there: reading it ended its reader (exit code 3); make it": lambda: os._exit(3),
    "there: reading it failed: KeyError: 'a\\nb'; make it": odd,
    "there: reading it failed: UnicodeEncodeError: ": lambda: "\ud800",
    "there: its reader gave back no str (": lambda: 3,
    "there: {is} refused": refused,
}


@pytest.mark.parametrize("line", ENDINGS)
def test_t101_every_ending_is_one_line(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Whatever is read, and whatever happens to the process that reads it, a person gets one line."""
    monkeypatch.setattr(apart, "TIMES", 1 if "1 s;" in line else apart.TIMES)
    monkeypatch.setattr(apart, "ANSWER_BYTES", 1 << 20)
    with pytest.raises(TaskError) as error:
        read(ENDINGS[line])
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_an_answer() -> None:
    """What a reader returns comes back as it is: numbers keep their kind, and bytes their values."""
    form = dict[str, tuple[int | float, bytes]]
    answer = {"a": (2.0, b"\xff\0"), "b": (2, b""), "c": (10**40, b"")}
    assert [repr(it) for it in read(lambda: answer, form).items()] == [repr(it) for it in answer.items()]  # type: ignore[attr-defined]


def test_the_trace_of_a_fault_is_kept() -> None:
    """With --verbose one sees where a reader failed."""
    with pytest.raises(TaskError) as error:
        read(odd)
    assert isinstance(error.value.__cause__, ReaderFault)
    assert "in odd" in str(error.value.__cause__)


def test_no_reader_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """One who interrupts does not leave a process behind."""

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    begun: list[int] = []
    start = multiprocessing.get_context("fork").Process.start

    def started(process: Any) -> None:
        start(process)
        begun.append(process.pid)

    monkeypatch.setattr(multiprocessing.get_context("fork").Process, "start", started)
    monkeypatch.setattr(Connection, "recv_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(endless)
    with pytest.raises(ProcessLookupError):
        os.kill(begun[0], 0)
