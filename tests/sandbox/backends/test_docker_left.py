"""What an engine would not end is tried again, beside chambers that live on the same engine."""

import asyncio
from pathlib import Path
from typing import cast

from sandbox import Unavailable
from sandbox.backends.docker.backend import AT_ONCE, DockerBackend
from sandbox.backends.docker.engine import THREADS, Engine
from sandbox.backends.docker.lease import Lease
from sandbox.config import DockerConfig
from sandbox.posture import FULL

HANG_S = 60
NAMES = [f"chamber-{number}" for number in range(2 * THREADS)]


class SilentEngine:
    """Says nothing to a removal until it is let, and then that it failed."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.lets = asyncio.Event()

    async def remove(self, name: str) -> bool:
        self.asked.append(name)
        await self.lets.wait()
        raise Unavailable("the engine does not answer")

    def close(self) -> None:
        pass


def backend_on(engine: SilentEngine, folder: Path) -> DockerBackend:
    config = DockerConfig(host="unix:///nowhere", inputs_folder=folder)
    return DockerBackend(config, cast("Engine", engine), Lease(cast("Engine", engine), config.lease), FULL)


async def settle() -> None:
    """Every task goes as far as it can."""
    for _ in range(10 * len(NAMES)):
        await asyncio.sleep(0)


async def test_a_few_are_tried_at_once(tmp_path: Path) -> None:
    """Each that the engine does not end holds a thread for minutes; living chambers have the others. All are tried."""
    engine = SilentEngine()
    backend = backend_on(engine, tmp_path)
    backend.not_removed |= set(NAMES)
    trying = asyncio.create_task(backend.remove_left())
    await settle()
    assert len(engine.asked) == AT_ONCE < THREADS
    engine.lets.set()
    await trying
    assert sorted(engine.asked) == sorted(NAMES)


async def test_as_many_as_can_be_are_tried_at_the_end(tmp_path: Path) -> None:
    """No chamber lives that would need a thread, and somebody waits."""
    engine = SilentEngine()
    backend = backend_on(engine, tmp_path)
    backend.not_removed |= set(NAMES)
    closing = asyncio.create_task(backend.close())
    await settle()
    assert len(engine.asked) == THREADS
    engine.lets.set()
    await asyncio.wait_for(closing, HANG_S)


async def test_what_somebody_is_removing_is_left_to_them(tmp_path: Path) -> None:
    """A second request would only hold a second thread; once the first one has failed, it is tried again."""
    engine = SilentEngine()
    backend = backend_on(engine, tmp_path)
    removing = asyncio.create_task(backend.remove("ours"))
    await settle()
    await asyncio.wait_for(backend.remove_left(), HANG_S)
    assert engine.asked == ["ours"]
    removing.cancel()
    await asyncio.wait([removing])
    engine.lets.set()
    await asyncio.wait_for(backend.remove_left(), HANG_S)
    assert engine.asked == ["ours", "ours"]
