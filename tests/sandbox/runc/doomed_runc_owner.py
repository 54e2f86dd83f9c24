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

from sandbox import Bundle, Job, RuncConfig
from sandbox.backends.runc import runtime
from sandbox.backends.runc.backend import RuncBackend
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import Estate

# Keeps PID 1's stdin open from inside, so that the end of the owner's side is never seen there.
HOSTILE = "exec 9<>/proc/1/fd/0; trap '' TERM HUP; while :; do sleep 0.1; done"


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


async def own(step: str, chambers: RuncConfig) -> None:
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
    async with await backend.open(Job(command=("sh", "-c", HOSTILE))) as chamber:
        asyncio.get_running_loop().call_later(0.5, die)
        await chamber.run(Bundle({}))


if __name__ == "__main__":
    config = RuncConfig.model_validate({"runtime": sys.argv[1], "folder": Path(sys.argv[2])})
    for wanted in sys.argv[3:]:
        if not (child := os.fork()):
            try:
                asyncio.run(own(wanted, config))
            finally:
                os._exit(1)
        os.waitpid(child, 0)
