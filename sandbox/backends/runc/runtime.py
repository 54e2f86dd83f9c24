"""The OCI runtime's own program: which one it is, and how one chamber is started with it.

It runs detached: once the chamber's PID 1 is there, the runtime has ended, and nothing of it stands between us and the
chamber's streams. While it works it is in a lobby, a group of its own, so that what ends a chamber ends a runtime
that is still making it as well.
"""

import base64
import contextlib
import fcntl
import functools
import json
import os
import re
import select
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.backends.runc.covers import covered
from sandbox.environment import child_environment
from sandbox.errors import Refused, Unavailable

# sbin is not on everybody's path.
SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
# The oldest that we drive: numbers of a release, or its day. runc before it mends file descriptors that lead out of a
# chamber (CVE-2024-21626) is for none but its distributor's mends, which no number shows; this is the oldest whose
# cgroups of version 2 are complete. crun before 1.4.4 leaves capabilities that can be inherited (CVE-2022-27650).
OLDEST = {"runc": (1, 1, 0), "runsc": (20220101,), "crun": (1, 4, 4)}
# Where a chamber's first process is started, and where it goes from there.
INSIDE = ("/", "/work")
_ASK_S = 30.0
# A runtime lives for some milliseconds: to collect its garbage, or to spread over all processors, is lost work.
_ENVIRONMENT = child_environment(PATH=SEARCH_PATH, GOGC="off", GOMAXPROCS="1")
_LET_IN = 'echo $$ >"$0" && exec "$@"'
# Where a machine has cgroups of both versions, those of the second.
_SECOND = Path("/sys/fs/cgroup/unified")
_SHELL = shutil.which("sh", path=SEARCH_PATH) or "sh"
# The width of a limit's name in /proc.
_NAME = 26
_FILTER = "run.oci.seccomp_bpf_data"
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@dataclass(frozen=True, slots=True)
class Runtime:
    """`copy` is a descriptor of its program that nobody can write to, where this machine runs such a one.

    A runtime lets no chamber near its own file: before each it copies or mounts itself, unless it is such a copy
    already. `mounts` is a descriptor of the mount namespace that it works in, if that is not ours.
    """

    name: str
    program: str
    version: str
    copy: int | None = None
    mounts: int | None = None

    @property
    def is_gvisor(self) -> bool:
        return self.name.startswith("runsc")

    @property
    def mounts_groups_open(self) -> bool:
        """crun mounts groups of version 1 below a folder that everybody may write to."""
        return self.name == "crun"

    def locks_memory(self, *, unified: bool) -> bool:
        """crun raises this limit for programs that guard devices, which are the kernel's in groups of version 2."""
        return self.name == "crun" and unified

    @property
    def _started_as(self) -> str:
        return self.program if self.copy is None else _path_of(self.copy)

    def start(
        self,
        name: str,
        folder: Path,
        lobby: Path,
        streams: "Streams",
        within_s: float,
        layers: Mapping[Path, Path] | None = None,
    ) -> int:
        """The number of a chamber's first process, which waits for its bundle. Raises Unavailable when none came.

        `folder` is the chamber's own: its specification is there, and what the runtime writes down. Of the folders
        in `layers`, which are shared with other chambers, it gets files of its own.
        """
        log, pid_file = folder / "log", folder / "pid"
        command = [self._started_as, "--root", str(folder / "state"), "--log", str(log), "--log-format", "json"]
        if self.is_gvisor:
            command.append("--network=none")  # it has no network of its own, and wants to be told so
        command += ["run", "--detach", "--bundle", str(folder), "--pid-file", str(pid_file), name]
        begin = functools.partial(_ended, [_SHELL, "-c", _LET_IN, str(lobby), *command], streams, within_s)
        try:
            code = covered(begin, layers or {}, self.mounts) if layers or self.mounts is not None else begin()
        except OSError as error:
            raise Unavailable(f"start: {self.program} cannot be run ({error.strerror})") from error
        if code is None:
            raise Unavailable(f"start: {self.name} had made no chamber after {within_s:g} s")
        if code:
            raise Unavailable(f"start: {self.name} failed: {_last_error(log)} (exit {code})")
        try:
            return int(pid_file.read_text())
        except (OSError, ValueError) as error:
            raise Unavailable(f"start: {self.name} did not say which process it started") from error


class Filters:
    """What crun made of a seccomp profile, for the next chamber with the same one: it would compile it for each."""

    def __init__(self) -> None:
        self._compiled: list[tuple[dict[str, Any], str]] = []

    def give(self, spec: dict[str, Any]) -> None:
        """The profile stays there as well, for a crun that does not take a filter."""
        profile = spec["linux"].get("seccomp")
        data = next((data for known, data in self._compiled if known is profile), None)
        if data is not None:
            spec["annotations"] = {_FILTER: data}

    def learn(self, spec: dict[str, Any], name: str, folder: Path) -> None:
        profile = spec["linux"].get("seccomp")
        if profile is None or "annotations" in spec:
            return
        with contextlib.suppress(FileNotFoundError):  # other runtimes leave none
            compiled = (folder / "state" / name / "seccomp.bpf").read_bytes()
            self._compiled.append((profile, base64.b64encode(compiled).decode()))


