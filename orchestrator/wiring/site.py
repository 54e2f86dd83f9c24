"""Where chambers run, with all that a campaign needs to know of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.loop.jobs import Image
from orchestrator.task import ImageSpec
from sandbox import Backend, Input, Limits


@dataclass(frozen=True)
class Site:
    """`ceiling` says how many chambers of such limits fit at once; `name` is part of every fingerprint.

    `spare_s` is what a chamber can take beyond its job's own limits.
    """

    name: str
    backend: Backend
    bake: Callable[[ImageSpec], Awaitable[Image]]
    add_input: Callable[[str, Path], Input]
    usd_per_second: Callable[[Limits], float]
    ceiling: Callable[[Limits], int]
    spare_s: float = 100.0
