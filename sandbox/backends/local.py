"""What chambers on one's own machine have in common, made by an engine or by a runtime that we drive."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine
from typing import Any

from sandbox.backend import Capabilities
from sandbox.errors import SandboxError
from sandbox.job import Enforcer, Limits
from sandbox.link import Deadlines
from sandbox.live import LONGEST_WAIT_S, LiveChamber
from sandbox.posture import Posture, enforces_inodes

_ENDING_S = 60.0


def capabilities_of(who: str, runtime: str, posture: Posture, *, gpu: bool = True) -> Capabilities:
    engine = {"memory", "cpus", "pids", "open_files", "work_bytes", *(["gpu"] if gpu else [])}
    controller = {"wall", "build", "grace", "bundle_bytes", "log_bytes", "output_bytes", "output_files"}
    controller |= {"frame_bytes", "frames"}
    enforced = dict.fromkeys(sorted(engine), Enforcer.ENGINE) | dict.fromkeys(sorted(controller), Enforcer.CONTROLLER)
    inodes = posture.work_inodes and enforces_inodes(runtime)
    enforced["work_inodes"] = Enforcer.ENGINE if inodes else Enforcer.NOBODY
    kernel = "gVisor, a kernel of its own" if runtime.startswith("runsc") else "namespaces on the host's kernel"
    return Capabilities(boundary=f"{who}: {kernel}", relay=True, live_log=True, stop=True, enforced=enforced)


def longest_life(limits: Limits, deadlines: Deadlines) -> float:
    """Of a chamber in seconds, by whole hours: what it may wait for a job, then what any job of these limits takes."""
    busy_s = deadlines.provision + deadlines.upload + deadlines.collect_at_most
    busy_s += limits.build + limits.wall + limits.grace + _ENDING_S
    return (1 + math.ceil(busy_s / LONGEST_WAIT_S)) * LONGEST_WAIT_S


async def made_or_ended(
    under_way: set[asyncio.Task[LiveChamber]], making: Coroutine[Any, Any, LiveChamber]
) -> LiveChamber:
    """Shielded: a cancelled caller must not leave a chamber. `under_way` has it for as long as it is being made."""
    task = asyncio.create_task(making)
    under_way.add(task)
    task.add_done_callback(under_way.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(SandboxError):  # its own failure was cleaned up where it happened
            await (await task).kill()
        raise
