"""Too much memory, too many bytes on a file system that is memory, too many inodes, the disk behind the root."""

import re

from sandbox.attacks.attack import QUICK, Arena, Finding, attack, judged
from sandbox.attacks.forge import Seen, run_seen
from sandbox.job import Ending

MIB = 1 << 20

HOG = """
import os
held = []
for step in range(1, 41):
    held.append(bytearray(os.urandom(4096)) * (10 << 8))
    os.write(2, f"holds {step * 10} MiB\\n".encode())
"""


def _last(pattern: str, log: str) -> int:
    return max(map(int, re.findall(pattern, log, re.MULTILINE)), default=0)


def _held_to_memory(seen: Seen) -> bool:
    """The memory limit ended it: a program on runc, the whole sandbox on runsc, where only the log is left to tell."""
    return seen.outcome.ending is Ending.OUT_OF_MEMORY and seen.gone


@attack("T14", "memory past the limit, and swap", runsc="out of memory ends the whole sandbox: the sentry is killed")
async def memory(arena: Arena) -> Finding:
    """A program over its memory limit dies of it, swap or not, and its ending says so."""
    return hog_finding(await run_seen(arena, HOG))


def hog_finding(seen: Seen) -> Finding:
    held = _last(r"^holds (\d+) MiB$", seen.log)
    blocked = held * MIB <= QUICK.memory and _held_to_memory(seen)
    return Finding(held > 0, blocked, str(seen.outcome.ending), f"held {held} of 400 MiB under {QUICK.memory >> 20}")


FILL = """
import errno, os, probe
written, refusals = {}, {}
for folder in ("/work", "/tmp", "/dev/shm"):
    path, size = f"{folder}/fill", 0
    with open(path, "wb", buffering=0) as file:
        try:
            while size < 20 << 20:
                size += file.write(bytes(1 << 18))
        except OSError as error:
            refusals[folder] = errno.errorcode[error.errno]
    written[folder] = size
    os.unlink(path)
probe.tell(written=written, refusals=refusals)
"""


@attack("T15", "filling every writable file system")
async def fill(arena: Arena) -> Finding:
    """Each tmpfs takes its size and then answers ENOSPC; the ending is the program's own."""
    outcome = await arena.run(FILL, limits=QUICK.model_copy(update={"work_bytes": 8 * MIB}))
    finding = judged(
        outcome,
        lambda seen: (
            set(seen["refusals"].values()) == {"ENOSPC"}
            and len(seen["refusals"]) == 3
            and max(seen["written"].values()) <= 8 * MIB
        ),
    )
    return finding if outcome.ending is Ending.COMPLETED else Finding(finding.ran, False, finding.ending, "ending")


@attack("T15", "dying of a full work directory")
async def fill_and_fail(arena: Arena) -> Finding:
    """A program that fails with its work directory full gets that as its ending."""
    source = (
        "import os\nos.write(2, b'filling\\n')\nfile = open('/work/fill', 'wb', buffering=0)\n"
        "for _ in range(64):\n    file.write(bytes(1 << 18))\n    open('/work/fill2', 'ab').write(bytes(1 << 16))"
    )
    seen = await run_seen(arena, source, limits=QUICK.model_copy(update={"work_bytes": 8 * MIB}))
    blocked = seen.outcome.ending is Ending.WORK_FULL and seen.gone
    return Finding("filling" in seen.log, blocked, str(seen.outcome.ending), f"exit code {seen.outcome.exit_code}")


@attack("T15", "tmpfs as memory beyond the memory limit", runsc="out of memory ends the whole sandbox")
async def tmpfs_as_memory(arena: Arena) -> Finding:
    """Files in memory are charged to the chamber: a large tmpfs does not lift the memory limit."""
    source = (
        "import os\nfor count in range(1, 81):\n    open(f'/work/{count}', 'wb').write(bytes(1 << 20))\n"
        "    os.write(2, f'wrote {count} MiB\\n'.encode())"
    )
    limits = QUICK.model_copy(update={"memory": 64 * MIB, "work_bytes": 256 * MIB})
    return tmpfs_finding(await run_seen(arena, source, limits=limits))


def tmpfs_finding(seen: Seen) -> Finding:
    wrote = _last(r"^wrote (\d+) MiB$", seen.log)
    blocked = wrote < 80 and _held_to_memory(seen)
    return Finding(wrote > 0, blocked, str(seen.outcome.ending), f"wrote {wrote} of 80 MiB under 64 MiB of memory")


INODES = 20_000


