"""From a job to what is asked of Modal. Whatever can be refused is refused here, before anything costs."""

import importlib.util
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.errors import Refused
from sandbox.job import Gpu, Job, Limits

if TYPE_CHECKING:
    import modal

    from sandbox.config import ModalConfig

LONGEST_S = 24 * 3600
# Ending takes a moment, and clocks differ.
SPARE_S = 60.0
MOST_GPUS = 8
FEWER_GPUS = {"A10": 4}
# Modal may give an H200 to who asks for an H100, unless told not to; we would refuse it after it was paid.
EXACTLY = {"H100": "H100!"}
MIB = 1024**2
_ID = re.compile(r"im-[A-Za-z0-9]+")
# Images of this machine, which Modal cannot see.
_LOCAL = "blastdoor-"


@dataclass(frozen=True, slots=True)
class Order:
    """One sandbox, as it is asked for. `memory` in MiB; request and limit are always the same."""

    name: str
    tags: Mapping[str, str]
    image: "modal.Image"
    cpus: float
    memory: int
    gpu: str | None
    lifetime_s: int
    command: tuple[str, ...]


def check_installed() -> None:
    if importlib.util.find_spec("modal") is None:
        raise Refused("the backend modal needs the package modal; install blastdoor with its extra modal")


def lifetime(config: "ModalConfig", job: Job) -> int:
    """The longest that a sandbox for this job can be needed: opening, waiting, the job's own limits, the end."""
    limits, deadlines = job.limits, config.deadlines
    own = limits.wall + limits.grace + (limits.build if job.build else 0.0)
    idle = config.warm_idle if config.warm else 0.0
    seconds = math.ceil(deadlines.provision + idle + deadlines.around + own + SPARE_S)
    if seconds > LONGEST_S:
        raise Refused(
            f"the job could need a sandbox for {seconds / 3600:.1f} h, and Modal ends every one after 24 h;"
            " lower limits.wall or limits.build"
        )
    return seconds


def gpu(config: "ModalConfig", wanted: Gpu | None) -> str | None:
    """Modal's word for it. Only kinds with a price: what cannot be reserved is not rented."""
    if wanted is None:
        return None
    if not (kind := config.rates.kind(wanted.kind)):
        known = ", ".join(config.rates.gpu) or "none"
        raise Refused(f"Modal has no GPU {wanted.kind} that we know the price of; it has {known}")
    most = FEWER_GPUS.get(kind, MOST_GPUS)
    if wanted.count > most:
        raise Refused(f"Modal gives at most {most} GPUs of kind {kind} to one sandbox, not {wanted.count}")
    return f"{EXACTLY.get(kind, kind)}:{wanted.count}"


def as_sold(config: "ModalConfig", job: Job) -> Job:
    """The job with Modal's own name for its GPU: what comes is compared with what was bought."""
    wanted = job.limits.gpu
    if wanted is None or not (kind := config.rates.kind(wanted.kind)):
        return job
    limits = job.limits.model_copy(update={"gpu": Gpu(kind=kind, count=wanted.count)})
    return job.model_copy(update={"limits": limits})


def memory(limits: Limits) -> int:
    """In MiB, as Modal counts; a broken one counts whole."""
    return -(-limits.memory // MIB)


def shape(job: Job, seconds: int) -> tuple[object, ...]:
    """Equal for jobs that can take each other's sandbox."""
    limits = job.limits
    held = (limits.cpus, memory(limits), limits.pids, limits.open_files, limits.work_bytes, limits.work_inodes)
    return (job.image, job.inputs, held, limits.gpu, seconds)


def reference(config: "ModalConfig", name: str) -> str:
    """An id at Modal or a name in a registry. Our own images exist on this machine only: the base stands for them."""
    return config.base if name.startswith(_LOCAL) else name


def is_id(name: str) -> bool:
    return _ID.fullmatch(name) is not None
