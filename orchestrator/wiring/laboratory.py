"""Chambers for a repository that nobody made a task of yet: its image baked, and nothing of it run anywhere else."""

from orchestrator.discovery.chambers import Laboratory
from orchestrator.discovery.repository import Repository
from orchestrator.task import ImageSpec
from orchestrator.wiring.site import Site
from sandbox import Bundle, Job, Limits, Outcome


async def open_laboratory(
    repository: Repository, image: ImageSpec, site: Site, *, wall_s: float, memory: int
) -> Laboratory:
    """Raises Refused where the image cannot be had, and the sandbox's other errors."""
    baked = await site.bake(image)

    async def run(job: Job, bundle: Bundle) -> Outcome:
        async with await site.backend.open(job) as chamber:
            return await chamber.run(bundle)

    limits = Limits(wall=wall_s, memory=memory, pids=256)
    return Laboratory(run, baked.name, repository.files, repository.roots, limits)
