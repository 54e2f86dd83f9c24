"""Hardening as data: what we ask of an engine, and the comparison with what it reports and what the chamber sees.

Every field is a flag that the attack suite can switch off; one whose removal no attack notices does not belong here.
"""

import itertools
import json
import re
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import EAFNOSUPPORT
from importlib import resources
from pathlib import Path
from typing import Any

from sandbox.job import EMPTY, Input, Limits

# A uid for each chamber, because the kernel keeps quotas per user (inotify, pipes, signals, queues): with one for
# all, a candidate could starve its neighbours. Above what distributions hand out for users' own containers, and
# within the 21 bits that an archive header holds.
CHAMBER_UIDS = range(1_500_000, 2_097_152)
ROOT_UID = 0

# Docker's own lists, written out so that another engine's default cannot be shorter unnoticed, and what else tells
# of the host or of neighbours and is of no use to a program.
MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/buddyinfo",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/locks",
    "/proc/partitions",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/schedstat",
    "/proc/scsi",
    "/proc/softirqs",
    "/proc/swaps",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/fs/quota",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random/entropy_avail",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/sys/block",
    "/sys/devices/system/node",
    "/sys/devices/virtual/bdi",
    "/sys/devices/virtual/powercap",
    "/sys/devices/virtual/thermal",
    "/sys/firmware",
    "/sys/fs/ext4",
    "/sys/kernel/irq",
    "/sys/kernel/mm/ksm",
    "/sys/kernel/notes",
    "/sys/kernel/slab",
)
# Only a chamber with a GPU has business with the host's devices: their counters tell what others read and write.
MASKED_WITHOUT_GPU = ("/proc/driver/nvidia", "/sys/devices/pci0000:00")
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

# gVisor runs every guest thread on host threads of its own, and counts them: this much is its own need.
RUNSC_PIDS_OVERHEAD = 192
RUNSC_PIDS_PER_PROCESS = 4

UNLIMITED = -1
# All that an engine can be asked for besides, soft and hard: a chamber has none from whoever started us, or the engine.
# No more is granted than an ordinary user has everywhere, for nobody may be able to raise a hard limit. What is locked
# in memory may be a page that neighbours read; signals that wait are charged to nobody.
OTHER_LIMITS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("cpu", "data", "fsize", "rss", "rttime"), (UNLIMITED, UNLIMITED)),
    "memlock": (64 * 1024, 64 * 1024),
    "msgqueue": (819_200, 819_200),
    "nice": (0, 0),
    "rtprio": (0, 0),
    "sigpending": (2048, 2048),
    "stack": (8 * 1024 * 1024, UNLIMITED),
}


@dataclass(frozen=True, slots=True)
class Posture:
    """One boolean a flag. All true is what a chamber gets; anything else is for the mutation check."""

    user: bool = True
    network: bool = True
    ipc: bool = True
    cgroup_namespace: bool = True
    read_only_root: bool = True
    drop_capabilities: bool = True
    no_new_privileges: bool = True
    seccomp: bool = True
    masked_paths: bool = True
    read_only_paths: bool = True
    memory: bool = True
    pids: bool = True
    cpus: bool = True
    open_files: bool = True
    core: bool = True
    other_limits: bool = True
    own_files: bool = True
    work_size: bool = True
    work_inodes: bool = True
    work_nosuid: bool = True
    work_nodev: bool = True
    no_terminals: bool = True
    log_driver: bool = True


FULL = Posture()


def seccomp_profile(*, loopback: bool = False) -> str:
    """Our profile as the engine wants it: one line of JSON.

    Internet sockets only reach the chamber's own loopback, but what they buffer is charged to the host's TCP and UDP
    memory, not to the chamber's. So they are there only for jobs that ask for them.
    """
    profile = json.loads(resources.files("sandbox").joinpath("seccomp.json").read_text("utf-8"))
    answer = {"action": "SCMP_ACT_ALLOW"} if loopback else {"action": "SCMP_ACT_ERRNO", "errnoRet": EAFNOSUPPORT}
    profile["syscalls"] += [
        {"names": ["socket"], "args": [{"index": 0, "value": int(family), "op": "SCMP_CMP_EQ"}], **answer}
        for family in (socket.AF_INET, socket.AF_INET6)
    ]
    return json.dumps(profile, separators=(",", ":"))


