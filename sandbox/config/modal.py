"""Settings of Modal's sandboxes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from sandbox.backend import Capabilities
from sandbox.baking import BakedImage, ImageSpec
from sandbox.inputs import default_inputs_folder
from sandbox.job import Gpu
from sandbox.link import Deadlines
from sandbox.price import MODAL, Rates, Terms
from sandbox.tenancy import default_owners_folder
from sandbox.units import Duration

if TYPE_CHECKING:
    from sandbox.backends.modal.backend import ModalBackend

_OPENING_S = 300.0  # image and machine come first
_CLOSING_S = 60.0


class ModalConfig(BaseModel, extra="forbid", frozen=True):
    """Who pays is said the way Modal's own tools are told: MODAL_TOKEN_ID and MODAL_TOKEN_SECRET, or ~/.modal.toml.

    Tokens are read by the backend when it connects and are no part of these settings, which are shown and recorded.
    """

    kind: Literal["modal"] = "modal"
    app: str = Field(default="blastdoor", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    environment: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    base: str = Field(default="python:3.11-slim-bookworm", pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$")
    warm: int = Field(default=0, ge=0, le=64)
    warm_idle: Duration = Field(default=120.0, ge=1, le=3600)
    inputs_folder: Path = Field(default_factory=default_inputs_folder)
    owners_folder: Path = Field(default_factory=default_owners_folder)
    deadlines: Deadlines = Field(default_factory=lambda: Deadlines(provision=_OPENING_S, upload=120.0, collect=120.0))
    rates: Rates = MODAL

    @property
    def terms(self) -> Terms:
        """A sandbox whose end is not confirmed is charged until its lifetime ends it, the time to wait included."""
        waiting_s = self.warm_idle if self.warm else 0.0
        return Terms(opening_s=self.deadlines.provision, closing_s=_CLOSING_S + waiting_s, quiet_s=5.0)

    def admit(self, gpu: Gpu | None) -> Capabilities:
        """What a sandbox with that GPU is, told without asking anybody. Raises Refused for one that Modal has not."""
        from sandbox.backends.modal import guest, order

        order.gpu(self, gpu)
        return guest.capabilities()

    async def connect(self) -> "ModalBackend":
        """Raises Unavailable when Modal does not answer or does not know us, Refused when the package is missing."""
        from sandbox.backends.modal.backend import ModalBackend

        return await ModalBackend.connect(self)

    async def bake(self, spec: ImageSpec, progress: Callable[[str], None]) -> BakedImage:
        """The image that a spec describes, made by Modal when it is not there yet; raises like DockerConfig.bake."""
        from sandbox.backends.modal.bake import bake

        return await bake(self, spec, progress)
