"""Which disks a chamber reads from, so that the engine can slow one down that would keep its neighbours from theirs.

The engine wants a device by its path, on its own machine. Where that is another machine than ours, or the folders lie
on something that is no disk of this one, nobody can tell: reads are not limited then, and `doctor` says so.
"""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from sandbox.answers import Answer, items, text

_DEVICES = Path("/sys/dev/block")
# What engines warn of where the kernel has no such limit, with cgroup v1 and v2.
_UNABLE = ("read_bps_device", "io.max (rbps)")


def disks_read(info: Answer, inputs: Path) -> tuple[Sequence[str], str]:
    """Paths of the disks under images and inputs, or none and the reason why. `info` is the engine's own."""
    if any(word in str(warning) for warning in items(info, "Warnings") for word in _UNABLE):
        return (), "the engine's kernel knows no limit on reads"
    here = (platform.node(), platform.release())
    if (text(info, "Name"), text(info, "KernelVersion")) != here:
        return (), "the engine is on another machine, whose disks cannot be seen from here"
    found = sorted(set(disks_under([Path(text(info, "DockerRootDir") or "/"), inputs])))
    return (found, "") if found else ((), "images and inputs are on no disk of this machine")


def disks_under(places: Iterable[Path]) -> Iterable[str]:
    """The paths of the disks that these folders of this machine lie on, or will."""
    for place in places:
        existing = next((path for path in (place, *place.parents) if os.access(path, os.F_OK)), None)
        name = disk_name(existing.stat().st_dev) if existing else ""
        if name and Path("/dev", name).is_block_device():
            yield f"/dev/{name}"


def disk_name(device: int, devices: Path = _DEVICES) -> str:
    """The whole disk's name, for limits hold for no partition; empty for what is no disk."""
    place = devices / f"{os.major(device)}:{os.minor(device)}"
    if not place.exists():
        return ""
    place = place.resolve()
    # A slash in a device's name is an exclamation mark there.
    return (place.parent if (place / "partition").exists() else place).name.replace("!", "/")