def container_config(
    posture: Posture,
    limits: Limits,
    runtime: str,
    boot: str,
    image: str,
    mounts: Sequence[tuple[str, Input]] = (),
    uid: int = CHAMBER_UIDS.start,
    *,
    loopback: bool = False,
    gpus: Sequence[str] = (),
    reads: Mapping[str, int] | None = None,
    life_s: float = 86_400.0,
) -> dict[str, object]:
    """The create request, in the engine's words. Fields that must stay empty are spelled out to be compared.

    `reads` are the bytes a second that may be read from each disk. After `life_s` the engine has everything in there
    killed but PID 1, whose stdin is at its end then, unless its owner lives.
    """
    uid = uid if posture.user else ROOT_UID
    return {
        "Image": image,
        "Entrypoint": ["sh", "-c"],
        "Cmd": [boot],
        "User": f"{uid}:{uid}",
        "WorkingDir": "/",
        "Hostname": "chamber",
        # The engine then makes no network at all, not even the one called none: that takes half of a chamber's start.
        # A loopback that is up comes only with it.
        "NetworkDisabled": posture.network and not loopback,
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Healthcheck": {"Test": ["CMD", "sh", "-c", "kill -KILL -1"], "Interval": int(life_s * 1e9)},
        "HostConfig": {
            **_host_config(posture, limits, runtime, mounts, uid, loopback),
            **_devices(posture, gpus),
            "BlkioDeviceReadBps": [{"Path": path, "Rate": rate} for path, rate in (reads or {}).items()],
        },
    }


def _host_config(
    posture: Posture, limits: Limits, runtime: str, mounts: Sequence[tuple[str, Input]], uid: int, loopback: bool
) -> dict[str, object]:
    security = ["no-new-privileges"] if posture.no_new_privileges else []
    security.append(f"seccomp={seccomp_profile(loopback=loopback)}" if posture.seccomp else "seccomp=unconfined")
    if not posture.ipc:
        # Engines add this to a container on the host's ipc; asked for, it is no difference.
        security.append("label=disable")
    return {
        "Runtime": runtime,
        "NetworkMode": "none" if posture.network else "host",
        "IpcMode": "none" if posture.ipc else "host",
        "CgroupnsMode": "private" if posture.cgroup_namespace else "host",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "Privileged": False,
        "ReadonlyRootfs": posture.read_only_root,
        "CapAdd": [],
        "CapDrop": ["ALL"] if posture.drop_capabilities else [],
        "SecurityOpt": security,
        "ReadonlyPaths": list(READ_ONLY_PATHS) if posture.read_only_paths else [],
        "Memory": limits.memory if posture.memory else 0,
        # Equal to Memory means no swap at all. The pair goes together: one without the other is refused or useless.
        "MemorySwap": limits.memory if posture.memory else 0,
        "NanoCpus": int(limits.cpus * 1e9) if posture.cpus else 0,
        "PidsLimit": pids_limit(limits, runtime) if posture.pids else 0,
        "Ulimits": ulimits(posture, limits),
        "Tmpfs": tmpfs_mounts(posture, limits, runtime, uid),
        "LogConfig": {"Type": "none" if posture.log_driver else "json-file", "Config": {}},
        "AutoRemove": False,
        "Init": False,
        "PublishAllPorts": False,
        "Binds": [],
        "VolumesFrom": [],
        "Devices": [],
        "DeviceCgroupRules": [],
        "GroupAdd": [],
        "Links": [],
        "ExtraHosts": [],
        # A name server that is not there, else the engine writes the host's own into /etc/resolv.conf.
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "Sysctls": {},
        "Mounts": [_mount(posture, source, item) for source, item in mounts],
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
    }


