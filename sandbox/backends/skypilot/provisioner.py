"""What the backend needs of SkyPilot, and no more: the seam where tests put a provisioner of their own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandbox.job import Gpu


@dataclass(frozen=True, slots=True)
class Ask:
    """A machine as it is asked for. Whatever comes has at least this much."""

    cpus: int
    memory_gib: int
    gpu: Gpu | None = None

    def fits(self, other: "Ask") -> bool:
        """Whether a machine of this kind can do what asks for the other."""
        return self.cpus >= other.cpus and self.memory_gib >= other.memory_gib and self.gpu == other.gpu


@dataclass(frozen=True, slots=True)
class Wanted:
    """One launch.

    `idle_s` after the last thing that was submitted the machine ends, whether it runs or not; at `ends`, in seconds
    since 1970, it ends whatever happens. `most_usd_per_hour` keeps SkyPilot from turning to a dearer one by itself.
    """

    ask: Ask
    idle_s: float
    ends: float
    most_usd_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Landed:
    """A machine that is up: its price, and SkyPilot's word for what it is."""

    usd_per_hour: float
    what: str


class Provisioner(Protocol):
    """SkyPilot, seen from here. Every method is bounded in time and may raise Unavailable; what else it raises stands
    with it. `place` is a cloud, a Slurm cluster or the like, in SkyPilot's own words."""

    async def check(self, place: str) -> None:
        """Raises Refused when the place is not set up, or when credentials of ours would be copied to machines."""

    async def reach(self, place: str) -> None:
        """Raises Unavailable when the place itself does not answer. What it is asked has to do with no machine there.

        Its own controller answers for Slurm. For a cloud it is not asked: SkyPilot's server is all that is known of it.
        """

    async def quote(self, place: str, ask: Ask) -> float | None:
        """Dollars an hour of what would be launched; None where no price is known. Raises Refused when nothing fits."""

    async def launch(self, name: str, place: str, wanted: Wanted, timeout: float) -> Landed:
        """Until the machine is up. Raises Refused when there is no such machine at all, Unavailable without capacity.

        Whatever it raises, and when it is cancelled: the machine may be there, or may still come.
        """

    async def clusters(self) -> list[str]:
        """Names of all clusters that SkyPilot knows, in whatever state."""

    async def lived(self) -> dict[str, float | None]:
        """Seconds for which SkyPilot counts each cluster that it ever had, from the launch to the end that it saw.

        None for one that is not over, or was not counted.
        """

    async def requests(self) -> dict[str, str]:
        """Requests under way that make or use a cluster, but not those that end it: id and cluster name."""

    async def cancel_requests(self, ids: list[str]) -> None:
        """Harmless when they are over."""

    async def down(self, name: str) -> None:
        """End the machine. Harmless when it is gone."""

    async def submit(self, name: str, command: str) -> None:
        """Queue a command on the machine. Raises Lost when the machine is gone."""

    async def send(self, name: str, source: Path, target: str, timeout: float) -> None:
        """Copy a folder's content to a folder on the machine, under our own root there."""

    async def call(self, name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        """Run a command on the machine, at once: its exit code and at most `cap` bytes of what it wrote to stdout."""
