"""Dollars per second of a resource, as data: they change with a release, and a user who has others says so."""

import time
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, Field

from sandbox.errors import Refused
from sandbox.job import Limits

# Seconds that go on while this machine sleeps, as a provider's do. Not to be mixed with `time.monotonic`.
billed_clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


# Other names of kinds, as providers take them too: any case, and short for the one that is meant by it.
_ALIASES = {"A10G": "A10", "A100": "A100-40GB"}


class Rates(BaseModel, extra="forbid", frozen=True):
    """What a provider asks per second. The default is one's own machine: nothing."""

    cpu: float = Field(default=0.0, ge=0)
    memory_gib: float = Field(default=0.0, ge=0)
    gpu: dict[str, float] = Field(default_factory=dict)

    def per_second(self, limits: Limits) -> float:
        """Dollars for one second of a chamber that uses all it may. Refused when a GPU has no price."""
        total = limits.cpus * self.cpu + limits.memory / 1024**3 * self.memory_gib
        if limits.gpu and self.gpu:
            if not (kind := self.kind(limits.gpu.kind)):
                raise Refused(f"no price is known for the GPU {limits.gpu.kind}; known are {', '.join(self.gpu)}")
            total += limits.gpu.count * self.gpu[kind]
        return total

    def kind(self, name: str) -> str | None:
        """The kind with a price that is meant by a name; None where there is none."""
        known = {kind.upper(): kind for kind in self.gpu}
        name = name.upper()
        return known.get(name) or known.get(_ALIASES.get(name, name))


@dataclass(frozen=True, slots=True)
class Terms:
    """What a provider charges for beyond the time that a job may take: all of it is reserved, little of it is used.

    `opening_s` passes between create and ready, `closing_s` between the end and the last billed second, at worst. One
    that was silent for `quiet_s` may be asked whether it is there, and answers within `answer_s` as a rule.
    """

    opening_s: float = 0.0
    closing_s: float = 0.0
    quiet_s: float = 30.0
    answer_s: float = 3.0


@dataclass(frozen=True, slots=True)
class Bill:
    """What a chamber has cost. `final`: nothing more is charged, since its end is confirmed or since nobody charges.

    Of a rented chamber it runs from create to the confirmed end, else from the moment at which it serves a job.
    `unseen` names what was rented and whose end is not confirmed.
    """

    usd: float = 0.0
    seconds: float = 0.0
    final: bool = True
    unseen: str = ""


FREE = Terms()
LOCAL = Rates()

# Modal's public page, mid 2026.
MODAL = Rates(
    cpu=0.00003942,
    memory_gib=0.00000667,
    gpu={
        "T4": 0.000164,
        "L4": 0.000222,
        "A10": 0.000306,
        "L40S": 0.000542,
        "A100-40GB": 0.000583,
        "A100-80GB": 0.000694,
        "H100": 0.001097,
        "H200": 0.001261,
        "B200": 0.001736,
    },
)
