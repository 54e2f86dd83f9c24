"""Bakes an image on a Docker engine: one container, changed step by step with the network off, then kept.

The container's name is the lock: the process that creates it bakes, all others wait for the image. The container goes
with its baker's connection, so one that died leaves neither a container nor a lock.
"""

import asyncio
import contextlib
import tarfile
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import IO, cast

from sandbox.answers import fields, needed, text
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.workbench import DockerWorkbench, create, running, workbench
from sandbox.backends.runc.layers import Entry, refuse_deep
from sandbox.bake_steps import Baker
from sandbox.baking import LABEL, BakedImage, ImageSpec, baked_name
from sandbox.errors import Lost, Refused, Unavailable
from sandbox.posture import image_objections

LIMIT_S = 1800.0
POLL_S = 0.5
STARTING_S = 60.0


async def bake(host: str, spec: ImageSpec, progress: Callable[[str], None], limit_s: float = LIMIT_S) -> BakedImage:
    # A step may be silent for as long as it has time.
    engine = await asyncio.to_thread(Engine, host, patience=limit_s)
    try:
        async with asyncio.timeout(limit_s):
            return await _baked(engine, spec, progress)
    except TimeoutError:
        raise Refused(f"baking took longer than {limit_s:g} s and was given up; make the image smaller") from None
    finally:
        engine.close()


async def _baked(engine: Engine, spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
    base = await engine.image(spec.base)
    if objections := image_objections(fields(base, "Config")):
        raise Refused(f"the image {spec.base} is refused: {objections[0]}")
    base_id = needed(base, "Id")
    if spec.is_empty:
        return BakedImage(spec.base, base_id)
    digest = spec.digest(base_id)
    if found := await _present(engine, digest):
        return found
    container = await _claimed(engine, digest, base_id, progress)
    async with running(engine, container):
        # The one who had the name before us may have left the image.
        if not await _present(engine, digest):
            await Baker(await DockerWorkbench.of(engine, container, base_id), spec, progress).bake()
            await engine.export(container, refuse_left)
            progress(f"keeping the image as {baked_name(digest)}")
            await engine.commit(container, baked_name(digest), [f"LABEL {LABEL}={digest}", 'CMD ["sh"]'])
    found = await _present(engine, digest)
    if not found:
        raise Lost(f"the image {baked_name(digest)} was baked and is gone again; try again")
    return found


def refuse_left(archive: Iterable[bytes]) -> None:
    """What the image's own programs should have taken away, or kept every step from making."""
    try:
        with tarfile.open(fileobj=cast(IO[bytes], _Stream(archive)), mode="r|", tarinfo=Entry) as entries:
            for entry in entries:
                refuse_deep(entry.name, entry.name.rstrip("/").count("/") + 1)
                if entry.isreg() and entry.mode & 0o6000:
                    raise Refused(f"a step left /{entry.name[:200]} with a set-user-ID bit; take it away in that step")
                # A chamber has a /dev of its own, and a base may have filled the one below it.
                is_plain = entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()
                if not is_plain and not entry.name.startswith("dev/"):
                    raise Refused(f"a step left a pipe or a device at /{entry.name[:200]}; remove it in that step")
    except tarfile.TarError as error:
        raise Unavailable(f"export: the engine's archive is none ({error})") from error


class _Stream:
    """Pieces as a file that is read once."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._left = b""

    def read(self, size: int) -> bytes:
        while len(self._left) < size and (piece := next(self._pieces, b"")):
            self._left += piece
        found, self._left = self._left[:size], self._left[size:]
        return found


async def _claimed(engine: Engine, digest: str, base_id: str, progress: Callable[[str], None]) -> str:
    """A container under the name that only one can have."""
    name = baked_name(digest).replace(":", "-")
    told = False
    while not (container := await create(engine, engine.claim(name, workbench(base_id, "none")))):
        if not told:
            progress("another process is baking this image; waiting for it")
        told = True
        await _remove_unstarted(engine, name)
        await asyncio.sleep(POLL_S)
    return container


async def _present(engine: Engine, digest: str) -> BakedImage | None:
    record = await engine.image_or_none(baked_name(digest))
    if not record or text(record, "Config", "Labels", LABEL) != digest:
        return None
    if objections := image_objections(fields(record, "Config")):
        raise Refused(f"the baked image is refused: {objections[0]}")
    return BakedImage(baked_name(digest), needed(record, "Id"))


async def _remove_unstarted(engine: Engine, name: str) -> None:
    """A baker that died between creating and starting, or an engine that did before it removed what had ended, left a
    name that nobody would ever give back.
    """
    with contextlib.suppress(Lost):
        record = await engine.inspect(name)
        age = time.time() - datetime.fromisoformat(needed(record, "Created")).timestamp()
        if text(record, "State", "Status") in ("created", "exited", "dead") and age > STARTING_S:
            await engine.remove(needed(record, "Id"))
