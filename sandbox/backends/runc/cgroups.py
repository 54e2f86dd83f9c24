"""The kernel's groups of processes, of version 1 and 2: what chambers are limited by, counted by and ended by.

Everything of one owner is below one folder of its own in each hierarchy. A group can only be removed when nobody is in
it, so a removed one proves that all of it has ended. Root makes its groups at the top, everybody else below the group
that was delegated: the one that we were started in.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.backends.runc.rootless import HOW, rights_here
from sandbox.errors import Refused, Unavailable
from sandbox.mounts import MOUNTS, mounts_of

WANTED = ("cpu", "memory", "pids")
KILL_S = 20.0
_PAUSE_S = 0.002
OURS = Path("/proc/self/cgroup")
SWAPS = Path("/proc/swaps")
# In version 2 a group whose controllers are handed on has no processes itself: ours go into one beside the chambers'.
SEAT = "blastdoor-seat"
_SWAP_MAX, _MEMORY_AND_SWAP = "memory.swap.max", "memory.memsw.limit_in_bytes"
_NO_SWAP_LIMIT = (
    "the kernel limits no swap, and this machine has some; boot with swapaccount=1, or switch it off (swapoff -a)"
)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    folder: Path
    controllers: frozenset[str]
    unified: bool


class Cgroups:
    """`groups` are named by paths below `place` in every hierarchy, such as `blastdoor-OWNER/CHAMBER`."""

    def __init__(self, hierarchies: tuple[Hierarchy, ...], place: str = "") -> None:
        self.place = place
        self._mounted = hierarchies
        self._all = tuple(replace(it, folder=it.folder / place) for it in hierarchies)

    @classmethod
    def of_this_machine(cls, mounts: Path = MOUNTS) -> "Cgroups":
        """Raises Refused where the kernel, or who started us, gives no controller that a limit needs."""
        place = _delegated(OURS.read_text()) if rights_here().rootless else ""
        found = cls(tuple(_hierarchies(mounts.read_bytes(), place)), place)
        if missing := [name for name in WANTED if not found._with(name)]:
            raise Refused(
                f"no {missing[0]} cgroup is there, and no limit on it would hold; mount /sys/fs/cgroup, "
                f"or boot with cgroup_enable={missing[0]}"
            )
        memory = found._holder("memory")
        if not memory.unified and not (memory.folder / _MEMORY_AND_SWAP).exists() and _swaps():
            raise Refused(_NO_SWAP_LIMIT)
        return found

    def at(self, place: str) -> "Cgroups":
        """The same hierarchies, for what an owner made that was started in another group."""
        return Cgroups(self._mounted, place)

    def path(self, group: str) -> str:
        """As a runtime is told it."""
        return "/".join(("", *filter(None, (self.place, group))))

    @property
    def is_unified(self) -> bool:
        return self._holder("memory").unified

    @property
    def limits_reads(self) -> bool:
        holder = self._with("io" if self.is_unified else "blkio")
        return holder is not None and os.access(holder.folder, os.W_OK)

    def found(self, owner: str) -> None:
        """The owner's own group, in which those of its chambers are made. Raises Refused where nothing may be made."""
        holder = self._holder("pids")
        try:
            (holder.folder / owner).mkdir()
            if holder.unified:
                self._sit_down(holder.folder)
                for folder in (holder.folder, holder.folder / owner):
                    wanted = set(WANTED) | ({"io"} if self.limits_reads else set())
                    here = set((folder / "cgroup.subtree_control").read_text().split())
                    if wanted - here:
                        order = " ".join(f"+{name}" for name in sorted(wanted - here))
                        (folder / "cgroup.subtree_control").write_text(order)
        except OSError as error:
            self._removed(owner)
            raise Refused(
                f"no group can be made below {holder.folder} ({error.strerror}); run as root, "
                f"or where cgroups are delegated to us: {HOW}"
            ) from error
        # The root of version 2 has no such file, so only a group of our own shows it.
        if self.is_unified and not (self._holder("memory").folder / owner / _SWAP_MAX).exists() and _swaps():
            self._removed(owner)
            raise Refused(_NO_SWAP_LIMIT)

    def _sit_down(self, folder: Path) -> None:
        """Only where we were started in a group that is not the root, whose processes may stay."""
        if not self.place:
            return
        (folder / SEAT).mkdir(exist_ok=True)
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (folder / SEAT / "cgroup.procs").write_text(pid)

    def folders(self, group: str) -> dict[str, Path]:
        """Of version 1, by controller, where a chamber is limited."""
        return {} if self.is_unified else {name: self._holder(name).folder / group for name in WANTED}

    def prepare(self, group: str) -> None:
        """Those of version 1, ahead of a runtime that is told to mount them."""
        for folder in self.folders(group).values():
            folder.mkdir(parents=True, exist_ok=True)
        if self.place and (holder := self._with("cpuset")) and not holder.unified:
            # Nobody may join a group without processors, and for an ordinary user's crun hands on none.
            part = holder.folder
            for name in Path(group).parts:
                above, part = part, part / name
                part.mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (part / file).write_text((above / file).read_text())

    def lobby(self, group: str) -> Path:
        """A group without limits, for the runtime itself while it makes a chamber: the file that lets one in."""
        folder = self._holder("pids").folder / lobby_of(group)
        folder.mkdir(exist_ok=True)
        return folder / "cgroup.procs"

    def has(self, group: str, pid: int) -> bool:
        """By the kernel's list of a process: its number alone may be another one's by now."""
        try:
            return any(line.endswith(f"/{group}") for line in _said(f"/proc/{pid}/cgroup").splitlines())
        except OSError:
            return False

    def exists(self, group: str) -> bool:
        return any((it.folder / group).exists() for it in self._all)

    def processes(self, group: str) -> list[int]:
        found: set[int] = set()
        for folder in self._folders(group):
            with contextlib.suppress(OSError):
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
        return sorted(found)

    def oom_kills(self, group: str) -> int:
        """How many of a group's processes the kernel killed for memory. Raises FileNotFoundError when it is gone."""
        holder = self._holder("memory")
        file = "memory.events" if holder.unified else "memory.oom_control"
        return _counted((holder.folder / group / file).read_text(), "oom_kill")

    def cpu_seconds(self, group: str) -> float:
        """Raises FileNotFoundError when the group is gone."""
        if self._holder("cpu").unified:
            text = (self._holder("cpu").folder / group / "cpu.stat").read_text()
            return _counted(text, "usage_usec") / 1e6
        return int((self._holder("cpuacct").folder / group / "cpuacct.usage").read_text()) / 1e9

    def limits(self, group: str) -> dict[str, str]:
        """What the kernel holds a chamber to, to be compared with what was asked for.

        `cpus` is quota and period. `reads` is a rate for each disk; it is missing where none can be set. `swap` is how
        much beyond the memory; it is missing where the kernel limits none, on a machine that has none.
        """
        files = {
            "memory": ("memory", "memory.max" if self.is_unified else "memory.limit_in_bytes"),
            "pids": ("pids", "pids.max"),
        }
        found = {
            name: _said(f"{self._holder(controller).folder}/{group}/{file}").split()[0]
            for name, (controller, file) in files.items()
        }
        cpu = self._holder("cpu")
        parts = ("cpu.max",) if cpu.unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        found["cpus"] = " ".join(_said(f"{cpu.folder}/{group}/{file}").strip() for file in parts)
        if reads := self._with("io" if self.is_unified else "blkio"):
            with contextlib.suppress(FileNotFoundError):
                file = "io.max" if reads.unified else "blkio.throttle.read_bps_device"
                lines = [line.split()[:2] for line in _said(f"{reads.folder}/{group}/{file}").splitlines()]
                rates = [(disk, rate.removeprefix("rbps=")) for disk, rate in lines]
                found["reads"] = ", ".join(sorted(f"{disk} {rate}" for disk, rate in rates if rate != "max"))
        with contextlib.suppress(FileNotFoundError):
            folder = f"{self._holder('memory').folder}/{group}"
            if self.is_unified:
                found["swap"] = _said(f"{folder}/{_SWAP_MAX}").strip()
            else:
                found["swap"] = str(int(_said(f"{folder}/{_MEMORY_AND_SWAP}")) - int(found["memory"]))
        return found

    def end(self, group: str, within_s: float = KILL_S) -> None:
        """Kill all of a group and remove it. Raises Unavailable when its processes do not end.

        First who could still make something: a runtime in its lobby. Where the kernel does not let us see what is in a
        group, since we have no descriptor left, say, that is no proof that nothing is.
        """
        until = time.monotonic() + within_s
        for lobby in self._lobbies(group):
            self._end(lobby, until)
        if self._removed(group):
            return  # as a rule: all of it is dead, and it made no groups of its own
        while True:
            for folder in sorted(self._folders(group), key=lambda it: len(it.parts), reverse=True):
                self._end(folder, until)
            if not self.exists(group):
                return
            if time.monotonic() > until:
                raise Unavailable(f"what is in {group} cannot be seen, so that it does not end")
            time.sleep(_PAUSE_S)

    def _removed(self, group: str) -> bool:
        gone = True
        for hierarchy in self._all:
            try:
                os.rmdir(f"{hierarchy.folder}/{group}")  # noqa: PTH106  eleven for a chamber: a path takes as long again
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        return gone

    def _end(self, folder: Path, until: float) -> None:
        while True:
            try:
                folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError as error:
                if time.monotonic() > until:
                    raise Unavailable(f"what is in {folder} does not end ({error.strerror})") from error
            self._kill(folder)
            time.sleep(_PAUSE_S)

    def _kill(self, folder: Path) -> None:
        with contextlib.suppress(OSError):
            if (folder / "cgroup.kill").exists():
                (folder / "cgroup.kill").write_text("1")
                return
            for word in (folder / "cgroup.procs").read_text().split():
                self._kill_member(folder, int(word))

    def _kill_member(self, folder: Path, pid: int) -> None:
        """A number may be another process's by now: the grip comes first, then the look whether it is the right one."""
        with contextlib.suppress(ProcessLookupError):
            grip = os.pidfd_open(pid)
            try:
                if str(pid) in (folder / "cgroup.procs").read_text().split():
                    signal.pidfd_send_signal(grip, signal.SIGKILL)
            finally:
                os.close(grip)

    def _folders(self, group: str) -> Iterator[Path]:
        for hierarchy in self._all:
            for folder, _, _ in os.walk(hierarchy.folder / group):
                yield Path(folder)

    def _lobbies(self, group: str) -> list[Path]:
        """That of a chamber, or those of all chambers of an owner."""
        folder = self._holder("pids").folder
        of_chambers = () if "/" in group else (folder / group).glob(lobby_of("*"))
        return [folder / lobby_of(group), *of_chambers]

    def _with(self, controller: str) -> Hierarchy | None:
        return next((it for it in self._all if controller in it.controllers), None)

    def _holder(self, controller: str) -> Hierarchy:
        found = self._with(controller)
        if not found:
            raise Refused(f"no {controller} cgroup is there")
        return found


