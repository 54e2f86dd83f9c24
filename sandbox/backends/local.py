"""What chambers on one's own machine have in common, made by an engine or by a runtime that we drive."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from sandbox.backend import Capabilities
from sandbox.errors import SandboxError
from sandbox.job import Enforcer
from sandbox.live import LiveChamber
from sandbox.posture import Posture, enforces_inodes


def capabilities_of(who: str, runtime: str, posture: Posture, *, gpu: bool = True) -> Capabilities:
    engine = {"memory", "cpus", "pids", "open_files", "work_bytes", *(["gpu"] if gpu else [])}
    controller = {"wall", "build", "grace", "bundle_bytes", "log_bytes", "output_bytes", "output_files"}
    controller |= {"frame_bytes", "frames"}
    enforced = dict.fromkeys(sorted(engine), Enforcer.ENGINE) | dict.fromkeys(sorted(controller), Enforcer.CONTROLLER)
    inodes = posture.work_inodes and enforces_inodes(runtime)
    enforced["work_inodes"] = Enforcer.ENGINE if inodes else Enforcer.NOBODY
    kernel = "gVisor, a kernel of its own" if runtime.startswith("runsc") else "namespaces on the host's kernel"
    return Capabilities(boundary=f"{who}: {kernel}", relay=True, live_log=True, stop=True, enforced=enforced)


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
