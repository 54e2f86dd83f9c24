"""The posture in the words of the OCI runtime specification: what `runc` and `runsc` are told of one chamber."""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from sandbox.backends.runc.nvidia import PLACE, GpuParts
from sandbox.errors import Refused
from sandbox.job import Input, Limits
from sandbox.posture import (
    FULL,
    READ_ONLY_PATHS,
    ROOT_UID,
    UNLIMITED,
    Posture,
    masked_paths,
    pids_limit,
    seccomp_profile,
    tmpfs_mounts,
    ulimits,
)

CPU_PERIOD_US = 100_000
# The kernel's infinity, as a runtime wants it.
NO_LIMIT = 2**64 - 1
# How the kernel names in /proc what the specification names otherwise.
LIMIT_NAMES = {
    "RLIMIT_AS": "Max address space",
    "RLIMIT_CORE": "Max core file size",
    "RLIMIT_CPU": "Max cpu time",
    "RLIMIT_DATA": "Max data size",
    "RLIMIT_FSIZE": "Max file size",
    "RLIMIT_MEMLOCK": "Max locked memory",
    "RLIMIT_MSGQUEUE": "Max msgqueue size",
    "RLIMIT_NICE": "Max nice priority",
    "RLIMIT_NOFILE": "Max open files",
    "RLIMIT_NPROC": "Max processes",
    "RLIMIT_RSS": "Max resident set",
    "RLIMIT_RTPRIO": "Max realtime priority",
    "RLIMIT_RTTIME": "Max realtime timeout",
    "RLIMIT_SIGPENDING": "Max pending signals",
    "RLIMIT_STACK": "Max stack size",
}
# Only for the mutation check: what an engine leaves a container that nobody hardened.
_USUAL_CAPABILITIES = tuple(
    f"CAP_{name}"
    for name in (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_MEMLOCK = "RLIMIT_MEMLOCK"
# null, zero, full, random, urandom, tty. A runtime makes their nodes itself.
_DEVICES = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0))


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk by its number, and how many bytes a second one chamber may read from it."""

    major: int
    minor: int
    rate: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where on this machine a chamber is made: its root, its group, what is mounted into it, and the most that some
    of its limits can be. `groups` are folders of its group by their controllers, where the runtime is not left to
    mount them. `locks_memory` says that the runtime itself locks memory once it is under the chamber's limits.
    """

    root: Path
    cgroup: str
    groups: Mapping[str, Path] = field(default_factory=dict)
    inputs: Sequence[tuple[Path, Input]] = ()
    disks: Sequence[Disk] = ()
    gpus: GpuParts | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    locks_memory: bool = False


def oci_spec(
    posture: Posture,
    limits: Limits,
    runtime: str,
    boot: str,
    environment: Sequence[str],
    place: Place,
    uid: int,
    *,
    loopback: bool = False,
) -> dict[str, Any]:
    uid = uid if posture.user else ROOT_UID
    rlimits = _rlimits(posture, limits, place.limits)
    if place.locks_memory and posture.other_limits:
        # The chamber lowers it itself then, before it takes a bundle.
        locked = next(it for it in rlimits if it["type"] == _MEMLOCK)
        rlimits.remove(locked)
        boot = f"ulimit -l {locked['hard'] // 1024} || exit 1\n{boot}"
    return {
        "ociVersion": "1.0.2",
        "hostname": "chamber",
        "root": {"path": str(place.root), "readonly": posture.read_only_root},
        "process": {
            "user": {"uid": uid, "gid": uid, "additionalGids": [uid]},
            "args": ["sh", "-c", boot],
            "env": [*(place.gpus.environment(environment) if place.gpus else environment), "HOSTNAME=chamber"],
            "cwd": "/",
            "capabilities": _capabilities(posture),
            "rlimits": rlimits,
            "noNewPrivileges": posture.no_new_privileges,
            "oomScoreAdj": 0,
        },
        "mounts": [*_mounts(posture, limits, runtime, uid, place), *_driver(place.gpus)],
        "linux": {
            "cgroupsPath": place.cgroup,
            "namespaces": [{"type": kind} for kind in _namespaces(posture)],
            "rootfsPropagation": "private",
            "devices": [
                {"path": it.path, "type": "c", "major": it.major, "minor": it.minor, "fileMode": 0o666}
                for it in (place.gpus.nodes if place.gpus else ())
            ],
            "resources": _resources(posture, limits, runtime, place),
            "maskedPaths": masked_paths(posture),
            "readonlyPaths": list(READ_ONLY_PATHS) if posture.read_only_paths else [],
            **({"seccomp": _seccomp(loopback=loopback)} if posture.seccomp else {}),
            # A program that serves itself may use a low port, as on an engine.
            **({"sysctl": {"net.ipv4.ip_unprivileged_port_start": "0"}} if loopback and posture.network else {}),
        },
    }


