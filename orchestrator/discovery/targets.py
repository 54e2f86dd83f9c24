"""What could be searched for in a repository, the most promising first."""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from orchestrator.discovery.profile import Profile, Spot
from orchestrator.discovery.repository import Parameter, Repository


class Language(StrEnum):
    """In which a judge can call a function: each has a guest that serves it."""

    PYTHON = "Python"
    NODE = "Node"


BATCHES = 8
# A batch must take so long that a channel between chambers, busy as it may be, tells a faster one from it.
_BATCH_S = 0.004
_MOST_REPEATS = 1000
_MOST_REGIONS = 6
_HOT_SHARE = 0.03
# What bringing a question and its answer takes beside the call itself, about.
_CARRIED_S = 20e-6
_LEAST_SHARE = 0.005
PARAMETERS_FILE = "blastdoor_parameters/point.json"
_MOST_PARAMETERS = 8
# Beyond these a number is a seed, or stands for "never": some times less or more of it is not to be had exactly.
_LEAST_VALUE = 1e-300
_MOST_VALUE = 1e15
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")


def spread_of(times: Sequence[float]) -> float:
    """How far the usual time of the same work is from their median, as a share of it."""
    middle = statistics.median(times)
    return statistics.median(abs(it - middle) for it in times) / middle if middle else 0.0


@dataclass(frozen=True)
class Pool:
    """Questions with known answers: so many were recorded, so many there are now; `totals` are the seconds that all of
    them took, each time; so many were `made` of the recorded ones.
    """

    data: bytes
    recorded: int
    count: int
    totals: tuple[float, ...]
    made: int

    @property
    def seconds(self) -> float:
        return statistics.median(self.totals)

    @property
    def spread(self) -> float:
        return spread_of(self.totals)

    @property
    def call_s(self) -> float:
        return self.seconds / self.count

    @property
    def batches(self) -> int:
        return max(3, min(BATCHES, self.count))

    @property
    def repeat(self) -> int:
        """How often each question must be asked at once for a batch to be long enough; 1 where that is never needed."""
        batch = self.seconds / self.batches
        return 1 if batch >= _BATCH_S else min(_MOST_REPEATS, int(_BATCH_S / max(batch, 1e-7)) + 1)


@dataclass(frozen=True)
class FunctionTarget:
    """A function that a judge can call, and what of the code beneath it takes the time."""

    module: str
    function: str
    path: str
    share: float
    calls: int
    editable: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    pool: Pool
    language: Language = Language.PYTHON
    hottest: str = ""

    tier = "relay"
    metric = "seconds"

    @property
    def title(self) -> str:
        return f"{self.path}::{self.function}"

    @property
    def worth(self) -> float:
        """The share of the tests' time, as far as a judge could see it become less."""
        call_s = self.pool.call_s
        return self.share * call_s / (call_s + _CARRIED_S) / (1 if self.pool.repeat == 1 else 2)

    @property
    def noise(self) -> float:
        return self.pool.spread

    @property
    def run_s(self) -> float:
        return self.pool.seconds * self.pool.repeat

    @property
    def reason(self) -> str:
        return (
            f"{self.share:.0%} of the profiled time is beneath it; {self.calls:,} calls; {self.pool.recorded} recorded"
            f" and {self.pool.count - min(self.pool.recorded, self.pool.count)} made from them, which it answers alike"
            f" each time{f'; most of it in {self.hottest}' if self.hottest else ''}"
        )

    @property
    def holes(self) -> list[str]:
        """How its judge can be cheated, as far as that is known before an audit."""
        found = []
        if self.pool.made < self.pool.batches - 1:
            found.append(
                "too few new questions could be made, so those of the tests are timed, too: a table of their answers"
                " would gain"
            )
        if self.pool.repeat > 1:
            found.append(
                f"its calls are short, so each question is asked {self.pool.repeat} times in one judging: a cache of"
                " answers would gain"
            )
        return found

    @property
    def doubts(self) -> list[str]:
        if self.pool.call_s >= _CARRIED_S:
            return []
        return [
            f"a call takes {self.pool.call_s * 1e6:.1f} µs, less than bringing it to another chamber: a gain looks"
            " smaller than it is"
        ]


@dataclass(frozen=True)
class ParameterTarget:
    """Numbers that the code beneath a function reads, searched for by points: no line of code changes. Judged as the
    function is, whose answers must stay.
    """

    base: FunctionTarget
    space: tuple[Parameter, ...]

    tier = "relay"
    metric = "seconds"
    editable = (PARAMETERS_FILE,)

    @property
    def title(self) -> str:
        return f"the numbers beneath {self.base.title}: {', '.join(name_of(it) for it in self.space)}"

    @property
    def worth(self) -> float:
        """Less than that of the function, of which a number seldom is more than a part."""
        return self.base.worth / 4

    @property
    def noise(self) -> float:
        return self.base.noise

    @property
    def run_s(self) -> float:
        return self.base.run_s

    @property
    def reason(self) -> str:
        told = ", ".join(map(str, self.space))
        return (
            f"{told}: the code that takes the time reads them, and {self.base.share:.0%} of it is beneath the function"
        )

    @property
    def holes(self) -> list[str]:
        return self.base.holes

    @property
    def doubts(self) -> list[str]:
        return self.base.doubts


