"""The GPUs of this machine, and what of their driver a chamber gets: devices by number, files read-only.

It is what NVIDIA's toolkit does for an engine, for computing and for nvidia-smi alone: no graphics, no video, and no
hook that runs as root. A file of the driver bears its version, so one of another version is never taken.
"""

import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.backends.runc.runtime import SEARCH_PATH
from sandbox.environment import child_environment
from sandbox.errors import NoSuchGpu, Refused, Unavailable
from sandbox.gpus import SeenGpu

# Where the driver's files are inside; its own tool comes first on the path, since the facts are asked of it.
PLACE = "/nvidia"
TOOL = "nvidia-smi"
# Each with the number by which programs load it; None is the driver's own version.
_LIBRARIES: Mapping[str, str | None] = {
    "libcuda.so": "1",
    "libnvidia-ml.so": "1",
    "libnvidia-ptxjitcompiler.so": "1",
    "libnvidia-nvvm.so": "4",
    "libnvidia-nvvm70.so": "4",
    "libnvidia-gpucomp.so": None,
}
_NEEDED = ("libcuda.so", "libnvidia-ml.so")
_FOLDERS = (
    *("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"),
    *("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"),
)
# What every program on a GPU opens beside the GPU's own.
_SHARED = ("nvidiactl", "nvidia-uvm")
# A driver takes a moment to free what the dead had.
_FREED_S = 20.0
_POLL_S = 0.1
_ASK_S = 60.0
# Of a GPU's memory: what may be in use when nobody computes there, such as a screen's, and how far it may have grown.
_IDLE_SHARE = 1 / 8
_SLACK_SHARE = 1 / 32


@dataclass(frozen=True, slots=True)
class Node:
    """A device as a chamber gets it: its path inside and its number."""

    path: str
    major: int
    minor: int


@dataclass(frozen=True, slots=True)
class GpuParts:
    """What one chamber gets: devices, and files by their path inside."""

    nodes: Sequence[Node]
    files: Mapping[str, Path]

    def environment(self, given: Iterable[str]) -> list[str]:
        """The image's, with the driver's files first."""
        found = dict(item.split("=", 1) for item in given if "=" in item)
        for name, folder in (("PATH", "bin"), ("LD_LIBRARY_PATH", "lib")):
            found[name] = ":".join(part for part in (f"{PLACE}/{folder}", found.get(name, "")) if part)
        return [f"{name}={value}" for name, value in found.items()]


@dataclass(frozen=True, slots=True)
class Use:
    """What is on one GPU: memory, and the processes that compute there."""

    mebibytes: int
    processes: tuple[int, ...]


