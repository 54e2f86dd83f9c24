"""Floods: of the log, of PID 1's answers, of the archive, and of the log that an engine would keep."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from sandbox.attacks.attack import IMAGE, QUICK, Arena, Finding, attack, name_of
from sandbox.attacks.forge import FORGING, Seen, member, run_forged, run_seen
from sandbox.bundle import Bundle
from sandbox.job import Ending, Job
from sandbox.wire.log import Report

MIB = 1 << 20
GROWTH_CAP = 8 * MIB
T = TypeVar("T")

LIMITS = QUICK.model_copy(update={"log_bytes": MIB, "output_bytes": MIB, "output_files": 100})


def _resident() -> int:
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) * 1024


async def _growth(work: Awaitable[T]) -> tuple[T, int]:
    """The result, and by how much our own resident memory grew at most while it came about."""
    before = peak = _resident()
    running = asyncio.ensure_future(work)
    while not running.done():
        await asyncio.wait([running], timeout=0.01)
        peak = max(peak, _resident())
    return running.result(), peak - before


def _flat(seen: Seen, wanted: Ending, growth: int, ran: bool) -> Finding:
    blocked = seen.outcome.ending is wanted and growth < GROWTH_CAP and seen.gone
    evidence = f"{seen.outcome.reason}; the client grew by {growth / MIB:.1f} MiB"
    return Finding(ran, blocked, str(seen.outcome.ending), evidence)


FLOOD = """
import os, threading
def flood(stream):
    for _ in range(512):
        os.write(stream, b"x" * 65536)
threads = [threading.Thread(target=flood, args=(stream,)) for stream in (1, 2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@attack("T18", "flood of stdout and stderr without a newline")
async def log_flood(arena: Arena) -> Finding:
    """A flood ends at the log's cap and costs the client no memory."""
    seen, growth = await _growth(run_seen(arena, FLOOD, limits=LIMITS))
    return _flat(seen, Ending.LOG_OVERFLOW, growth, seen.outcome.usage.log_bytes == LIMITS.log_bytes)


@attack("T18", "flood of lines to a listener")
async def line_flood(arena: Arena) -> Finding:
    """Millions of empty lines end at the cap too, with somebody listening."""
    source = "import os\nfor _ in range(512):\n    os.write(1, b'\\n' * 65536)"
    ear = _Counter()
    seen, growth = await _growth(run_seen(arena, source, limits=LIMITS, listener=ear))
    return _flat(seen, Ending.LOG_OVERFLOW, growth, 0 < ear.lines <= LIMITS.log_bytes)


class _Counter:
    def __init__(self) -> None:
        self.lines = 0

    def line(self, text: str) -> None:
        self.lines += not text

    def report(self, report: Report) -> None:
        """None is sent."""


@attack("T18", "flood of PID 1's answers through /proc")
async def answer_flood(arena: Arena) -> Finding:
    """Bytes without end where a word belongs are a broken protocol after a kilobyte."""
    source = "import forge\nforge.note('flooding')\nfor _ in range(512):\n    forge.say(b'x' * 65536)"
    seen, growth = await _growth(run_seen(arena, source, limits=LIMITS))
    return _flat(seen, Ending.PROTOCOL, growth, "flooding" in seen.log)


@attack("T18", "flood of the archive with small files")
async def archive_flood(arena: Arena) -> Finding:
    """A forged archive without end is refused at its cap."""
    archive = b"".join(member(b"%d" % number) for number in range(500))
    seen, growth = await _growth(run_forged(arena, archive, LIMITS, 40))
    return _flat(seen, Ending.OUTPUT_REFUSED, growth, FORGING in seen.log)


@attack("T18", "flood of the archive with paths that imply folders")
async def folder_flood(arena: Arena) -> Finding:
    """Folders that no entry names are counted as well: a kilobyte of path is not worth hundreds of names."""
    deep = (b"%d/" % number + b"a/" * 120 + b"a" for number in range(150))
    archive = b"".join(member(b"long", name + b"\0", b"L") + member(b"x") for name in deep)
    seen, growth = await _growth(run_forged(arena, archive, LIMITS))
    return _flat(seen, Ending.OUTPUT_REFUSED, growth, FORGING in seen.log)


@attack("T18", "filling the disk of the engine with a log")
async def engine_log(arena: Arena) -> Finding:
    """The engine keeps no log of a chamber that is alive and has written one."""
    heard = _Heard()
    source = b"import time\nprint('in the log', flush=True)\ntime.sleep(10)"
    job = Job(command=("python3", "attack.py"), image=IMAGE, limits=QUICK)
    host = arena.host
    async with await arena.backend.open(job) as chamber:
        running = asyncio.ensure_future(chamber.run(Bundle({"attack.py": source}), listener=heard))
        await asyncio.wait_for(heard.line_came.wait(), 60)
        kept = await host.kept_log(name_of(chamber))
        evidence = f"{len(kept)} bytes were kept"
        await chamber.kill()
        outcome = await running
    return Finding(True, not kept and outcome.ending is Ending.KILLED, str(outcome.ending), evidence)


class _Heard:
    def __init__(self) -> None:
        self.line_came = asyncio.Event()

    def line(self, text: str) -> None:
        if text:
            self.line_came.set()

    def report(self, report: Report) -> None:
        """None is sent."""