def name_of(parameter: Parameter) -> str:
    """In a space of points: the constant's own name, or with that of its function before it."""
    return f"{parameter.of}_{parameter.name}".replace(".", "_") if parameter.of else parameter.name


def space_of(target: FunctionTarget, repository: Repository) -> tuple[Parameter, ...]:
    """What the editable functions read: constants of their files, and defaults of their own arguments. None of two
    that have one name, and none of which nobody knows where to search: zero and less, and what has no range around it.
    """
    found: list[Parameter] = []
    for entry in target.editable:
        path, _, name = entry.partition("::")
        it = next(it for it in repository.definitions(path) if it.name == name)
        constants = [one for one in repository.facts[path].parameters if one.name in it.reads and not one.of]
        found += constants
        found += [Parameter(path, it.line, argument, value, of=it.name) for argument, value in it.defaults]
    plain = [
        it for it in dict.fromkeys(found) if _LEAST_VALUE <= it.value <= _MOST_VALUE and _PLAIN.fullmatch(name_of(it))
    ]
    once = [it for it in plain if len({one for one in found if name_of(one) == name_of(it)}) == 1]
    return tuple(once[:_MOST_PARAMETERS])


@dataclass(frozen=True)
class CommandTarget:
    """A whole command, started and timed by a judge in another chamber. `output` is what it prints, as far as that is
    the same each time; `how` says how far that is (blastdoor_command).
    """

    command: tuple[str, ...]
    path: str
    seconds: tuple[float, ...]
    editable: tuple[str, ...]
    why: str
    how: str
    output: str

    tier = "relay"
    metric = "seconds"
    worth = 0.0
    doubts: ClassVar[tuple[str, ...]] = ()

    @property
    def title(self) -> str:
        return " ".join(self.command)

    @property
    def noise(self) -> float:
        return spread_of(self.seconds)

    @property
    def run_s(self) -> float:
        return statistics.median(self.seconds)

    @property
    def reason(self) -> str:
        return f"a whole command, since {self.why}"

    @property
    def holes(self) -> list[str]:
        compared = {
            "exact": "what it prints is compared",
            "numbers": "what it prints is compared, but for the numbers in it",
            "code": "what it prints is another thing each time, so only its exit code is looked at",
        }
        return [
            f"{compared[self.how]}, and is known to all who ran it once: a program that does nothing but print that"
            " would seem fastest; the tests guard, and you must read what wins"
        ]


Target = FunctionTarget | ParameterTarget | CommandTarget


def entries(profile: Profile, most: int) -> list[int]:
    """Spots that a judge might call, by the time beneath them: functions of a module, not those of a class."""
    whole = total(profile)
    found = [
        number
        for number, it in enumerate(profile.spots)
        if it.definition.plain and it.calls and it.all_s >= _LEAST_SHARE * whole
    ]
    return sorted(found, key=lambda number: -profile.spots[number].all_s)[:most]


def total(profile: Profile) -> float:
    """The seconds that the repository's own code took, and what that called outside of it."""
    return max([it.all_s for it in profile.spots], default=0.0)


def share_of(profile: Profile, number: int) -> float:
    whole = total(profile)
    return min(1.0, profile.spots[number].all_s / whole) if whole else 0.0


def regions(profile: Profile, entry: int) -> tuple[str, ...]:
    """The function itself and what takes most of the time beneath it, for `editable`; none lies in another."""
    start = profile.spots[entry]
    hot = [profile.spots[it] for it in profile.reached(entry) if it != entry]
    hot = sorted((it for it in hot if it.own_s >= _HOT_SHARE * start.all_s), key=lambda it: -it.own_s)
    kept: list[Spot] = []
    for it in [start, *hot]:
        if len(kept) < _MOST_REGIONS and not any(_overlap(it, other) for other in kept):
            kept.append(it)
    return tuple(f"{it.definition.path}::{it.definition.name}" for it in kept)


def _overlap(one: Spot, two: Spot) -> bool:
    a, b = one.definition, two.definition
    return a.path == b.path and a.line <= b.end and b.line <= a.end


def near(parameters: Sequence[Parameter], editable: Sequence[str]) -> tuple[Parameter, ...]:
    """The parameters of the files in which a target may be changed."""
    files = {it.partition(":")[0] for it in editable}
    return tuple(it for it in parameters if it.path in files)[:8]


def ranked(targets: Sequence[Target]) -> list[Target]:
    """Those with a hole come after all others: people take the first."""
    return sorted(targets, key=lambda it: (bool(it.holes), -it.worth))