def pids_limit(limits: Limits, runtime: str) -> int:
    if runtime.startswith("runsc"):
        return limits.pids * RUNSC_PIDS_PER_PROCESS + RUNSC_PIDS_OVERHEAD
    return limits.pids


def ulimits(posture: Posture, limits: Limits) -> list[dict[str, object]]:
    wanted: list[dict[str, object]] = []
    if posture.core:
        wanted.append({"Name": "core", "Soft": 0, "Hard": 0})
    if posture.open_files:
        wanted.append({"Name": "nofile", "Soft": limits.open_files, "Hard": limits.open_files})
    if posture.other_limits:
        wanted += [{"Name": name, "Soft": soft, "Hard": hard} for name, (soft, hard) in OTHER_LIMITS.items()]
    return wanted


def tmpfs_mounts(posture: Posture, limits: Limits, runtime: str, uid: int) -> dict[str, str]:
    """Where a chamber may write, by the options of each mount."""
    common = ["rw", "nosuid" if posture.work_nosuid else "suid", "nodev" if posture.work_nodev else "dev"]
    if posture.work_size:
        common.append(f"size={limits.work_bytes}")
    if posture.work_inodes and enforces_inodes(runtime):
        common.append(f"nr_inodes={limits.work_inodes}")
    options = ",".join(common)
    # Containers of one host share a fixed number of terminals: an empty folder in their place gives none away.
    terminals = {"/dev/pts": "ro,nosuid,nodev,noexec,size=4096,mode=0755"} if posture.no_terminals else {}
    return terminals | {
        "/work": f"{options},exec,mode=0700,uid={uid},gid={uid}",
        "/tmp": f"{options},noexec,mode=1777",
        "/dev/shm": f"{options},noexec,mode=1777",
    }


def enforces_inodes(runtime: str) -> bool:
    """Older builds of gVisor know no limit on inodes; there, memory is the bound."""
    return not runtime.startswith("runsc")


def _devices(posture: Posture, gpus: Sequence[str]) -> dict[str, object]:
    """GPUs by id, never by number: engines answer a number with the first ones, so that neighbours would share them.

    Compute is what CUDA needs, utility what tells name and memory; engines that know no such words take the second
    list. What the host's own GPUs are is no business of a chamber without one.
    """
    request = {
        "Driver": "nvidia",
        "Count": 0,
        "DeviceIDs": list(gpus),
        "Capabilities": [["gpu", "compute", "utility"], ["gpu"]],
        "Options": {},
    }
    return {"MaskedPaths": masked_paths(posture, gpus), "DeviceRequests": [request] if gpus else []}


def masked_paths(posture: Posture, gpus: Sequence[str] = ()) -> list[str]:
    if not posture.masked_paths:
        return []
    return [*MASKED_PATHS] if gpus else [*MASKED_PATHS, *MASKED_WITHOUT_GPU]


def _mount(posture: Posture, source: str, item: Input) -> dict[str, object]:
    """As an overlay each chamber has inodes of its own, and with them locks; it goes with the container.

    Without an upper layer nobody can write to one. Engines do not let us say so twice.
    """
    target = f"/inputs/{item.name}"
    if not posture.own_files:
        bind = {"Type": "bind", "Source": source, "Target": target, "ReadOnly": True}
        return {**bind, "BindOptions": {"Propagation": "rprivate"}}
    layers = overlay_layers(source, str(Path(source).with_name(EMPTY)))
    driver = {"Name": "local", "Options": {"type": "overlay", "device": "overlay", "o": f"ro,{layers}"}}
    return {"Type": "volume", "Target": target, "VolumeOptions": {"NoCopy": True, "DriverConfig": driver}}


def overlay_layers(folder: str, empty: str) -> str:
    """What mounts a folder as an overlay that nobody can write to; one wants two layers."""
    return "lowerdir=" + ":".join(re.sub(r"([\\:,])", r"\\\1", it) for it in (folder, empty))


