"""The line to the engine breaks, stalls or is slow, and no program pays for it (T86)."""

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox import Bundle, Chamber, DockerConfig, Ending, Job, Limits, Outcome, Silent, Unavailable
from sandbox.backends.docker import backend as docker_backend
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from sandbox.conformance.check import Ear
from sandbox.pulse import Pulse
from tests.fault_proxy import FaultProxy

pytestmark = pytest.mark.docker

LIMITS = Limits(wall=30, memory="64MiB", work_bytes="16MiB")
JOB = Job(command=("sh", "-c", "echo begun; sleep 1; echo hello > /work/out/x"), limits=LIMITS)
# Whatever befalls the line, befalls it while this runs.
LONG = Job(command=("sh", "-c", "echo begun; exec sleep 600"), limits=LIMITS.model_copy(update={"wall": 300}))
WALL_S = 4.0  # of one that is stalled in time: so long the word that it has begun may take to come


@pytest.fixture
def line(tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(DockerConfig().host, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def within_s() -> float:
    """So soon an engine that does not answer is taken for silent."""
    return 0.3


@pytest.fixture
async def backend(
    line: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within_s: float
) -> AsyncIterator[DockerBackend]:
    monkeypatch.setattr(docker_backend, "Pulse", functools.partial(Pulse, every_s=0.1, within_s=within_s))
    connected = await DockerBackend.connect(DockerConfig(host=line.url, inputs_folder=tmp_path / "inputs"))
    yield connected
    line.heal()
    await connected.close()


async def begun(chamber: Chamber) -> asyncio.Task[Outcome]:
    ear = Ear()
    running = asyncio.create_task(chamber.run(Bundle({}), listener=ear))
    await ear.hears()
    return running


@pytest.mark.parametrize("within_s", [60.0])  # a late answer would close the connection whose end is looked for
async def test_T86_a_line_that_broke_once(line: FaultProxy, backend: DockerBackend) -> None:
    """The chamber ends with its stdin; that every later call gets through does not make it the program's doing."""
    async with await backend.open(LONG) as chamber:
        running = await begun(chamber)
        line.break_once()
        with pytest.raises(Silent):
            await running


async def test_T86_an_engine_that_is_away(line: FaultProxy, backend: DockerBackend) -> None:
    """It is waited for, and then no chamber is left."""
    async with await backend.open(LONG) as chamber:
        running = await begun(chamber)
        line.cut()
        await asyncio.sleep(1.0)
        line.heal()
        with pytest.raises(Silent):
            await running
    engine = Engine(DockerConfig().host)
    try:
        assert not await engine.containers(f"{OWNER_LABEL}={backend.owner}")
    finally:
        engine.close()


async def test_T86_an_engine_that_stalls_past_the_limit(line: FaultProxy, backend: DockerBackend) -> None:
    """Nothing was heard of the program in its time, and that was not its doing."""
    hasty = LONG.model_copy(update={"limits": LIMITS.model_copy(update={"wall": WALL_S})})
    async with await backend.open(hasty) as chamber:
        running = await begun(chamber)
        line.stall()
        await asyncio.sleep(WALL_S + 1)
        line.heal()
        with pytest.raises(Silent, match="over its limit of 4 s; the provider did not answer"):
            await running


@pytest.mark.parametrize("how", ["stalls", "is slow"])
async def test_T86_a_line_that_holds_up_what_is_said(line: FaultProxy, backend: DockerBackend, how: str) -> None:
    """What was said meanwhile arrives late, and counts."""
    async with await backend.open(JOB) as chamber:
        running = await begun(chamber)
        if how == "stalls":
            line.stall()
            await asyncio.sleep(1.5)
            line.heal()
        else:
            line.slow(100_000)
        outcome = await running
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"x": b"hello\n"})


async def test_an_engine_that_answers_can_be_told_from_one_that_does_not(
    line: FaultProxy, backend: DockerBackend
) -> None:
    await backend.answers()
    line.cut()
    with pytest.raises(Unavailable, match="the engine does not answer"):
        await backend.answers()
    line.heal()
    await backend.answers()


async def test_T86_a_silence_longer_than_the_lease(
    line: FaultProxy, backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner is not fenced by it: nothing is opened while the engine is away, and all goes on after it."""
    line.cut()
    monkeypatch.setattr(backend.lease, "clock", lambda: time.time() + 120)
    with pytest.raises(Unavailable):
        await backend.open(JOB)
    line.heal()
    async with await backend.open(JOB) as chamber:
        assert (await chamber.run(Bundle({}))).ending is Ending.COMPLETED
    assert backend.lease.lapses == 1