@dataclass(frozen=True, slots=True)
class Streams:
    """The chamber's ends of its pipes."""

    stdin: int
    stdout: int
    stderr: int

    def take_back(self) -> None:
        """Its runtime gave the pipes to the chamber's user. What came is counted in the pipe, and a time is that of
        bytes that came for good: nobody in there may open it for reading. Opening it for writing stays everybody's.

        Its stdin stays its own: no count or time is of that one, and its PID 1 is of the same user.
        """
        for descriptor in (self.stdout, self.stderr):
            os.fchown(descriptor, os.geteuid(), os.getegid())
            os.fchmod(descriptor, 0o622)

    def close(self) -> None:
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.close(descriptor)


def _ended(command: list[str], streams: Streams, within_s: float) -> int | None:
    """The exit code of a program, None when it takes too long; who ends its lobby ends it, too.

    Heard from the kernel: `subprocess` would look every so often, for as long again as a chamber takes to start.
    """
    process = subprocess.Popen(
        command, env=_ENVIRONMENT, stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr
    )
    grip = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(grip, select.POLLIN)
        if not poll.poll(within_s * 1000):
            process.kill()
            process.wait()
            return None
        return process.wait()
    finally:
        os.close(grip)


def find_runtime(name: str, search: str = SEARCH_PATH) -> Runtime:
    """Raises Refused where there is none, or one that is too old: what to install."""
    program = shutil.which(name, path=search)
    if not program:
        raise Refused(f"there is no {name} on this machine; install it (on Debian: apt-get install {name})")
    try:
        asked = subprocess.run(
            [program, "--version"], env=_ENVIRONMENT, capture_output=True, timeout=_ASK_S, check=False
        )
        said = asked.stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"{program} does not say its version ({type(error).__name__}); install it again") from error
    version = said.partition("\n")[0].rpartition(" ")[2] or "unknown"
    if is_too_old(name, version):
        least = ".".join(map(str, OLDEST[name]))
        raise Refused(f"{program} is {version}, and {least} is the oldest that we drive; install a newer one")
    copy = None if name == "runsc" else _copy_of(program, Path(program).stat().st_mtime_ns)
    return Runtime(name, program, version, copy, _without_the_second() if name == "crun" else None)


@functools.cache
def _copy_of(program: str, _changed_at: int) -> int | None:
    """One for each version of it, for as long as we live. None where the kernel, or its owner, lets nobody run one."""
    try:
        copy = os.memfd_create("runtime", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    except OSError:
        return None
    try:
        with Path(program).open("rb") as file, os.fdopen(copy, "wb", closefd=False) as written:
            shutil.copyfileobj(file, written)
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
        subprocess.run([_path_of(copy), "--version"], env=_ENVIRONMENT, capture_output=True, timeout=_ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        os.close(copy)
        return None
    return copy


@functools.cache
def _without_the_second() -> int | None:
    """crun drives cgroups of either version, and refuses those of both: there it sees the first alone.

    Raises Refused where no such namespace can be made.
    """
    try:
        if not (_SECOND / "cgroup.controllers").read_text().strip():
            return None
    except OSError:
        return None
    hide = f"mount -t tmpfs none {_SECOND} && echo hidden && read -r _"
    if not shutil.which("unshare", path=SEARCH_PATH):
        raise Refused("crun takes no cgroups of both versions, and there is no unshare to hide one; use --backend runc")
    # What is mounted later, such as a disk with images, comes to be there, too; what is hidden there stays there.
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "slave", _SHELL, "-c", hide],
        env=_ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        if not holder.stdout or holder.stdout.readline() != b"hidden\n":
            raise Refused(f"crun takes no cgroups of both versions, and {_SECOND} cannot be hidden; use --backend runc")
        return os.open(f"/proc/{holder.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def _path_of(descriptor: int) -> str:
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def is_too_old(name: str, version: str) -> bool:
    """A version that says nothing of its age is too old."""
    numbers = re.search(r"(20\d{6})" if name == "runsc" else r"^(\d+)\.(\d+)\.?(\d*)", version)
    return not numbers or tuple(int(it or 0) for it in numbers.groups()) < OLDEST[name]


def working_directory(pid: int) -> str:
    """Where a chamber's first process is, by the kernel: its root, its /work, or a place that is not the chamber's.

    A directory that the runtime inherited leads out of a chamber (CVE-2024-21626). Raises OSError when it is gone.
    """
    here = Path(f"/proc/{pid}/cwd")
    for place in INSIDE:
        if here.samefile(f"/proc/{pid}/root{place}"):
            return place
    return f"{here.readlink()} (neither its root nor its /work)"


def limits_of(pid: int) -> dict[str, tuple[str, str]]:
    """Soft and hard limits of a process as the kernel writes them, by its own names for them. Raises OSError."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {line[:_NAME].strip(): (line[_NAME:].split()[0], line[_NAME:].split()[1]) for line in lines}


def _last_error(log: Path) -> str:
    said = "it said nothing"
    try:
        lines = log.read_text("utf-8", "replace").splitlines()
    except OSError:
        return said
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("level") in ("error", "fatal"):
            said = str(record.get("msg"))
    return " ".join(said.split())[:400]