def bake_spec(
    root: Path,
    cgroup: str,
    command: Sequence[str],
    environment: Sequence[str],
    capabilities: Sequence[str],
    stage: tuple[Path, str],
    *,
    network: bool,
) -> dict[str, Any]:
    """A command that changes an image, as root with a few capabilities. Its limits are the host's, as on an engine."""
    plain = ["nosuid", "noexec", "nodev"]
    source, target = stage
    mounts = [
        *_kernel_mounts(),
        _mount("/dev/shm", "tmpfs", [*plain, "mode=1777", "size=65536k"]),
        {**_mount(target, "bind", ["bind", "rw", "nosuid", "nodev", "rprivate"]), "source": str(source)},
    ]
    if network:
        names = (Path("/etc/resolv.conf"), Path("/etc/hosts"))
        mounts += [
            {**_mount(str(it), "bind", ["bind", "ro", *plain, "rprivate"]), "source": str(it.resolve())}
            for it in names
            if it.exists()
        ]
    return {
        "ociVersion": "1.0.2",
        "hostname": "baking",
        "root": {"path": str(root), "readonly": False},
        "process": {
            "user": {"uid": ROOT_UID, "gid": ROOT_UID},
            "args": list(command),
            "env": [*environment, "HOSTNAME=baking"],
            "cwd": "/",
            "capabilities": {kind: list(capabilities) for kind in ("bounding", "effective", "permitted")},
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [
                {"type": kind} for kind in ("mount", "pid", "uts", "ipc", *(() if network else ("network",)))
            ],
            "rootfsPropagation": "private",
            "resources": {"devices": _device_rules(_DEVICES)},
            "maskedPaths": masked_paths(FULL),
            "readonlyPaths": list(READ_ONLY_PATHS),
            "seccomp": _seccomp(loopback=True),
        },
    }


def _capabilities(posture: Posture) -> dict[str, list[str]]:
    if posture.drop_capabilities:
        return {}
    return {kind: list(_USUAL_CAPABILITIES) for kind in ("bounding", "effective", "permitted")}


def _rlimits(posture: Posture, limits: Limits, most: Mapping[str, int]) -> list[dict[str, Any]]:
    wanted: list[Mapping[str, Any]] = [*ulimits(posture, limits)]
    if posture.other_limits:
        wanted += [{"Name": name, "Soft": UNLIMITED, "Hard": UNLIMITED} for name in ("as", "nproc")]
    found = []
    for item in wanted:
        name = f"RLIMIT_{item['Name'].upper()}"
        asked = (NO_LIMIT if it == UNLIMITED else it for it in (item["Soft"], item["Hard"]))
        soft, hard = (min(it, most.get(name, NO_LIMIT)) for it in asked)
        found.append({"type": name, "soft": soft, "hard": hard})
    return found


def shared_layers(spec: Mapping[str, Any], folder: Path) -> dict[Path, Path]:
    """What a chamber reads that others may read, too, each with what lies below it: its inputs, and its root unless it
    may write there. `folder` is the chamber's own.

    Below the root are the folders to mount inputs on: gVisor does not see the mount above them, and would make them in
    the root.
    """
    inputs = [it for it in spec["mounts"] if it["destination"].startswith("/inputs/")]
    empty, points = folder / "empty", folder / "points"
    for made in (empty, *(points / it["destination"].lstrip("/") for it in inputs)):
        made.mkdir(parents=True)
    points.mkdir(exist_ok=True)
    root = {Path(spec["root"]["path"]): points} if spec["root"]["readonly"] else {}
    return root | {Path(it["source"]): empty for it in inputs}


def rlimit_differences(spec: Mapping[str, Any], held: Mapping[str, tuple[str, str]]) -> list[str]:
    """Where the kernel holds a process to other limits than its specification asks for: one line each."""
    found = []
    for item in spec["process"]["rlimits"]:
        name = LIMIT_NAMES[item["type"]]
        wanted = tuple("unlimited" if it == NO_LIMIT else str(it) for it in (item["soft"], item["hard"]))
        if held.get(name) != wanted:
            found.append(f"{name.lower()}: asked {' and '.join(wanted)}, the kernel holds it to {held.get(name)}")
    return found


def _namespaces(posture: Posture) -> list[str]:
    optional = {"network": posture.network, "ipc": posture.ipc, "cgroup": posture.cgroup_namespace}
    return ["mount", "pid", "uts", *(kind for kind, wanted in optional.items() if wanted)]


