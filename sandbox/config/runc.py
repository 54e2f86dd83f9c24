"""Settings of chambers without a daemon."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from sandbox.baking import BakedImage, ImageSpec
from sandbox.config.docker import default_docker_host
from sandbox.config.own_engine import state_folder
from sandbox.inputs import default_inputs_folder
from sandbox.link import Deadlines
from sandbox.price import LOCAL, Rates
from sandbox.units import Size

if TYPE_CHECKING:
    from sandbox.backends.runc.backend import RuncBackend


def default_images_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "blastdoor" / "images"


def default_chambers_folder() -> Path:
    return state_folder() / "runc"


class RuncConfig(BaseModel, extra="forbid", frozen=True):
    """An OCI runtime of this machine, driven by us.

    `folder` is for what chambers need while they live, `images_folder` for images that were unpacked. `image_host` is
    the Docker engine that is asked for images which were not loaded from disk; none has to run. `disk_read` is what one
    chamber may read from a disk in a second; 0 sets no limit.
    """

    kind: Literal["runc"] = "runc"
    runtime: Literal["runc", "crun", "runsc"] = "runc"
    warm: int = Field(default=0, ge=0, le=256)
    disk_read: Size = Field(default=64 * 1024**2, ge=0, le=2**44)
    folder: Path = Field(default_factory=default_chambers_folder)
    images_folder: Path = Field(default_factory=default_images_folder)
    image_host: str = Field(default_factory=default_docker_host)
    inputs_folder: Path = Field(default_factory=default_inputs_folder)
    deadlines: Deadlines = Field(default_factory=Deadlines)
    rates: Rates = LOCAL

    async def connect(self) -> "RuncBackend":
        """Raises Refused where this machine lacks something that a chamber needs: what to install or set."""
        from sandbox.backends.runc.backend import RuncBackend

        return await RuncBackend.connect(self)

    async def bake(self, spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
        """A spec that adds nothing is an image as it is. All else is baked where its base is: by the Docker engine that
        has it, else without a daemon, by runc.
        """
        from sandbox.backends.runc.images import Images

        images = Images(self.images_folder, self.image_host)
        try:
            if spec.is_empty:
                return BakedImage(spec.base, f"sha256:{(await images.image(spec.base)).id}")
            by_engine = await images.is_of_engine(spec.base)
        finally:
            images.close()
        if by_engine:
            from sandbox.backends.docker.bake import bake

            return await bake(self.image_host, spec, progress)
        return await self._bake_here(spec, progress)

    def for_images(self) -> "RuncConfig":
        """gVisor keeps a candidate in; no candidate is beside what is built or baked."""
        runtime = "runc" if self.runtime == "runsc" else self.runtime
        return self.model_copy(update={"runtime": runtime, "warm": 0})

    async def _bake_here(self, spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
        from sandbox.backends.runc.bake import bake

        backend = await self.for_images().connect()
        try:
            return await bake(backend, spec, progress)
        finally:
            await backend.close()
