"""Settings of a Docker engine."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from sandbox.baking import BakedImage, ImageSpec
from sandbox.config.own_engine import own_engine
from sandbox.inputs import default_inputs_folder
from sandbox.link import Deadlines
from sandbox.price import LOCAL, Rates
from sandbox.units import Duration, Size

if TYPE_CHECKING:
    from sandbox.backends.docker.backend import DockerBackend


def default_docker_host() -> str:
    """That of DOCKER_HOST, else the one that `blastdoor up` started, else the one on the default socket."""
    if named := os.environ.get("DOCKER_HOST"):
        return named
    started = own_engine()
    return started.host if started and started.listens() else "unix:///var/run/docker.sock"


class DockerConfig(BaseModel, extra="forbid", frozen=True):
    """A Docker engine: the one that is named, else that of `default_docker_host`.

    `disk_read` is what one chamber may read from a disk in a second; 0 sets no limit.
    """

    kind: Literal["docker"] = "docker"
    host: str = Field(default_factory=default_docker_host)
    runtime: str = Field(default="runc", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    warm: int = Field(default=0, ge=0, le=256)
    disk_read: Size = Field(default=64 * 1024**2, ge=0, le=2**44)
    lease: Duration = Field(default=60.0, ge=1, le=3600)
    inputs_folder: Path = Field(default_factory=default_inputs_folder)
    deadlines: Deadlines = Field(default_factory=Deadlines)
    rates: Rates = LOCAL

    async def connect(self) -> "DockerBackend":
        from sandbox.backends.docker.backend import DockerBackend

        return await DockerBackend.connect(self)

    async def bake(self, spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
        """The image that a spec describes, made when it is not there yet; `progress` hears one line a step.

        Raises Refused when the spec cannot be met, Unavailable when the engine or a package archive fails.
        """
        from sandbox.backends.docker.bake import bake

        return await bake(self.host, spec, progress)
