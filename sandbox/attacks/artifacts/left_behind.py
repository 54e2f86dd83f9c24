"""Hostile things that a candidate builds in /work/out with real system calls, collected by the chamber's own tar."""

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sandbox.attacks.attack import QUICK, Arena, Finding, attack
from sandbox.attacks.forge import Seen, run_seen, stays_inside
from sandbox.job import Ending, Limits
from sandbox.wire.faults import Fault

COLLECTED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Left:
    """Source that builds something hostile, and the fault for which the outputs must be refused."""

    id: str
    title: str
    source: str
    fault: Fault
    limits: Limits = QUICK


LEFT = (
    Left(
        "T47",
        "result is a symlink to a host path",
        "os.symlink('/etc/passwd', out + '/result')\nmade = os.readlink(out + '/result')",
        Fault.ENTRY_KIND,
    ),
    Left(
        "T47",
        "the outputs folder itself is a symlink to /",
        "os.rmdir(out)\nos.symlink('/', out)\nmade = os.readlink(out)",
        Fault.ENTRY_KIND,
    ),
    Left(
        "T48",
        "hard link to another output",
        "open(out + '/a', 'w').write('a')\nos.link(out + '/a', out + '/b')\nmade = os.stat(out + '/b').st_nlink",
        Fault.ENTRY_KIND,
    ),
    Left(
        "T48",
        "a chain of symlinks, one of them a folder",
        "os.symlink('/', out + '/a')\nos.symlink('a/etc', out + '/b')\nos.symlink('b/passwd', out + '/c')\n"
        "made = os.path.realpath(out + '/c')",
        Fault.ENTRY_KIND,
    ),
    *(
        Left(
            "T49",
            f"a file name with {what}",
            f"name = {name!r}\nopen(os.path.join(out.encode(), name), 'w').write('x')\nmade = os.listdir(out.encode())",
            Fault.ENTRY_NAME,
        )
        for what, name in (
            ("a newline", b"a\nb"),
            ("an escape sequence", b"a\x1b[2Jb"),
            ("a leading dash", b"--checkpoint-action=exec=sh"),
            ("bad UTF-8", b"a\xff\xfeb"),
            ("a backslash", b"..\\b"),
            ("a direction override", "a\u202etxt.b".encode()),
        )
    ),
    Left(
        "T49",
        "a path longer than any that we accept",
        "os.chdir(out)\nfor _ in range(6):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\n"
        "open('deep', 'w').write('x')\nmade = len(os.getcwd())",
        Fault.ENTRY_NAME,
    ),
    Left(
        "T96",
        "3,000 folders in one another",
        "os.chdir(out)\nfor made in range(3_000):\n    os.mkdir('d')\n    os.chdir('d')",
        Fault.ENTRY_NAME,
        QUICK.model_copy(update={"work_inodes": 8_192}),
    ),
    Left(
        "T50",
        "FIFO as a result",
        "os.mkfifo(out + '/result')\nmade = oct(os.lstat(out + '/result').st_mode)",
        Fault.ENTRY_KIND,
    ),
    Left(
        "T50",
        "the outputs folder itself is a FIFO",
        "os.rmdir(out)\nos.mkfifo(out)\nmade = oct(os.lstat(out).st_mode)",
        Fault.ARCHIVE_TRUNCATED,
    ),
    Left(
        "T52",
        "a sparse file of a terabyte",
        "open(out + '/big', 'w').truncate(1 << 40)\nmade = os.stat(out + '/big').st_size",
        Fault.TOO_MANY_BYTES,
    ),
    Left(
        "T52",
        "outputs over their cap in bytes",
        "open(out + '/big', 'wb').write(bytes(200_000))\nmade = os.stat(out + '/big').st_size",
        Fault.TOO_MANY_BYTES,
        QUICK.model_copy(update={"output_bytes": 100_000}),
    ),
    Left(
        "T52",
        "outputs over their cap in entries",
        "[open(out + f'/{n}', 'w').close() for n in range(200)]\nmade = len(os.listdir(out))",
        Fault.TOO_MANY_FILES,
        QUICK.model_copy(update={"output_files": 100}),
    ),
)

