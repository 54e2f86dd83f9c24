"""Group H, the walls: the engine's socket, privileges, mounts, other processes, the kernel's settings.

Where a defence has two layers, a probe asks for each: what the file system's permissions refuse, a mount may refuse
too, and only a look at the mount shows that it does. Settings of the kernel are opened for writing, never written.
"""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

from sandbox.attacks.attack import Arena, Finding, attack, judged, told
from sandbox.environment import child_environment
from sandbox.posture import MASKED_PATHS

SOCKETS = """
import os, socket, stat
from probe import *
PLACES = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"]
PLACES += [os.environ["ENGINE"]] if os.environ["ENGINE"] else []
def connect(path):
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(1)
        door.connect(path)
found, looked = [], 0
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if (folder, name) not in (("/", "proc"), ("/", "sys"), ("/", "usr"))]
    looked += len(files)
    for name in files:
        path = os.path.join(folder, name)
        try:
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                found.append(path)
        except OSError:
            pass
heard = [line.split()[7] for line in open("/proc/net/unix").readlines()[1:] if len(line.split()) > 7]
tell(looked=looked, found=found, heard=heard[:20], tried={path: denied(lambda: connect(path)) for path in PLACES})
"""


@attack("T01", "find the engine's socket", runsc="/proc/net/unix is the sentry's own, so it lists the chamber only")
async def engine_socket(arena: Arena) -> Finding:
    """No socket lies in the chamber, none of another is heard of, and no known path to an engine answers."""
    host = arena.host.socket or os.environ.get("DOCKER_HOST", "")
    path = host.removeprefix("unix://") if host.startswith("unix://") else ""
    outcome = await arena.run(SOCKETS, env={"ENGINE": path})
    return judged(
        outcome,
        lambda seen: seen["looked"] > 0 and not seen["found"] and not seen["heard"] and all(seen["tried"].values()),
    )


CAPABILITIES = """
from probe import *
lines = [line.split() for line in open("/proc/self/status") if line.startswith("Cap")]
tell(sets={name.strip(":"): value for name, value in lines})
"""


@attack("T02", "hold a capability", runsc="the sentry shows no ambient set; the other four are judged")
async def capabilities(arena: Arena) -> Finding:
    """No set of capabilities holds anything, not even the bounding set from which more could be regained."""
    outcome = await arena.run(CAPABILITIES)
    wanted = {"CapInh", "CapPrm", "CapEff", "CapBnd"}
    return judged(
        outcome,
        lambda seen: wanted <= set(seen["sets"]) and not any(int(value, 16) for value in seen["sets"].values()),
    )


SET_USER_ID = """
import os, subprocess
from probe import *
planted = "/usr/local/bin/planted-suid"
done = subprocess.run([planted], capture_output=True, text=True)
tell(mode=oct(os.stat(planted).st_mode), owner=os.stat(planted).st_uid, said=done.stdout.strip())
"""


@attack("T03", "regain root by a set-user-ID program", runsc="the sentry ignores the bit, whatever the flags say")
async def set_user_id(arena: Arena) -> Finding:
    """A planted program, owned by root and with the bit set, runs, and does not run as root."""
    outcome = await arena.run(SET_USER_ID)
    seen = told(outcome)
    said = str(seen.get("said", ""))
    ran = seen.get("owner") == 0 and int(seen["mode"], 8) & 0o4000 != 0 and said.startswith("uid=")
    return Finding(ran, ran and "uid=0(" not in said, str(outcome.ending), f"it said {said}")


WRITABLE_MOUNTS = """
import os
from probe import *
options = {}
for line in open("/proc/mounts"):
    _, place, _, flags, *_ = line.split()
    options[place] = flags.split(",")
def device(path, kind, major, minor):
    made = denied(lambda: os.mknod(path, kind | 0o666, os.makedev(major, minor)))
    return {"made": not made, "error": made or denied(lambda: os.close(os.open(path, os.O_RDONLY)))}
places = ["/work", "/tmp", "/dev/shm"]
kinds = {"mem": (0o20000, 1, 1), "kvm": (0o20000, 10, 232), "sda": (0o60000, 8, 0), "vda": (0o60000, 254, 0)}
tell(flags={place: [flag for flag in ("nosuid", "nodev") if flag in options[place]] for place in places},
    devices={name: device("/work/" + name, *kind) for name, kind in kinds.items()})
"""


