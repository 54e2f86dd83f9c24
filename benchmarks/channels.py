"""Bits a second between two chambers, by each way that was tried: before the mends, with them, and across realms.

On an engine and without one, with each runtime.

What is left behind is written by one chamber and read by the next. Live ways need both at once: they share the clock,
a bit has a slot of its own, and the reader measures in its middle. Programs are ours, so their own times are believed.
"""

import asyncio
import contextlib
import json
import math
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks.channel_ways import EVICT, IMAGE_FILE, INPUT, SLOTS, WAYS, Way
from benchmarks.figure import Figure
from sandbox.attacks.attack import QUICK, Arena, told
from sandbox.attacks.channels import message, read_right
from sandbox.attacks.hosts import open_arena
from sandbox.config import DockerConfig, RuncConfig
from sandbox.inputs import InputStore
from sandbox.job import Input
from sandbox.posture import FULL

OPEN = replace(FULL, seccomp=False, masked_paths=False, own_files=False)
REALM = "bench"
LIMITS = QUICK.model_copy(update={"wall": 90.0, "memory": 1024**3, "open_files": 1024})
# Until both chambers of a live way have started; doubled where one was late.
LEAD_S, TRIES = 3.0, 5


@dataclass(frozen=True)
class Case:
    """A column: two chambers of one realm, or of two; `open` is without the mends."""

    name: str
    engine: bool
    runtime: Literal["runc", "crun", "runsc"]
    realm: str = ""
    open: bool = False


CASES = (
    Case("docker/runc before", True, "runc", open=True),
    Case("docker/runc", True, "runc"),
    Case("docker/runc, two realms", True, "runc", REALM),
    Case("docker/runsc", True, "runsc"),
    Case("runc before", False, "runc", open=True),
    Case("runc", False, "runc"),
    Case("runc, two realms", False, "runc", REALM),
    Case("crun", False, "crun"),
    Case("runsc", False, "runsc"),
)


async def measure() -> list[Figure]:
    figures: list[Figure] = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            item = _input(Path(folder))
            async with _arena(case, Path(folder), OPEN) as bare, _arena(case, Path(folder)) as closed:
                for way in WAYS:
                    settings = {"inputs": (item,)} if way.place == INPUT else {}
                    rate = await _rate(way, bare, bare if case.open else closed, case.realm, settings)
                    figures.append(Figure(f"{way.name}: {case.name}", rate, "bit/s", _goal(way, case)))
    return figures


def _input(folder: Path) -> Input:
    (folder / "file").write_bytes(bytes(65536))
    return InputStore(folder / "store").add("data", folder / "file")


def _goal(way: Way, case: Case) -> str:
    """What is said to be closed. All else is measured and told."""
    gone = way.name.startswith(("advice", "/proc/vmstat", "/proc/sys"))
    of_pages = "page of" in way.name
    of_inodes = way.slot is not None and way.place in (INPUT, IMAGE_FILE) and not of_pages
    across = (way.slot is None or of_pages) and case.realm
    return "<= 0" if not case.open and (gone or of_inodes or across) else ""


@contextlib.asynccontextmanager
async def _arena(case: Case, folder: Path, posture: Any = FULL) -> AsyncIterator[Arena]:
    store = folder / "store"
    config: DockerConfig | RuncConfig = (
        DockerConfig(runtime=case.runtime, inputs_folder=store)
        if case.engine
        else RuncConfig(runtime=case.runtime, inputs_folder=store)
    )
    arena = await open_arena(config, posture)
    try:
        yield arena
    finally:
        await arena.backend.close()


async def _rate(way: Way, bare: Arena, arena: Arena, realm: str, settings: dict[str, Any]) -> float:
    """Bits a second from a chamber of the realm to one without; 0 where no more were right than by chance."""
    sent = message(way.bits)
    env = {"MESSAGE": json.dumps(sent), "BITS": str(way.bits), "SALT": f"{time.time_ns()}", "PLACE": way.place}
    common = {"limits": LIMITS, "env": env, **settings}
    if way.cold:
        for side in {"", realm}:
            await bare.run(EVICT, realm=side, **common)
    if way.slot is None:
        writer = await arena.run(way.writer, realm=realm, **common)
        reader = await arena.run(way.reader, **common)
        times, seconds = told(reader)["times"], writer.usage.run_s + reader.usage.run_s
    else:
        times, seconds = await _live(way, way.slot, arena, realm, common), way.bits * way.slot
    return way.bits * capacity(read_right(sent, times), way.bits) / seconds


async def _live(way: Way, slot: float, arena: Arena, realm: str, common: dict[str, Any]) -> list[float]:
    for attempt in range(TRIES):
        clock = {"START": str(time.time() + LEAD_S * 2**attempt), "SLOT": str(slot)}
        both = {**common, "env": common["env"] | clock}
        writing = arena.run(SLOTS + way.writer, realm=realm, **both)
        writer, reader = await asyncio.gather(writing, arena.run(SLOTS + way.reader, **both))
        if told(writer)["done"] and told(reader)["times"]:
            return list(told(reader)["times"])
    raise AssertionError(f"{way.name}: the chambers never started in time; the machine is too busy")


def capacity(right: int, bits: int) -> float:
    """Of a channel that gets this many bits right, in bits each; 0 within four deviations of chance."""
    if abs(right - bits / 2) <= 4 * math.sqrt(bits) / 2:
        return 0.0
    return 1.0 - sum(-share * math.log2(share) for share in _shares(right / bits))


def _shares(right: float) -> Iterator[float]:
    yield from (share for share in (right, 1 - right) if share > 0)
