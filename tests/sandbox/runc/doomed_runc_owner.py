"""Owners that kill themselves at a named step of making and running a chamber; run by test_runc_crash.py.

One process loads everything once and forks one owner a step: each says who it is, then dies.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sandbox import Bundle, Channel, Job, Mode, RuncConfig
from sandbox.backends.runc import keeper, runtime
from sandbox.backends.runc.backend import RuncBackend
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import Estate
from sandbox.conformance.check import Ear

# Keeps PID 1's stdin open from inside, so that the end of the owner's side is never seen there.
HOLDING = "exec 9<>/proc/1/fd/3 && "
HOSTILE = "echo deaf >&2; trap '' TERM HUP; while :; do sleep 0.1; done"


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_after(home: Any, name: str, first: int | None = None) -> None:
    """Of `first`, a process, the owner rids itself before."""
    original = getattr(home, name)

    def then_die(*words: Any) -> Any:
        original(*words)
        if first:
            os.kill(first, signal.SIGKILL)
        die()

    setattr(home, name, then_die)


class Unwaited(subprocess.Popen[bytes]):
    """The owner dies as soon as the runtime is started: before, while or after it makes the chamber."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        die()


async def nothing_is_said(_: Channel) -> None:
    await asyncio.sleep(60)


async def own(step: str, chambers: RuncConfig) -> None:
    keeper.TURN_S = 1
    backend = await RuncBackend.connect(chambers)
    sys.stdout.write(f"{step} {backend.owner} {backend.warden_pid}\n")
    sys.stdout.flush()
    match step:
        case "connected":
            die()
        case "folder":
            dying_after(Estate, "chamber")
        case "lobby":
            dying_after(Cgroups, "lobby")
        case "starting":
            vars(subprocess)["Popen"] = Unwaited
        case "started":
            dying_after(runtime.Runtime, "start")
        case "unguarded":
            dying_after(runtime.Runtime, "start", backend.warden_pid)
        case "forgotten":
            dying_after(Ear, "line", backend.warden_pid)
    # gVisor opens no pipe of PID 1's for anybody; there PID 1 waits for a program that is called, and is deaf.
    called = step == "forgotten" and chambers.runtime == "runsc"
    line = HOSTILE if called else HOLDING + HOSTILE
    job = Job(command=("sh", "-c", line), mode=Mode.RELAY if called else Mode.BATCH)
    async with await backend.open(job) as chamber:
        if step == "run":
            asyncio.get_running_loop().call_later(0.5, die)
        await chamber.run(Bundle({}), listener=Ear(), talk=nothing_is_said if called else None)


if __name__ == "__main__":
    config = RuncConfig.model_validate({"runtime": sys.argv[1], "folder": Path(sys.argv[2])})
    for wanted in sys.argv[3:]:
        if not (child := os.fork()):
            try:
                asyncio.run(own(wanted, config))
            finally:
                os._exit(1)
        os.waitpid(child, 0)
