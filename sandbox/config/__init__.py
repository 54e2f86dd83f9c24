"""Backend settings as a tagged union. The vendor's package is imported when a backend is opened, not before."""

from typing import Annotated

from pydantic import Field

from sandbox.config.docker import DockerConfig
from sandbox.config.modal import ModalConfig
from sandbox.config.skypilot import SkyPilotConfig

BackendConfig = Annotated[DockerConfig | ModalConfig | SkyPilotConfig, Field(discriminator="kind")]

__all__ = ["BackendConfig", "DockerConfig", "ModalConfig", "SkyPilotConfig"]
