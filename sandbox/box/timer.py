"""The absolute end of all that is ours on a machine, even if somebody still thinks that it is in use.

`python -m sandbox.box.timer ENDS ROOT`: at that time, by the machine's clock, every chamber that an errand made is
ended and errands are told to end. On a machine of our own the operating system's own timer powers it off besides.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from sandbox.backends.docker.warden import end_all
from sandbox.box.work import OWNERS, Root

STEP_S = 30.0
GRACE_S = 5.0


def _errands(root: Path) -> list[int]:
    """Processes of this user that run an errand of this root."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"sandbox.box" in words and any(word.startswith(os.fsencode(root)) for word in words):
                found.append(int(entry.name))
    return found


async def end_everything(root: Root) -> None:
    for pid in _errands(root.folder):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    await asyncio.sleep(GRACE_S)
    owners = root.folder / OWNERS
    for owner in sorted(owners.iterdir()) if owners.is_dir() else []:
        await end_all(owner.name, root.config("runc").host)
        owner.unlink(missing_ok=True)


def main() -> None:
    ends, root = float(sys.argv[1]), Root(Path(sys.argv[2]).absolute())
    # In steps, by the wall clock: a machine that was suspended wakes up late, not early.
    while time.time() < ends:
        time.sleep(min(STEP_S, max(0.1, ends - time.time())))
    asyncio.run(end_everything(root))


if __name__ == "__main__":
    main()
