"""T82: nothing that a chamber sends keeps the event loop; each hostile stream is fed beside others that want a turn."""

import asyncio
import time
from collections.abc import Callable

import pytest

from sandbox import Ending, Job, Report
from tests.lag import MOST_S, longest_turn
from tests.sandbox.scripted import play
from tests.sandbox.wire.streams import END, member

MIB = 1 << 20
REPORT = b'::report {"step":%d,"value":1}\n'


class Ear:
    """As much work for a line as a file or a screen makes."""

    def __init__(self) -> None:
        self.lines = 0
        self.reports = 0

    def line(self, text: str) -> None:
        self.lines += 1

    def report(self, report: Report) -> None:
        self.reports += 1


LOGS: dict[str, Callable[[], bytes]] = {
    "newlines": lambda: b"\n" * (MIB // 8),
    "short lines that are no text": lambda: b"\xff\n" * (MIB // 16),
    "escapes": lambda: b"\x1b" * (5 * MIB),
    "invisible characters": lambda: "\U000e0069".encode() * (5 * MIB // 4),
    "one line": lambda: b"x" * (16 * MIB),
    "reports": lambda: b"".join(REPORT % step for step in range(15_000)),
    "reports that are none": lambda: b'::report {"step":1,"value":[[[[[[\n' * 15_000,
    "reports with long numbers": lambda: (b'::report {"step":1,"value":' + b"9" * 990 + b"}\n") * 4_000,
}

ARCHIVES: dict[str, Callable[[], bytes]] = {
    "1,024 files of 60 KiB": lambda: b"".join(member(b"f%d" % number, bytes(61_440)) for number in range(1024)) + END,
    "one file of 64 MiB": lambda: member(b"whole", bytes(64 * MIB)) + END,
    "empty files": lambda: b"".join(member(b"f%d" % number) for number in range(1024)) + END,
    "long names": lambda: (
        b"".join(
            member(b"long", b"%04d/" % n + b"a" * 200 + b"/" + b"b" * 200 + b"\0", b"L") + member(b"x")
            for n in range(330)
        )
        + END
    ),
}


@pytest.mark.parametrize("stream", LOGS)
async def test_t82_logs(stream: str) -> None:
    """A flood of the log is heard, or ended at its cap, and no turn of the loop is long."""
    data = LOGS[stream]()

    async def scene() -> None:
        ear = Ear()
        played = await play(Job(command=("true",)), listener=ear, said=b"unpacked 0\n")
        played.hold.err(data)
        played.hold.out(b"done 0\n")
        played.hold.link.end()
        outcome = await played.outcome(120)
        assert outcome.ending in (Ending.FAILED, Ending.LOG_OVERFLOW)
        assert ear.lines > 500

    assert await longest_turn(scene) < MOST_S


@pytest.mark.parametrize("stream", ARCHIVES)
async def test_t82_archives(stream: str) -> None:
    """Outputs made to be slow to take apart are taken, and no turn of the loop is long."""
    data = b"archive\n" + ARCHIVES[stream]()  # 64 MiB are not copied in a turn

    async def scene() -> None:
        played = await play(Job(command=("true",)), said=b"unpacked 0\ndone 0\n")
        await played.hands_over(data)
        outcome = await played.outcome(120)
        assert outcome.ending is Ending.COMPLETED, outcome.reason

    assert await longest_turn(scene) < MOST_S


async def test_t82_a_blocked_loop_is_found() -> None:
    """The control: a callback that computes for longer than is allowed is found by the same instrument."""

    def compute() -> None:
        until = time.thread_time() + 2 * MOST_S
        while time.thread_time() < until:
            pass

    async def scene() -> None:
        asyncio.get_running_loop().call_soon(compute)
        await asyncio.sleep(0.01)

    assert await longest_turn(scene) > MOST_S