@attack(
    "T16",
    "inode bomb",
    runsc="gVisor has no limit on inodes; their memory is charged, so the memory limit is the bound",
)
async def inodes(arena: Arena) -> Finding:
    """Empty files end at the limit on inodes or, where none is enforced, at the memory limit."""
    # Inodes of gVisor are small; a long link target makes each cost what a few of them would.
    target = "x" * (4000 if arena.is_gvisor else 1)
    source = (
        f"import os, sys\nos.mkdir('/work/bomb')\nfor count in range(1, {INODES} + 1):\n"
        f"    try:\n        os.symlink({target!r}, f'/work/bomb/{{count}}')\n"
        "    except OSError as error:\n        print('refused', count, error.errno, flush=True)\n        sys.exit(3)\n"
        "    if count % 500 == 0:\n        os.write(2, f'made {count}\\n'.encode())"
    )
    limits = QUICK.model_copy(update={"memory": 96 * MIB, "work_bytes": 256 * MIB})
    return inodes_finding(await run_seen(arena, source, limits=limits), arena.is_gvisor, limits.work_inodes)


def inodes_finding(seen: Seen, is_gvisor: bool, limit: int) -> Finding:
    made = _last(r"^made (\d+)$", seen.log)
    full = seen.outcome.ending is Ending.WORK_FULL and seen.gone and made <= limit
    blocked = made < INODES and (_held_to_memory(seen) if is_gvisor else full)
    return Finding(made > 0, blocked, str(seen.outcome.ending), f"{made} of {INODES} inodes")


DISK = """
import ctypes, errno, os, stat, probe
mounts = {line.split()[1] for line in open("/proc/mounts") if line.split()[2] in ("tmpfs", "mqueue", "proc", "sysfs")}
tried, written = 0, []
for folder, folders, _ in os.walk("/"):
    if folder in mounts:
        folders[:] = []
        continue
    # Also where rights would refuse: which of the two refuses must not matter, but the open folders count.
    if folder.count("/") <= 2 or os.stat(folder).st_mode & stat.S_IWOTH:
        tried += 1
        if not probe.denied(lambda: os.close(os.open(f"{folder}/planted", os.O_CREAT | os.O_WRONLY))):
            written.append(folder)
probe.libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
with open("/work/big", "wb") as file:
    result = probe.libc.fallocate(file.fileno(), 0, 0, 1 << 40)
    refusal = errno.errorcode.get(ctypes.get_errno(), "")
os.unlink("/work/big")
probe.tell(tried=tried, written=written, fallocate=result, refusal=refusal)
"""


@attack("T17", "disk fill: writing to the root, a terabyte by fallocate")
async def disk(arena: Arena) -> Finding:
    """No folder of the root can be written, world-writable ones included, and a terabyte is refused at once."""
    outcome = await arena.run(DISK)
    return judged(
        outcome,
        lambda seen: (
            seen["tried"] > 10 and not seen["written"] and seen["fallocate"] == -1 and seen["refusal"] == "ENOSPC"
        ),
    )


BUFFERS = """
import os, socket
limit = 320 << 20
for name, family, kind in (("netlink", 16, 3), ("udp", 2, 2), ("unix", 1, 2)):
    held, total, refused = [], 0, 0
    os.write(2, f"at {name}\\n".encode())
    while len(held) < 60 and total < limit // 3:
        try:
            one = socket.socket(family, kind)
            one.bind({"netlink": (0, 0), "udp": ("127.0.0.1", 0), "unix": f"/work/tmp/{len(held)}"}[name])
            one.setblocking(False)
            for _ in range(64):
                total += one.sendto(bytes(32 << 10), one.getsockname())
        except BlockingIOError:
            pass
        except OSError as error:
            refused = error.errno
            break
        held.append(one)
    os.write(2, f"{name} held {total >> 20} MiB, error {refused}\\n".encode())
    for one in held:
        one.close()
"""


@attack(
    "T14",
    "memory held in socket buffers",
    runsc="inet is the sentry's own: what it buffers is the sandbox's memory, which is limited; netlink is judged",
)
async def socket_buffers(arena: Arena) -> Finding:
    """Kernel buffers that no memory limit counts cannot be had: those sockets do not open."""
    limits = QUICK.model_copy(update={"memory": 64 << 20, "open_files": 128})
    return buffers_finding(await run_seen(arena, BUFFERS, limits=limits), arena.is_gvisor)


def buffers_finding(seen: Seen, is_gvisor: bool) -> Finding:
    """A sandbox that died of what it buffered was held to its limit; on runc no limit counts what these two hold."""
    lines = re.findall(r"^(\w+) held (\d+) MiB, error (\d+)$", seen.log, re.MULTILINE)
    held = {name: (int(size), int(error)) for name, size, error in lines}
    size, error = held.get("netlink", (-1, 0))
    if is_gvisor:
        ran = "at netlink" in seen.log
        shut = _held_to_memory(seen) or (size == 0 and seen.outcome.ending is Ending.COMPLETED)
    else:
        ran = {"netlink", "udp"} <= set(held)
        ended = seen.outcome.ending is Ending.COMPLETED or _held_to_memory(seen)
        shut = ended and size == 0 and bool(error) and bool(held.get("udp", (0, 0))[1])
    return Finding(ran, ran and shut, str(seen.outcome.ending), "; ".join(map(" ".join, lines)) or "nothing was said")
