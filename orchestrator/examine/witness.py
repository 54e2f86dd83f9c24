"""What a reviewer signs for: which commands ran, in which images, with what in them, and who held which limit."""

from dataclasses import dataclass

from orchestrator.domain.verdict import Mode, Tier
from orchestrator.examine.probes import Packages, list_packages
from orchestrator.examine.rehearsal import NODE
from orchestrator.loop.guards import guard_record
from orchestrator.loop.workbench import Parts
from sandbox import Job, Limits


@dataclass(frozen=True)
class Holder:
    """A limit as it was asked for, and who holds it on this backend."""

    limit: str
    value: object
    held_by: str


@dataclass(frozen=True)
class Command:
    """A job of the task. Variables are named only: a value may be nobody else's business."""

    what: str
    image: str
    build: tuple[str, ...]
    command: tuple[str, ...]
    variables: tuple[str, ...]
    loopback: bool
    limits: tuple[Holder, ...]


@dataclass(frozen=True)
class Witness:
    backend: str
    boundary: str
    commands: tuple[Command, ...]
    images: tuple[Packages, ...]


async def witness(parts: Parts) -> Witness:
    """Looks into each image with a job of our own. Raises Unavailable when the engine fails."""
    images = dict.fromkeys((parts.jobs.image, parts.jobs.judge_image))
    return Witness(
        backend=parts.jobs.backend,
        boundary=parts.door.backend.capabilities.boundary,
        commands=tuple(_command(parts, what, job) for what, job in _jobs(parts)),
        images=tuple([await list_packages(parts, image) for image in images]),
    )


def _jobs(parts: Parts) -> list[tuple[str, Job]]:
    jobs = parts.jobs
    if parts.tier is Tier.SHARED:
        found = [("trial and judge in one chamber", jobs.shared(Mode.SUBMIT, NODE))]
    else:
        found = [("trial", jobs.trial(Mode.SUBMIT)), ("judge", jobs.judge(Mode.SUBMIT))]
    return found + [(f"guard {spec.name}", jobs.guard(guard_record(spec))) for spec in parts.task.guards]


def _command(parts: Parts, what: str, job: Job) -> Command:
    held = parts.door.backend.capabilities.enforcer
    asked = job.limits.model_dump(mode="json")
    return Command(
        what=what,
        image=job.image,
        build=tuple(job.build),
        command=tuple(job.command),
        variables=tuple(sorted(job.env)),
        loopback=job.loopback,
        limits=tuple(Holder(name, asked[name], held(name).value) for name in Limits.model_fields),
    )