def _mounts(posture: Posture, limits: Limits, runtime: str, uid: int, place: Place) -> list[dict[str, object]]:
    plain = ["nosuid", "noexec", "nodev"]
    mounts = [
        *_kernel_mounts(),
        *_cgroup_mounts(place.groups),
        _mount("/dev/mqueue", "mqueue", plain),
    ]
    if not posture.no_terminals:
        options = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]
        mounts.append(_mount("/dev/pts", "devpts", options))
    mounts += [
        _mount(target, "tmpfs", ["rprivate", *options.split(",")])
        for target, options in tmpfs_mounts(posture, limits, runtime, uid).items()
    ]
    if place.inputs:
        # Else a runtime would make their folders in the image, which all chambers share.
        mounts.append(_mount("/inputs", "tmpfs", [*plain, "size=4096", "nr_inodes=128", "mode=755"]))
    for source, item in place.inputs:
        options = ["bind", "ro", "nosuid", "nodev", "rprivate"]
        mounts.append({**_mount(f"/inputs/{item.name}", "bind", options), "source": str(source)})
    return mounts


def _kernel_mounts() -> list[dict[str, object]]:
    plain = ["nosuid", "noexec", "nodev"]
    return [
        _mount("/proc", "proc", plain),
        _mount("/dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
        _mount("/sys", "sysfs", [*plain, "ro"]),
    ]


def _cgroup_mounts(groups: Mapping[str, Path]) -> list[dict[str, object]]:
    plain = ["nosuid", "noexec", "nodev"]
    if not groups:
        return [_mount("/sys/fs/cgroup", "cgroup", [*plain, "ro"])]
    return [
        _mount("/sys/fs/cgroup", "tmpfs", [*plain, "size=4096", "nr_inodes=16", "mode=755"]),
        *(
            {**_mount(f"/sys/fs/cgroup/{name}", "bind", ["bind", "ro", *plain, "rprivate"]), "source": str(folder)}
            for name, folder in groups.items()
        ),
    ]


def _driver(gpus: GpuParts | None) -> list[dict[str, object]]:
    if not gpus:
        return []
    plain = ["nosuid", "nodev", "rprivate"]
    return [
        _mount(PLACE, "tmpfs", [*plain, "noexec", "size=4096", "nr_inodes=64", "mode=755"]),
        *(
            {**_mount(inside, "bind", ["bind", "ro", *plain]), "source": str(source)}
            for inside, source in sorted(gpus.files.items())
        ),
    ]


def _mount(target: str, kind: str, options: Sequence[str]) -> dict[str, object]:
    return {"destination": target, "type": kind, "source": kind, "options": list(options)}


def _device_rules(numbers: Sequence[tuple[int, int]]) -> list[dict[str, object]]:
    """None but these devices of characters."""
    allowed = [{"allow": True, "type": "c", "major": a, "minor": b, "access": "rwm"} for a, b in numbers]
    return [{"allow": False, "access": "rwm"}, *allowed]


def _resources(posture: Posture, limits: Limits, runtime: str, place: Place) -> dict[str, Any]:
    numbers = [*_DEVICES, *((it.major, it.minor) for it in (place.gpus.nodes if place.gpus else ()))]
    found: dict[str, Any] = {"devices": _device_rules(numbers)}
    if posture.memory:
        # Equal means no swap at all.
        found["memory"] = {"limit": limits.memory, "swap": limits.memory}
    if posture.cpus:
        found["cpu"] = {"quota": cpu_quota(limits), "period": CPU_PERIOD_US}
    if posture.pids:
        found["pids"] = {"limit": pids_limit(limits, runtime)}
    if place.disks:
        reads = [{"major": disk.major, "minor": disk.minor, "rate": disk.rate} for disk in place.disks]
        found["blockIO"] = {"throttleReadBpsDevice": reads}
    return found


def cpu_quota(limits: Limits) -> int:
    return max(1000, round(limits.cpus * CPU_PERIOD_US))  # the kernel takes no less


@cache
def _seccomp(*, loopback: bool) -> dict[str, Any]:
    """Shared by all chambers: it is written out, never changed."""
    profile = json.loads(seccomp_profile(loopback=loopback))
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise Refused(f"our seccomp profile knows x86-64 and arm64, and this machine is {machine}; use another one")
    known = ("names", "action", "errnoRet", "args")
    return {
        "defaultAction": profile["defaultAction"],
        "architectures": [_ARCHITECTURES[machine]],
        "syscalls": [{key: call[key] for key in known if key in call} for call in profile["syscalls"]],
    }