@attack(
    "T03",
    "keep a set-user-ID program or a device on a writable mount",
    runsc="the sentry's mount table shows neither nosuid nor nodev, and it makes the nodes; it ignores the bit (the"
    " other row) and knows no device of the host: opening a node says ENXIO, and that is judged",
)
async def writable_mounts(arena: Arena) -> Finding:
    """Whatever can be written to is mounted nosuid and nodev, and no device of the host can be opened there."""

    def blocked(seen: dict[str, Any]) -> bool:
        devices = seen["devices"].values()
        if arena.is_gvisor:
            return all(device["error"] for device in devices)
        flagged = all(flags == ["nosuid", "nodev"] for flags in seen["flags"].values())
        return flagged and not any(device["made"] for device in devices)

    return judged(await arena.run(WRITABLE_MOUNTS), blocked)


MOUNTS = """
import ctypes, os
from probe import *
os.makedirs("/work/tmp/m", exist_ok=True)
text = ctypes.c_char_p
def mount(kind, options=None):
    return syscall(165, 40, text(b"none"), text(b"/work/tmp/m"), text(kind), 0, text(options) if options else None)[1]
tried = {"tmpfs": mount(b"tmpfs"), "proc": mount(b"proc"), "cgroup": mount(b"cgroup", b"memory"),
    "cgroup2": mount(b"cgroup2"),
    "bind": syscall(165, 40, text(b"/proc"), text(b"/work/tmp/m"), None, 4096, None)[1],
    "remount": syscall(165, 40, None, text(b"/"), None, 32, None)[1],
    "umount2": syscall(166, 39, text(b"/proc/sys"), 2)[1],
    "pivot_root": syscall(155, 41, text(b"/work"), text(b"/work/tmp"))[1],
    "fsopen": syscall(430, 430, text(b"tmpfs"), 0)[1],
    "open_tree": syscall(428, 428, -100, text(b"/"), 1)[1]}
writable, looked = [], 0
for folder, folders, files in os.walk("/sys/fs/cgroup"):
    if looked > 3000:
        break
    looked += len(files)
    writable += [folder + "/" + name for name in files if os.access(folder + "/" + name, os.W_OK)]
    if not denied(lambda: os.mkdir(folder + "/planted")):
        writable.append(folder + "/planted")
paths = {line.rstrip().split(":", 2)[2] for line in open("/proc/self/cgroup") if line.strip()}
tell(tried=tried, looked=looked, writable=writable[:5], cgroups=sorted(paths))
"""


@attack(
    "T05",
    "mount something, or take over a cgroup",
    runsc="the sentry shows no cgroup of the host at all, neither files nor the path of its own",
)
async def mounts(arena: Arena) -> Finding:
    """Every way to mount is refused, no cgroup file can be written, and where the host keeps us is not told."""
    return judged(
        await arena.run(MOUNTS),
        lambda seen: all(seen["tried"].values()) and not seen["writable"] and set(seen["cgroups"]) <= {"/"},
    )


PROCESSES = """
import os, time
from probe import *
child = os.fork()
if child == 0:
    time.sleep(10)
    os._exit(0)
traced = {"seize 1": syscall(101, 117, 0x4206, 1, 0, 0)[1], "attach child": syscall(101, 117, 16, child, 0, 0)[1]}
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
words = {}
for pid in pids:
    try:
        words[pid] = open(f"/proc/{pid}/cmdline").read()
    except OSError as error:
        words[pid] = str(error)
os.kill(child, 9)
mark = os.environ["MARK"]
memory = denied(lambda: os.close(os.open("/proc/1/mem", os.O_WRONLY)))
tell(processes=len(pids), host=[pid for pid in pids if mark in words[pid] and pid not in (os.getpid(), child)],
    first=words[1][:24], memory=memory or "opened", traced=traced)
"""


