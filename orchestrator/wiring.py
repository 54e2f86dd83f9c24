"""The only place that constructs: from settings to working parts."""

from typing import Any

from orchestrator.settings import Settings
from sandbox import DockerConfig


def docker_config(settings: Settings, **changed: Any) -> DockerConfig:
    """The engine that the settings name; `changed` holds what a flag said, None where it said nothing."""
    wanted = {"runtime": settings.runtime, "warm": settings.warm}
    if settings.docker_host:
        wanted["host"] = settings.docker_host
    return DockerConfig(**wanted | {key: value for key, value in changed.items() if value is not None})
