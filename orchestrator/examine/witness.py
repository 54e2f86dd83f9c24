"""What a reviewer signs for: which commands ran, in which images, with what in them, and who held which limit."""

from dataclasses import dataclass

from orchestrator.door import Door
from orchestrator.examine.probes import Packages, list_packages
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
    """`judge` is where the judge and what stands beside it ran; `caveats` is what is weaker on the candidate's side."""

    backend: str
    boundary: str
    judge: str
    caveats: tuple[str, ...]
    commands: tuple[Command, ...]
    images: tuple[Packages, ...]


async def witness(parts: Parts) -> Witness:
    """Looks into each image with a job of our own. Raises Unavailable when the engine fails."""
    images = dict.fromkeys((parts.jobs.image, parts.jobs.judge_image))
    names = {image.of_jobs: image.name for image in images}
    return Witness(
        backend=parts.jobs.backend,
        boundary=parts.door.backend.capabilities.boundary,
        judge=parts.home.backend.capabilities.boundary,
        caveats=parts.door.backend.capabilities.caveats,
        commands=tuple(_command(what, job, door, names[job.image]) for what, job, door in _jobs(parts)),
        images=tuple([await list_packages(parts, image) for image in images]),
    )


def _jobs(parts: Parts) -> list[tuple[str, Job, Door]]:
    """Each with the door that it goes through."""
    found = parts.judge_mode.commands(parts)
    for spec in parts.task.guards:
        door = parts.home if spec.place == "judge" else parts.door
        found.append((f"guard {spec.name}", parts.jobs.guard(guard_record(spec)), door))
    return found


def _command(what: str, job: Job, door: Door, image: str) -> Command:
    held = door.backend.capabilities.enforcer
    asked = job.limits.model_dump(mode="json")
    return Command(
        what=what,
        image=image,
        build=tuple(job.build),
        command=tuple(job.command),
        variables=tuple(sorted(job.env)),
        loopback=job.loopback,
        limits=tuple(Holder(name, asked[name], held(name).value) for name in Limits.model_fields),
    )
