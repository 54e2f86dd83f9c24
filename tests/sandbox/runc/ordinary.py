"""An ordinary user of this machine, for as long as a test needs one.

The user is known in a mount namespace of its own, as are its subordinate ids; nothing of the machine's files changes.
In every hierarchy a group is delegated to it. What it runs is in a user namespace.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.backends.runc.cgroups import SEAT, WANTED

UID, SUBORDINATE, IDS = 62_424, 300_000, 65_536
ROOT = Path(__file__).resolve().parents[3]
CHECKOUT_PROGRAMS = Path(sys.prefix, "bin")
ENVIRONMENT = {"PATH": os.environ["PATH"], "DOCKER_HOST": "unix:///nowhere", "COLUMNS": "200"}


@dataclass(frozen=True, slots=True)
class User:
    home: Path
    group: str

    def run(self, *command: str, ids: int = IDS, namespace: bool = True) -> "subprocess.CompletedProcess[str]":
        """A program of this checkout's environment, with nothing of our own environment."""
        inside = ["unshare", "--map-root-user", "--map-auto", "--"] if namespace else []
        words = [str(CHECKOUT_PROGRAMS / command[0]), *command[1:]]
        become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *inside, *words]
        script = "\n".join([*self._known(ids), *self._opened(), *self._enter(), f"exec {shlex.join(become)}"])
        return subprocess.run(
            ["unshare", "--mount", "sh", "-euc", script],
            env={**ENVIRONMENT, "HOME": str(self.home)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    def _known(self, ids: int) -> Iterator[str]:
        files = {
            "passwd": f"root:x:0:0::/root:/bin/sh\ntrial:x:{UID}:{UID}::{self.home}:/bin/sh\n",
            "group": f"root:x:0:\ntrial:x:{UID}:\n",
            "subuid": f"trial:{SUBORDINATE}:{ids}\n",
            "subgid": f"trial:{SUBORDINATE}:{ids}\n",
        }
        for name, text in files.items():
            (self.home / name).write_text(text)
            yield f"mount --bind {self.home / name} /etc/{name}"

    def _opened(self) -> Iterator[str]:
        """Our Python may lie in a folder that is root's alone."""
        wanted = sorted({Path(sys.base_prefix), Path(sys.prefix), ROOT})
        closed = {place: shut for place in wanted if (shut := _shut(place))}
        for number, place in enumerate(closed):
            stage = self.home / f"stage-{number}"
            stage.mkdir(exist_ok=True)
            yield f"mount --bind {place} {stage}"
        yield from (f"mount -t tmpfs -o mode=755 none {shut}" for shut in sorted(set(closed.values())))
        for number, place in enumerate(closed):
            yield f"mkdir -p {place}"
            yield f"mount --bind {self.home / f'stage-{number}'} {place}"

    def _enter(self) -> Iterator[str]:
        """In version 2 nobody may join a group that hands on its controllers: then there is a seat."""
        for folder in (it / self.group for it in _hierarchies()):
            yield f"{{ echo $$ >{folder / SEAT / 'cgroup.procs'}; }} 2>/dev/null || echo $$ >{folder / 'cgroup.procs'}"


@contextlib.contextmanager
def ordinary_user() -> Iterator[User]:
    user = User(Path(tempfile.mkdtemp(prefix="blastdoor-ordinary-")), f"blastdoor-test-{uuid.uuid4().hex[:8]}")
    try:
        user.home.chmod(0o755)
        os.chown(user.home, UID, UID)
        for folder in _hierarchies():
            _delegate(folder, user.group)
        yield user
    finally:
        shutil.rmtree(user.home)
        for folder in _hierarchies():
            for place, _, _ in sorted(os.walk(folder / user.group), reverse=True):
                _remove(Path(place))


def _delegate(hierarchy: Path, group: str) -> None:
    folder = hierarchy / group
    if (control := hierarchy / "cgroup.subtree_control").exists():
        there = (hierarchy / "cgroup.controllers").read_text().split()
        control.write_text(" ".join(f"+{name}" for name in there if name in WANTED))
    folder.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (hierarchy / name).exists() and not (hierarchy / "cgroup.controllers").exists():
            (folder / name).write_text((hierarchy / name).read_text())
    for name in ("", "cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control"):
        if (folder / name).exists():
            os.chown(folder / name, UID, UID)


def _remove(group: Path) -> None:
    """A warden may still be on its way out."""
    until = time.monotonic() + 60
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def _hierarchies() -> list[Path]:
    lines = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [Path(before.split()[4]) for before, after in lines if after.split()[0] in ("cgroup", "cgroup2")]


def _shut(place: Path) -> Path | None:
    return next((it for it in reversed(place.parents) if not it.stat().st_mode & 0o001), None)