def lobby_of(group: str) -> str:
    return f"{group}.lobby"


def _delegated(ours: str) -> str:
    """The group that we were started in, below the top of every hierarchy that limits chambers."""
    places: dict[str, str] = {}
    for line in ours.splitlines():
        _, names, place = line.split(":", 2)
        places |= dict.fromkeys(names.split(","), place.removesuffix(f"/{SEAT}").strip("/"))
    found = {places.get(name, places.get("", "")) for name in WANTED}
    if len(found) > 1 or not all(found):
        raise Refused(f"no one group is delegated to us with all of {', '.join(WANTED)}; start it as {HOW}")
    return found.pop()


def _hierarchies(table: bytes, place: str) -> Iterator[Hierarchy]:
    seen: set[Path] = set()
    for name, kind, options in mounts_of(table):
        folder = Path(name)
        if kind not in ("cgroup", "cgroup2") or folder in seen:
            continue
        seen.add(folder)
        unified = kind == "cgroup2"
        names = _handed_on(folder / place) if unified else options.split(",")
        yield Hierarchy(folder, frozenset(names), unified)


def _handed_on(folder: Path) -> list[str]:
    """The controllers of a group of version 2. Where only version 1 is delegated there is none of that name."""
    try:
        return (folder / "cgroup.controllers").read_text().split()
    except FileNotFoundError:
        return []


def _said(file: str) -> str:
    """A small file of the kernel's. A path object and a text file would take as long again, for every chamber."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 65_536).decode()
    finally:
        os.close(descriptor)


def _counted(text: str, name: str) -> int:
    return next((int(line.split()[1]) for line in text.splitlines() if line.split()[:1] == [name]), 0)


def _swaps() -> bool:
    try:
        return len(SWAPS.read_text().splitlines()) > 1
    except OSError:
        return False
