"""What is asked of SkyPilot, in its own words."""

import math
from typing import Any

from sandbox.backends.skypilot.places import SWITCHABLE, Kind, admitted
from sandbox.backends.skypilot.provisioner import Ask, Wanted

NO_UPLOAD = {cloud: {"remote_identity": "NO_UPLOAD"} for cloud in SWITCHABLE}


def resources(place: str, ask: Ask, most_usd_per_hour: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"infra": place, "cpus": f"{ask.cpus}+", "memory": f"{ask.memory_gib}+"}
    if ask.gpu:
        found["accelerators"] = {ask.gpu.kind: ask.gpu.count}
    if most_usd_per_hour is not None:
        found["max_hourly_cost"] = most_usd_per_hour
    return found


def task_of(place: str, wanted: Wanted, now: float) -> dict[str, Any]:
    """A launch in SkyPilot's own words. No workdir, no file mounts, no secrets: nothing of this machine goes along."""
    idle = {"idle_minutes": max(1, math.ceil(wanted.idle_s / 60)), "down": True, "wait_for": "none"}
    minutes = max(1, math.ceil((wanted.ends - now) / 60))
    task: dict[str, Any] = {
        "resources": resources(place, wanted.ask, wanted.most_usd_per_hour) | {"autostop": idle},
    }
    if admitted(place).kind is Kind.NODE:
        task["config"] = {"slurm": {"sbatch_options": {"time": str(minutes)}}}
    else:
        # By the machine's own clock, whenever it comes up. Our own setup looks whether it is set.
        task["setup"] = f'sudo -n shutdown -P "+$(( ({int(wanted.ends)} - $(date +%s) + 59) / 60 ))"'
    return task
