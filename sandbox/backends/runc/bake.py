"""Bakes an image without a daemon: a copy of the base is changed step by step with the network off, then kept.

One bakes, all others wait: who bakes holds a lock that the kernel lets go of when its holder dies. What a baker that
was killed had begun is removed by the next owner, as for chambers.
"""

import asyncio
import contextlib
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from sandbox.backends.runc.uses import Uses
from sandbox.backends.runc.workbench import RuncWorkbench, to_the_end
from sandbox.bake_steps import Baker
from sandbox.baking import LABEL, BakedImage, ImageSpec, baked_name
from sandbox.errors import Refused

if TYPE_CHECKING:
    from sandbox.backends.runc.backend import RuncBackend

LIMIT_S = 1800.0
POLL_S = 0.5


async def bake(
    backend: "RuncBackend", spec: ImageSpec, progress: Callable[[str], None], limit_s: float = LIMIT_S
) -> BakedImage:
    try:
        async with asyncio.timeout(limit_s):
            return await _baked(backend, spec, progress)
    except TimeoutError:
        raise Refused(f"baking took longer than {limit_s:g} s and was given up; make the image smaller") from None


async def _baked(backend: "RuncBackend", spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
    images = backend.images
    base = await images.image(spec.base)
    digest = spec.digest(f"sha256:{base.id}")
    name = baked_name(digest)
    async with _turn(Uses(images.folder / "baking"), digest, progress):
        id_ = images.loaded().get(name, "")
        settings = images.settings(id_) if id_ else {}
        if (settings.get("Labels") or {}).get(LABEL) != digest:
            # The same words bring other packages another day, so each time is an image of its own.
            id_ = hashlib.sha256(f"{digest} {uuid.uuid4()}".encode()).hexdigest()
            with images.making() as folder:
                bench = RuncWorkbench(backend, base.folder, folder, base.environment)
                await bench.prepare()
                await Baker(bench, spec, progress).bake()
                await bench.finish()
                progress(f"keeping the image as {name}")
                settings = {**images.settings(base.id), "Labels": {LABEL: digest}}
                await to_the_end(images.keep, bench.root, id_, name, settings)
    return BakedImage(name, f"sha256:{id_}")


@contextlib.asynccontextmanager
async def _turn(uses: Uses, id_: str, progress: Callable[[str], None]) -> AsyncIterator[None]:
    told = False
    while True:
        with uses.alone(id_) as is_free:
            if is_free:
                yield
                return
        if not told:
            progress("another process is baking this image; waiting for it")
        told = True
        await asyncio.sleep(POLL_S)