# What engines fill in by themselves, and what does no harm: /dev/shm is a mount of ours, so its size has no effect.
_FILLED_IN = frozenset({"ShmSize", "ConsoleSize"})


def differences(wanted: Mapping[str, object], reported: Mapping[str, object], path: str = "") -> list[str]:
    """Where the engine's report differs from what was asked: one line each. None, '', [], {} and 0 are alike."""
    found: list[str] = []
    for key, value in wanted.items():
        actual = reported.get(key)
        if isinstance(value, Mapping) and isinstance(actual, Mapping):
            found += differences(value, actual, f"{path}{key}.")
            added = {name for name, extra in actual.items() if _says_something(extra)} - set(value) - _FILLED_IN
            found += [f"{path}{key}.{name}: not asked for, the engine added it" for name in sorted(added)]
        elif not (_same(value, actual) or (key == "SecurityOpt" and _same_options(value, actual))):
            found.append(f"{path}{key}: asked {_short(value)}, the engine reports {_short(actual)}")
    return found


def _says_something(value: object) -> bool:
    return any(map(_says_something, value)) if isinstance(value, list) else bool(value)


def _same(wanted: object, actual: object) -> bool:
    if isinstance(wanted, Sequence) and isinstance(actual, Sequence) and not isinstance(wanted, str):
        return len(wanted) == len(actual) and all(map(_same, wanted, actual))
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return not differences({"": wanted}, {"": actual})
    return bool(wanted == actual or (not wanted and not actual))


def _same_options(wanted: object, actual: object) -> bool:
    """A security option that is said twice is still one."""
    return isinstance(wanted, list) and isinstance(actual, list) and set(wanted) == set(actual)


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


def inside_differences(posture: Posture, runtime: str, facts: Mapping[str, str], uid: int) -> list[str]:
    """Where the chamber itself, before any hostile byte, sees another posture than the one asked for."""
    wanted = {}
    if posture.user:
        wanted["uid"] = f"{uid} {uid} {uid} {uid}"
    if posture.drop_capabilities:
        wanted["capabilities"] = "0000000000000000"
    if posture.network:
        wanted["routes"] = "0"
    if not runtime.startswith("runsc"):
        # gVisor reports neither of the two: it is the kernel that the candidate talks to.
        if posture.no_new_privileges:
            wanted["no_new_privileges"] = "1"
        if posture.seccomp:
            wanted["seccomp"] = "2"
    return [
        f"{name}: wanted {value}, the chamber sees {facts.get(name, 'nothing')}"
        for name, value in wanted.items()
        if facts.get(name) != value
    ]


_HARMLESS_VARIABLES = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "TZ",
        "TERM",
        "container",
        "DEBIAN_FRONTEND",
        "GPG_KEY",
        "PYTHON_VERSION",
        "PYTHON_SHA256",
        "PYTHON_PIP_VERSION",
        "PYTHON_SETUPTOOLS_VERSION",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PIP_NO_CACHE_DIR",
        "CUDA_VERSION",
        "NVARCH",
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_REQUIRE_CUDA",
    ]
)


def uids(among: range = CHAMBER_UIDS) -> Iterator[int]:
    """In a row, from a random start, so that owners hardly ever meet: a machine counts some things by user over all of
    their chambers.
    """
    start = secrets.randbelow(len(among))
    return (among[(start + number) % len(among)] for number in itertools.count())


def image_objections(config: Mapping[str, Any]) -> list[str]:
    """Why an image must not become a chamber: variables that could preload code, volumes that could be written."""
    names = [str(item).partition("=")[0] for item in config.get("Env") or []]
    objections = [
        f"its environment sets {name}, which is not on the list of harmless variables"
        for name in names
        if name not in _HARMLESS_VARIABLES and not name.startswith("NV_")
    ]
    return objections + [f"it declares the writable volume {path}" for path in sorted(config.get("Volumes") or {})]