@contextlib.contextmanager
def _marked_process(mark: str) -> Iterator[None]:
    """A process on the host that waits, with the mark on its command line."""
    command = [sys.executable, "-c", "input()", mark]
    with subprocess.Popen(
        command, env=child_environment(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield
        process.communicate()


@attack(
    "T06",
    "trace or rewrite a process outside",
    runc="/proc/1/mem opens: PID 1 shares the candidate's uid, and what it says counts as the candidate's words (T78)",
    runsc="tracing a child of its own is served by the sentry and reaches nothing else, so only PID 1 is judged",
)
async def processes(arena: Arena) -> Finding:
    """Tracing is refused, and the only processes to be seen are the chamber's own."""
    mark = f"blastdoor-{uuid.uuid4().hex}"

    def blocked(seen: dict[str, Any]) -> bool:
        traced = {name: error for name, error in seen["traced"].items() if name == "seize 1" or not arena.is_gvisor}
        own = seen["first"].startswith("sh\0-c\0") and not seen["host"] and seen["processes"] <= 8
        return own and all(traced.values())

    with _marked_process(mark):
        return judged(await arena.run(PROCESSES, env={"MARK": mark}), blocked)


ROOTS_FILES = """
import os
from probe import *
status = [line.split()[1:] for line in open("/proc/self/status") if line.startswith(("Uid", "Gid"))]
read = {path: denied(lambda: open(path).close()) for path in ("/etc/shadow", "/etc/gshadow")}
write = {path: denied(lambda: os.close(os.open(path, os.O_WRONLY))) for path in ("/etc/passwd", "/etc/shadow")}
tell(ids=status, read=read, write=write)
"""


@attack("T06", "read and write what is root's in the chamber")
async def roots_files(arena: Arena) -> Finding:
    """The candidate has a uid that nobody else has, in all its ids, and root's files stay closed to it."""
    return judged(
        await arena.run(ROOTS_FILES),
        lambda seen: (
            all(int(value) in arena.uids for ids in seen["ids"] for value in ids)
            and all(seen["read"].values())
            and all(seen["write"].values())
        ),
    )


KERNEL_SETTINGS = """
import os
from probe import *
places = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/irq/default_smp_affinity",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled"]
opened = {path: denied(lambda: os.close(os.open(path, os.O_WRONLY))) for path in places}
guarded = {}
for line in open("/proc/mounts"):
    _, place, _, flags, *_ = line.split()
    if place in ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger", "/sys"):
        guarded[place] = flags.split(",")[0]
tell(opened=opened, guarded=guarded, present=[path for path in places if os.path.exists(path)])
"""


@attack(
    "T09",
    "set the core pattern, pull the system request trigger",
    runsc="/proc/sys is a small one of the sentry's own, without core_pattern; there is no such mount to look at",
)
async def kernel_settings(arena: Arena) -> Finding:
    """No setting of the kernel opens for writing, and /proc/sys is read-only even to somebody who could."""

    def blocked(seen: dict[str, Any]) -> bool:
        read_only = arena.is_gvisor or (seen["guarded"].get("/proc/sys") == "ro" and seen["guarded"]["/sys"] == "ro")
        return read_only and all(seen["opened"].values()) and "rw" not in seen["guarded"].values()

    return judged(await arena.run(KERNEL_SETTINGS), blocked)


MASKED = """
import os, stat
from probe import *
def shown(path):
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            return len(os.listdir(path))
        with open(path, "rb") as file:
            return len(file.read(4096))
    except OSError as error:
        return type(error).__name__
tell(shown={path: shown(path) for path in os.environ["MASKED"].split()})
"""


@attack(
    "T09",
    "read what the kernel tells about the host",
    runsc="the sentry has no such files but /proc/cmdline, where it says the same of itself on every host",
)
async def masked(arena: Arena) -> Finding:
    """Files that tell of the host's keys, timers, interrupts and firmware show nothing."""
    outcome = await arena.run(MASKED, env={"MASKED": " ".join(MASKED_PATHS)})
    seen = told(outcome).get("shown", {})
    its_own = {"/proc/cmdline"} if arena.is_gvisor else set()
    open_ones = [path for path, size in seen.items() if isinstance(size, int) and size and path not in its_own]
    evidence = f"of {len(seen)} paths these show something: {open_ones or 'none'}"
    return Finding(len(seen) == len(MASKED_PATHS), bool(seen) and not open_ones, str(outcome.ending), evidence)
