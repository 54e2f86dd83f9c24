"""Settings of each backend. The vendor's package is imported when a backend is opened, not before."""

from sandbox.config.docker import DockerConfig
from sandbox.config.modal import ModalConfig
from sandbox.config.runc import RuncConfig
from sandbox.config.skypilot import SkyPilotConfig

__all__ = ["DockerConfig", "ModalConfig", "RuncConfig", "SkyPilotConfig"]
