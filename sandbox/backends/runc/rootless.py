"""Without root: a process that its user starts in a user namespace is root there, and nowhere else.

A process with threads cannot enter one any more, so we never do it ourselves: we say how to be started in one.

To the kernel all chambers are then one user's, whose quotas they share, whatever their uids are. Each gets a part that
leaves the others theirs.
"""

import os
import pwd
import resource
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.errors import Refused
from sandbox.posture import CHAMBER_UIDS

UID_MAP = Path("/proc/self/uid_map")
STATUS = Path("/proc/self/status")
MOST_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
SUBORDINATE = Path("/etc/subuid")
# All ids of the machine are one block in the namespace that it was booted in.
_ALL_IDS = 2**32 - 1
# Below are the ids of an image's own users; the last but one is nobody's.
_FIRST, _LAST = 10_000, 65_533
_FEWEST = 1000
# So many chambers at once cannot starve each other, but for message queues.
PARTS = 32
CAVEAT = f"to the kernel all chambers are one user, of whose quotas each has 1/{PARTS}, of message queues 1/8"
# An eighth of the queues' bytes is one queue of the usual size; with less, nobody could have any.
_SHARED = {"RLIMIT_MEMLOCK": PARTS, "RLIMIT_MSGQUEUE": 8, "RLIMIT_SIGPENDING": PARTS}
# All but open files, which a job asks for by number: with fewer it would not be the same job.
_INHERITED = (
    *("AS", "CPU", "DATA", "FSIZE", "MEMLOCK", "MSGQUEUE", "NICE", "NPROC", "RSS", "RTPRIO", "RTTIME"),
    *("SIGPENDING", "STACK"),
)
_SYS_RESOURCE = 24
HOW = "systemd-run --user --scope -p Delegate=yes unshare --map-root-user --map-auto -- COMMAND"


@dataclass(frozen=True, slots=True)
class Rights:
    """Whose root we are, the uids that chambers may have, and the most that limits of theirs can be."""

    rootless: bool
    uids: range
    limits: Mapping[str, int] = field(default_factory=dict)


def is_rootless() -> bool:
    """Whether root of this process is not the machine's."""
    return UID_MAP.read_text().split() != ["0", "0", str(_ALL_IDS)]


def rights_here() -> Rights:
    """Raises Refused for an ordinary user, with what is missing here, or how to start us."""
    if os.geteuid() != 0:
        raise Refused(f"chambers without a daemon need root, or a user namespace: {_advice()}")
    if not is_rootless():
        return Rights(False, CHAMBER_UIDS, {} if _may_raise() else _hard_limits())
    blocks = [tuple(map(int, line.split())) for line in UID_MAP.read_text().splitlines()]
    found = max((_usable(first, count) for first, _, count in blocks), key=len, default=range(0))
    if len(found) < _FEWEST:
        raise Refused(
            "this user namespace has too few ids, and each chamber has one of its own; start in one with all that "
            f"{SUBORDINATE} gives you: {HOW}"
        )
    # Without a limit for all there is nothing to share; what is locked counts as the chamber's memory anyhow.
    limits = {name: most // _SHARED.get(name, 1) for name, most in _hard_limits().items()}
    return Rights(True, found, limits)


def _hard_limits() -> dict[str, int]:
    """Those of our own that a chamber cannot exceed, for want of the right to raise them."""
    named = {f"RLIMIT_{name}": getattr(resource, f"RLIMIT_{name}") for name in _INHERITED}
    found = {name: resource.getrlimit(which)[1] for name, which in named.items()}
    return {name: most for name, most in found.items() if most != resource.RLIM_INFINITY}


def _may_raise() -> bool:
    rights = next(line for line in STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    return bool(int(rights.split()[1], 16) >> _SYS_RESOURCE & 1)


def _usable(first: int, count: int) -> range:
    return range(max(first, _FIRST), min(first + count - 1, _LAST) + 1)


def _advice(programs: Sequence[str] = ("unshare", "newuidmap", "newgidmap")) -> str:
    try:
        most = int(MOST_NAMESPACES.read_text())
    except OSError:
        most = 0
    if not most:
        return "this kernel lets nobody make one; run as root, set user.max_user_namespaces, or use --backend docker"
    if missing := [name for name in programs if not shutil.which(name)]:
        return f"there is no {missing[0]} here to make one; install it (on Debian: apt-get install util-linux uidmap)"
    names = _names()
    if not _subordinates().intersection(names):
        ids = "--add-subuids 300000-365535 --add-subgids 300000-365535"
        return f"{SUBORDINATE} gives you no ids; let root run: usermod {ids} {names[-1]}"
    return f"start it as {HOW}"


def _names() -> list[str]:
    """By which the list may know us: our number, and the name of it, where it has one."""
    uid = os.geteuid()
    try:
        return [str(uid), pwd.getpwuid(uid).pw_name]
    except KeyError:
        return [str(uid)]


def _subordinates() -> set[str]:
    try:
        return {line.partition(":")[0] for line in SUBORDINATE.read_text().splitlines()}
    except OSError:
        return set()
