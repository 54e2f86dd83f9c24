"""Candidates on one pretended provider, judge and agents on another: who was given which bytes is on record."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.loop.jobs import Image
from orchestrator.task import ImageSpec
from orchestrator.wiring.site import Site
from sandbox import Gpu, Job, Terms
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import make_site, write_task

GOLD = b"the gold that nobody but the judge may see 7f3a\n"
JUDGE = b"one that is scripted\n"
CAVEATS = ("a guest's wrapper counts the processes", "a machine of somebody else's")


@dataclass
class Witnessed(Script):
    """Remembers every job with the files that came with it, and how many chambers there were at once."""

    jobs: list[tuple[Job, dict[str, bytes]]] = field(default_factory=list)
    inside: int = 0
    most: int = 0

    async def program(self, guest: Guest) -> int:
        self.jobs.append((guest.job, dict(guest.files)))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            return await super().program(guest)
        finally:
            self.inside -= 1

    @property
    def ran_here(self) -> set[str]:
        return {job.command[0] for job, _ in self.jobs}

    @property
    def images(self) -> set[str]:
        return {job.image for job, _ in self.jobs}

    def received(self) -> bytes:
        """Every byte that was sent here, names and variables included."""
        parts = [
            text
            for job, files in self.jobs
            for text in (job.model_dump_json().encode(), *map(str.encode, files), *files.values())
        ]
        return b"\n".join(parts)


def two_sites(home: Script, away: Script, *, holds: int = 4, wide: int = 10, gpu: Gpu | None = None) -> Site:
    """The candidates' site; its home holds so many judges at once."""
    judging = replace(_named(make_site(home, ceiling=holds), "home"), name="docker/runc")
    site = _named(make_site(away, ceiling=wide), "away")
    site.backend.capabilities = replace(site.backend.capabilities, boundary="somebody else's machine", caveats=CAVEATS)
    return replace(site, name="rented", judging=judging, gpu=gpu, terms=Terms(opening_s=300.0, closing_s=60.0))


def _named(site: Site, where: str) -> Site:
    """Images are known by the place that baked them."""

    async def bake(_: ImageSpec) -> Image:
        return Image(f"{where}-image", "d")

    return replace(site, bake=bake)


def gold_task(folder: Path, *more: str, trial: str = "") -> Path:
    write_task(folder, *more, trial=trial)
    (folder / "judge" / "gold").mkdir()
    (folder / "judge" / "gold" / "answers.txt").write_bytes(GOLD)
    return folder
