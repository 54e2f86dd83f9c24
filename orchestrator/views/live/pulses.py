"""What the orchestrator tells, about once a second, of an attempt that a model works on: `live/NODE.pulse`.

Whatever lies there is only looked at: what is no pulse, or an old one, is as if it were not there.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

# Written once a second; one that is older than this tells of something that is over.
OLD_S = 10.0
_MOST_BYTES = 4096
_WHOLE = 2**53


class Pulse(BaseModel, frozen=True, strict=True, allow_inf_nan=False):
    """`rate` is in tokens a second over the detector's window, None while that is not asked for; `floor` is what it
    must not fall below; `state` is the detector's word, `phase` what the attempt does.
    """

    tokens: int = Field(default=0, ge=0, le=_WHOLE)
    rate: float | None = Field(default=None, ge=0, le=_WHOLE)
    floor: float = Field(default=0.0, ge=0, le=_WHOLE)
    state: str = ""
    usd: float = Field(default=0.0, ge=0, le=1e9)
    phase: str = ""


class Pulses:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, nodes: Iterable[str], now: float) -> dict[str, Pulse]:
        """The present pulses, by node; most nodes have none."""
        found = {node: _read(self._folder / f"{node}.pulse", now) for node in nodes}
        return {node: pulse for node, pulse in found.items() if pulse}


def _read(path: Path, now: float) -> Pulse | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or now - found.st_mtime > OLD_S:
            return None
        return parse_pulse(os.read(descriptor, _MOST_BYTES + 1))
    finally:
        os.close(descriptor)


def parse_pulse(data: bytes) -> Pulse | None:
    if len(data) > _MOST_BYTES:
        return None
    try:
        return Pulse.model_validate_json(data)
    except ValidationError:
        return None
