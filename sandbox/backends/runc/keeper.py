"""Ends a chamber at its longest life, where neither its owner nor the owner's warden is left to do it.

A shell beside the chambers, in a group of the owner's own: what ends a whole service with all of its processes does not
reach it, and no chamber sees it. A chamber's folder says how long it may still live, and the keeper counts that down,
by its own turns: a machine that slept takes nothing off it. It goes with the owner's group, like everything in there,
and by itself where the owner is gone and no chamber runs.
"""

import contextlib
import subprocess

from sandbox.backends.runc.estate import LIFE, Estate
from sandbox.environment import child_environment
from sandbox.errors import Unavailable

TURN_S = 5
_NAME = "keeper"
# Numbers are written over one another, as wide as they were: a file that was emptied first may find no room again.
# $1 has the owner's chambers, $2 their groups, $3 lets one into the keeper's own.
_KEEP = """
echo $$ >"$3" || exit 1
trap '' HUP INT TERM
echo ready
exec >/dev/null
while sleep {turn} && [ -d "$1" ]; do
    busy=''
    for file in "$1"/*/{life}; do
        read -r left <"$file" || continue
        chamber=${{file%/*}} chamber=${{chamber##*/}}
        ! read -r pid <"$2/$chamber/cgroup.procs" || busy=1
        if [ "$left" -gt {turn} ]; then
            printf '%9d\n' $((left - {turn})) 1<>"$file"
            continue
        fi
        for group in "$2/$chamber.lobby" "$2/$chamber"; do
            [ ! -r "$group/cgroup.procs" ] || while read -r pid; do kill -KILL "$pid"; done <"$group/cgroup.procs"
        done
    done
    [ "$busy" ] || kill -0 "$PPID" || exit 0
done 2>/dev/null
"""


class Keeper:
    """One for each owner. Nothing is started without it."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Raises Unavailable where none can be had."""
        try:
            door = self._estate.cgroups.lobby(self._estate.group(_NAME))
            script = _KEEP.format(turn=TURN_S, life=LIFE)
            self.process = subprocess.Popen(
                ["sh", "-c", script, "keeper", str(self._estate.folder), str(door.parent.parent), str(door)],
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            with self.process.stdout or contextlib.nullcontext(None) as said:
                word = said.readline() if said else b""
        except OSError as error:
            raise Unavailable(f"no keeper of chambers can be started ({error.strerror})") from error
        if word != b"ready\n":
            raise Unavailable("the keeper of chambers did not start; check free memory and try again")

    def collect(self) -> None:
        """Once its group has ended."""
        if self.process:
            self.process.wait()
