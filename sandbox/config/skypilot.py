"""Settings of clusters that SkyPilot rents."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from sandbox.backend import Capabilities
from sandbox.baking import BakedImage, ImageSpec
from sandbox.config.docker import default_docker_host
from sandbox.inputs import default_inputs_folder
from sandbox.job import Gpu, Limits
from sandbox.link import Deadlines
from sandbox.price import Terms
from sandbox.tenancy import default_owners_folder
from sandbox.units import Duration

if TYPE_CHECKING:
    from sandbox.backends.skypilot.backend import SkyPilotBackend

_OPENING_S = 900.0  # a machine, its runtime and the image come first
_CLOSING_S = 120.0


class SkyPilotConfig(BaseModel, extra="forbid", frozen=True):
    """A machine is the boundary, and our own hardened container runs inside it.

    `infra` is SkyPilot's own word for where: `aws`, `gcp/us-central1`, `slurm/cluster`. `warm` keeps one
    cluster for many trials, one container each; else each trial gets a cluster of its own. `usd_per_hour` is the most
    that a machine may cost. `image_host` is the local engine whose images are shipped.
    """

    kind: Literal["skypilot"] = "skypilot"
    infra: str = Field(pattern=r"^[a-z0-9][A-Za-z0-9._/*-]{0,127}$")
    warm: int = Field(default=0, ge=0, le=64)
    autodown: Duration = Field(default=600.0, ge=60, le=86_400)
    lifetime: Duration = Field(default=14_400.0, ge=300, le=86_400 * 7)
    usd_per_hour: float | None = Field(default=None, gt=0)
    runtime: str = Field(default="runc", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    image_host: str = Field(default_factory=default_docker_host)
    inputs_folder: Path = Field(default_factory=default_inputs_folder)
    owners_folder: Path = Field(default_factory=default_owners_folder)
    deadlines: Deadlines = Field(default_factory=lambda: Deadlines(provision=_OPENING_S, upload=300.0, collect=300.0))

    @property
    def terms(self) -> Terms:
        """Until autodown has ended the machine, it is paid for."""
        return Terms(
            opening_s=self.deadlines.provision, closing_s=_CLOSING_S + self.autodown, quiet_s=15.0, answer_s=10.0
        )

    def admit(self, gpu: Gpu | None = None) -> Capabilities:
        """What a machine is there, told without asking anybody.

        Raises Refused for a place that is no boundary, and for a GPU without its kind. Which kinds there are only
        SkyPilot knows.
        """
        from sandbox.backends.skypilot.backend import capabilities_of
        from sandbox.backends.skypilot.rent import ask_for

        ask_for(Limits(gpu=gpu))
        return capabilities_of(self)

    def refuse_without_programs(self) -> None:
        """`connect` does so, too; a caller that opens other things first asks before. Raises Refused."""
        from sandbox.backends.skypilot.ssh import refuse_without_programs

        refuse_without_programs()

    async def connect(self) -> "SkyPilotBackend":
        """Raises Unavailable when SkyPilot's server does not answer, Refused for a place that is no boundary."""
        from sandbox.backends.skypilot.backend import SkyPilotBackend

        return await SkyPilotBackend.connect(self)

    @staticmethod
    async def reap_everywhere(owners_folder: Path | None = None) -> tuple[list[str], list[str]]:
        """End what owners that are gone left at any place: SkyPilot lists all of them together. Raises like connect.

        What was ended, and what could not be.
        """
        from sandbox.backends.skypilot.backend import reap_everywhere

        return await reap_everywhere(owners_folder)

    async def bake(self, spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
        """Baked on the local engine and shipped from there: no registry is needed."""
        from sandbox.backends.docker.bake import bake

        return await bake(self.image_host, spec, progress)