_BEFORE = "import os, time\nout = '/work/out'\n"
# The log travels beside the outputs: it gets a moment to be heard before they are refused.
_AFTER = "\nprint('made', repr(made), flush=True)\ntime.sleep(0.4)\n"


def refused(seen: Seen, fault: Fault, took: float, ran: bool) -> Finding:
    """The outputs were refused for this reason, in time, nothing was accepted and the chamber is gone."""
    outcome = seen.outcome
    blocked = (
        outcome.ending is Ending.OUTPUT_REFUSED
        and outcome.reason.startswith(fault)
        and not outcome.outputs
        and stays_inside(outcome.outputs)
        and took < COLLECTED_WITHIN_S
        and seen.gone
    )
    return Finding(ran, ran and blocked, str(outcome.ending), outcome.reason[:120])


def _attempt(left: Left) -> Callable[[Arena], Coroutine[Any, Any, Finding]]:
    async def attempt(arena: Arena) -> Finding:
        started = time.monotonic()
        seen = await run_seen(arena, _BEFORE + left.source + _AFTER, limits=left.limits)
        return refused(seen, left.fault, time.monotonic() - started, "made " in seen.log)

    return attempt


for _left in LEFT:
    attack(_left.id, _left.title)(_attempt(_left))


@attack("T50", "a socket as a result")
async def socket_left(arena: Arena) -> Finding:
    """tar leaves sockets out with a warning: no hang, and no entry for it."""
    source = (
        "import socket, os\nsocket.socket(socket.AF_UNIX).bind('/work/out/result')\n"
        "open('/work/out/plain', 'w').write('x')\nprint('made', oct(os.stat('/work/out/result').st_mode), flush=True)"
    )
    seen = await run_seen(arena, source)
    ending = seen.outcome.ending
    kept = dict(seen.outcome.outputs)
    harmless = (ending is Ending.COMPLETED and kept == {"plain": b"x"}) or ending is Ending.OUTPUT_REFUSED
    return Finding("made 0o14" in seen.log, harmless and seen.gone, str(ending), f"kept {kept}")


@attack(
    "T51", "device nodes made in the outputs", runsc="the sentry lets anyone make a node; it leads to the sentry alone"
)
async def devices(arena: Arena) -> Finding:
    """A candidate cannot make a block or character device or, in gVisor, not open what lies behind; none is taken."""
    seen = await run_seen(arena, MAKE_DEVICES)
    ending = seen.outcome.ending
    made, opened = seen.log.count("made "), seen.log.count("opened ")
    allowed = made == 0 and ending is Ending.COMPLETED
    if arena.is_gvisor and made:
        allowed = ending is Ending.OUTPUT_REFUSED and seen.outcome.reason.startswith(Fault.ENTRY_KIND)
    blocked = allowed and not opened and not seen.outcome.outputs and seen.gone
    return Finding(f"tried {len(DEVICES)}" in seen.log, blocked, str(ending), f"{made} made, {opened} opened")


# The first disk, physical memory, the kernel's log, KVM.
DEVICES = (("S_IFBLK", 8, 0), ("S_IFCHR", 1, 1), ("S_IFCHR", 1, 11), ("S_IFCHR", 10, 232))
MAKE_DEVICES = f"""
import os, stat
devices = {DEVICES!r}
for kind, major, minor in devices:
    path = f"/work/out/{{major}}-{{minor}}"
    try:
        os.mknod(path, getattr(stat, kind) | 0o666, os.makedev(major, minor))
        print("made", path, flush=True)
        os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        print("opened", path, flush=True)
    except OSError as error:
        print(error, flush=True)
print("tried", len(devices), flush=True)
"""
