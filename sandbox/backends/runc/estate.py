"""All that an owner has on this machine: a lock, a folder with its chambers' own, and a group in every hierarchy.

The kernel knows who lives: an owner holds the lock as long as its process does. The lock and the folder come before
anything else is made, and go last, so that what a dead owner left is always found by its folder. Where the machine has
a place in memory for that, the folder is a link to there: a slow disk would take a fifth of the time of a chamber.
"""

import contextlib
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from sandbox.backends.runc.cgroups import KILL_S, Cgroups
from sandbox.backends.runc.trees import make_private
from sandbox.errors import Refused, SandboxError, Unavailable
from sandbox.logger import logger
from sandbox.mounts import MOUNTS, mounts_of
from sandbox.tenancy import Mark, Tenancy
from sandbox.trees import remove_tree, remove_unmounted

_OWNER = re.compile(r"[0-9a-f]{12}")
_CLAIM = "gpus"
# How many seconds a chamber may still live.
LIFE = "life"
_PLACE = "place"
_AGAIN_S = 0.5
# In memory, and open to everybody: nobody removes there what is another's.
MEMORY = Path("/dev/shm")


def group_of(owner: str, chamber: str = "") -> str:
    return f"blastdoor-{owner}/{chamber}" if chamber else f"blastdoor-{owner}"


class Estate:
    """An owner's own, in a folder that several owners of one user share."""

    def __init__(self, folder: Path, cgroups: Cgroups) -> None:
        """Raises Refused where nothing may be made."""
        self._shared = folder
        self.cgroups = cgroups
        try:
            make_private(folder)
            self.tenancy = Tenancy(folder / "owners")
        except OSError as error:
            raise Refused(
                f"{folder} cannot hold chambers ({error.strerror}); check its rights and free space"
            ) from error
        self.owner = self.tenancy.owner
        self._unended: set[str] = set()
        self.folder = _home(folder, self.owner)
        try:
            self.folder = _made(folder, self.owner)
            if cgroups.place:
                (self.folder / _PLACE).write_text(cgroups.place, "utf-8")
            cgroups.found(group_of(self.owner))
        except BaseException as error:
            self._leave()
            if isinstance(error, OSError):
                raise Refused(f"{folder} cannot hold chambers ({error.strerror}); check its rights") from error
            raise

    def chamber(self, chamber: str, life_s: float) -> Path:
        """A new chamber's folder, and how long it may live at most."""
        place = self.folder / chamber
        place.mkdir(mode=0o700)
        (place / LIFE).write_text(f"{life_s:9.0f}\n", "utf-8")
        return place

    def claim(self, chamber: str, gpus: Sequence[str]) -> None:
        """Let other owners see which GPUs a chamber has, for as long as its folder is there."""
        (self.folder / chamber / _CLAIM).write_text("\n".join(gpus), "utf-8")

    def claims(self) -> dict[str, list[str]]:
        """The GPUs of every owner's chambers, also of one that is dead and not yet swept.

        A claim that cannot be read is passed over: whatever still uses a GPU is found by the driver.
        """
        found = {}
        for file in (self._shared / "chambers").glob(f"*/*/{_CLAIM}"):
            try:
                found[file.parent.name] = file.read_text("utf-8").splitlines()
            except FileNotFoundError:
                continue  # it ended meanwhile
            except (OSError, ValueError) as error:  # also of a file that a power cut left half written
                logger(chamber=file.parent.name).warning("claim.not_read", reason=str(error))
        return found

    def group(self, chamber: str) -> str:
        return group_of(self.owner, chamber)

    def end(self, chamber: str, within_s: float = KILL_S) -> None:
        """A chamber: its processes, its groups, its folder. Harmless when gone. Raises Unavailable if it lives on."""
        self._unended.add(chamber)
        try:
            self.cgroups.end(self.group(chamber), within_s)
            # Nothing is mounted there, for a runtime's mounts are in its namespace; to ask the kernel for all mounts
            # waits for everybody who is making one.
            remove_tree(self.folder / chamber)
        except OSError as error:
            raise Unavailable(f"what is left of {chamber} cannot be removed ({error.strerror})") from error
        self._unended.discard(chamber)

    def end_again(self) -> None:
        """Chambers of ours that did not end when they should have, and those of owners that died meanwhile."""
        for chamber in tuple(self._unended):
            with contextlib.suppress(Unavailable):
                self.end(chamber, _AGAIN_S)
        self.reap()

    def release(self) -> None:
        """Raises Unavailable while something of it does not end; then it is still ours."""
        sweep(self._shared, self.owner, self.cgroups)
        self.tenancy.release()

    def reap(self) -> tuple[list[str], list[str]]:
        """End what owners left that are gone, never a living one's: what was ended, and what could not be."""
        place = self.tenancy.place
        others = ((it, Mark(it, place, 0)) for it in owners(self._shared) if it != self.owner)
        over, unknown = self.tenancy.sorted_out(others)
        ended: list[str] = []
        left = [f"blastdoor-{it}" for it in unknown]
        for owner in over:
            try:
                ended += sweep(self._shared, owner, self.cgroups)
                (self._shared / "owners" / owner).unlink(missing_ok=True)
            except (SandboxError, OSError, ValueError) as error:  # also of a file that a power cut left half written
                logger(owner=owner).warning("owner.not_reaped", reason=str(error))
                left.append(f"blastdoor-{owner}")
        return ended, left

    def _leave(self) -> None:
        with contextlib.suppress(SandboxError, OSError):
            self.release()


def owners(shared: Path) -> list[str]:
    """Those that have a folder, and so held their lock before."""
    try:
        return [it.name for it in (shared / "chambers").iterdir() if _OWNER.fullmatch(it.name)]
    except FileNotFoundError:
        return []


def sweep(shared: Path, owner: str, cgroups: Cgroups) -> list[str]:
    """End everything of an owner: the names of its chambers, or its own. Raises Unavailable when something lives on."""
    home = _home(shared, owner)
    names = [f"blastdoor-{owner}-{item.name}" for item in _listed(home) if item.is_dir()]
    with contextlib.suppress(FileNotFoundError):  # its groups are at the top, or it died before it had any
        place = (home / _PLACE).read_text("utf-8")
        cgroups = cgroups.at(place)
    cgroups.end(group_of(owner))
    for claim in home.glob(f"*/{_CLAIM}"):  # nobody has them any more, whatever cannot be removed
        claim.unlink(missing_ok=True)
    if home.is_symlink():
        if _is_ours(_in_memory(owner)):
            remove_unmounted(_in_memory(owner))
        home.unlink(missing_ok=True)
    remove_unmounted(home)
    return names or [f"blastdoor-{owner}"]


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _home(shared: Path, owner: str) -> Path:
    return shared / "chambers" / owner


def _made(shared: Path, owner: str) -> Path:
    """Where the folders of its chambers are. The link comes first: who has one is known, and swept."""
    home, place = _home(shared, owner), _in_memory(owner)
    home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_memory(MEMORY):
        home.symlink_to(place)
        try:
            place.mkdir(mode=0o700)
        except OSError:  # full, closed to us, or somebody else has that name
            home.unlink()
        else:
            return place
    home.mkdir(mode=0o700)
    return home


def _in_memory(owner: str) -> Path:
    return MEMORY / f"blastdoor-{owner}"


def _is_ours(place: Path) -> bool:
    """After a restart of the machine, anybody may have made something of that name."""
    try:
        found = place.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_memory(folder: Path) -> bool:
    return any(it.folder == str(folder) and it.kind == "tmpfs" for it in mounts_of(MOUNTS.read_bytes()))