class Driver:
    """NVIDIA's driver on this machine; the paths are for tests. Raises Refused where there is none, or half of one."""

    def __init__(
        self,
        proc: Path = Path("/proc/driver/nvidia"),
        dev: Path = Path("/dev"),
        folders: Sequence[str] = _FOLDERS,
        search: str = f"{SEARCH_PATH}:/usr/local/nvidia/bin",
    ) -> None:
        self._dev = dev
        found = [_pairs(file.read_text("utf-8", "replace")) for file in sorted(proc.glob("gpus/*/information"))]
        if not found:
            raise NoSuchGpu("gpu: this machine has no GPU of NVIDIA, or no driver for it; ask for none, or install one")
        self.version = _version(proc)
        tool = shutil.which(TOOL, path=search)
        if not tool:
            raise Refused(f"gpu: the driver's {TOOL} is missing; install it (on Debian: apt-get install nvidia-smi)")
        self._tool = tool
        self._files = {**_libraries(self.version, folders), f"{PLACE}/bin/{TOOL}": Path(tool).resolve()}
        self._idle: dict[str, int] = {}
        self._minors = {it.get("GPU UUID", ""): it.get("Device Minor", "") for it in found}
        self._sizes = {gpu: int(size) for gpu, size in self._asked("--query-gpu=uuid,memory.total") if size.isdecimal()}
        ids = [(it.get("GPU UUID", ""), it.get("Model", "")) for it in found]
        self.gpus = [SeenGpu(name, self._sizes.get(gpu), gpu) for gpu, name in ids]

    def parts(self, ids: Collection[str]) -> GpuParts:
        """Raises Refused where a device is missing."""
        names = [*_SHARED, *(f"nvidia{self._minors[it]}" for it in ids)]
        return GpuParts([_node(self._dev / name, f"/dev/{name}") for name in names], self._files)

    def check_idle(self, ids: Collection[str], within_s: float = _FREED_S) -> None:
        """Before a chamber gets these GPUs: nobody computes there, and the last one's memory is free again.

        Raises Unavailable when that does not come true in time.
        """
        until = time.monotonic() + within_s
        while left := self._left(ids):
            if time.monotonic() > until:
                raise Unavailable(left)
            time.sleep(_POLL_S)

    def _left(self, ids: Collection[str]) -> str:
        now = self._uses()
        for gpu in ids:
            use = now.get(gpu)
            if use is None:
                return f"{TOOL} tells nothing of the GPU {gpu}; see what the driver logged (dmesg)"
            if use.processes:
                pids = ", ".join(map(str, use.processes))
                return f"the GPU {gpu} is in use by process {pids}, which is no chamber's; end it, or give it another"
            size = self._sizes.get(gpu, 0)
            idle = self._idle.get(gpu)
            most = size * _IDLE_SHARE if idle is None else idle + size * _SLACK_SHARE
            if use.mebibytes > most:
                return (
                    f"{use.mebibytes} MiB are in use on the GPU {gpu}, and no process computes there ({most:.0f} MiB"
                    " may be, for a screen and the driver); end what draws on it, or reset it"
                )
            self._idle[gpu] = use.mebibytes if idle is None else min(idle, use.mebibytes)
        return ""

    def _uses(self) -> dict[str, Use]:
        memory = self._asked("--query-gpu=uuid,memory.used")
        processes: dict[str, list[int]] = {}
        for gpu, pid in self._asked("--query-compute-apps=gpu_uuid,pid"):
            processes.setdefault(gpu, []).append(int(pid) if pid.isdecimal() else 0)
        return {gpu: Use(int(used), tuple(processes.get(gpu, ()))) for gpu, used in memory if used.isdecimal()}

    def _asked(self, query: str) -> list[tuple[str, str]]:
        command = [self._tool, query, "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(command, env=child_environment(), capture_output=True, timeout=_ASK_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{TOOL} does not answer ({type(error).__name__}); see what the driver logged") from error
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
            raise Unavailable(
                f"{TOOL} failed ({said or f'exit {done.returncode}'}); see what the driver logged (dmesg)"
            )
        rows = (line.split(", ") for line in done.stdout.decode("utf-8", "replace").splitlines())
        return [(row[0].strip(), row[1].strip()) for row in rows if len(row) > 1]


def _pairs(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _version(proc: Path) -> str:
    try:
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", (proc / "version").read_text("utf-8", "replace"))
    except OSError:
        found = None
    if not found:
        raise Refused("gpu: the driver does not say its version; load NVIDIA's module (modprobe nvidia)")
    return found[1]


def _libraries(version: str, folders: Sequence[str]) -> dict[str, Path]:
    """By the names that programs load them by. All are of one folder: the loaded module's own."""
    for folder in map(Path, folders):
        found = {name: folder / f"{name}.{version}" for name in _LIBRARIES if (folder / f"{name}.{version}").is_file()}
        if all(name in found for name in _NEEDED):
            return {
                f"{PLACE}/lib/{name}.{number}": path.resolve()
                for name, path in found.items()
                for number in {_LIBRARIES[name] or version, version}
            }
    raise Refused(
        f"gpu: libcuda.so.{version} is not on this machine, and the loaded driver needs it; install the libraries of "
        "the same version"
    )


def _node(place: Path, inside: str) -> Node:
    try:
        found = place.stat()
    except OSError as error:
        raise Refused(
            f"gpu: {inside} is missing ({error.strerror}); load the driver's modules (nvidia-modprobe -u -c 0)"
        ) from error
    if not stat.S_ISCHR(found.st_mode):
        raise Refused(f"gpu: {inside} is no device; load the driver's modules (nvidia-modprobe -u -c 0)")
    return Node(inside, os.major(found.st_rdev), os.minor(found.st_rdev))
