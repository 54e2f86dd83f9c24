"""What all languages have in common: what was found so far, calls asked again in chambers, whole commands timed."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.discovery.chambers import CALLS, Laboratory, Seen, completed
from orchestrator.discovery.profile import number_of
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.targets import CommandTarget, FunctionTarget, ParameterTarget, Pool, Target
from orchestrator.judge.guest.blastdoor_programs import without_numbers

REPLAY_S = 40.0
LEAST_CALLS = 3
_LEAST_ANSWERS = 2
_COMMAND_RUNS = 3
_OUTPUT_BYTES = 1 << 18
SHOWN = 3


@dataclass(frozen=True)
class Guard:
    """Tests as a candidate must pass them, how long they took, and how many fail as it is."""

    name: str
    command: tuple[str, ...]
    seconds: float
    left_out: int


@dataclass
class Found:
    """`notes` say what was seen and what could not be had, each in one line."""

    targets: list[Target] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Bench:
    """`functions` has the best target of each function so far. `work_s` is how many seconds of work the questions to
    one function should be together.
    """

    repository: Repository
    laboratory: Laboratory
    doing: Callable[[str], None]
    work_s: float
    found: Found = field(default_factory=Found)
    functions: dict[str, FunctionTarget | ParameterTarget] = field(default_factory=dict)

    def note(self, text: str) -> None:
        self.found.notes.append(text)

    def offer(self, target: FunctionTarget | ParameterTarget) -> None:
        if target.worth > getattr(self.functions.get(target.title), "worth", 0.0):
            self.functions[target.title] = target

    async def guard(self, name: str, command: Sequence[str], left_out: int) -> None:
        """Tries the tests that pass once more, as a guard will run them."""
        self.doing(f"{name} as a guard")
        seen = await self.laboratory.command(command)
        if completed(seen):
            self.found.guards.append(Guard(name, tuple(command), seen.seconds, left_out))
        else:
            self.note(f"the tests that passed do not pass alone, and guard nothing: {seen.why}")

    async def replay(self, named: Mapping[str, object], calls: bytes) -> Pool | str:
        """The questions that a function answers each time alike, or why there are none."""
        plan = {**named, "calls": CALLS, "seconds": REPLAY_S, "work": self.work_s, "seed": secrets.randbits(128)}
        return pool_of(await self.laboratory.guest(("blastdoor_replay",), plan, calls=calls))

    async def time_command(self, words: Sequence[str], path: str, editable: tuple[str, ...], why: str) -> None:
        """A command as a whole becomes a target, if it ends well each time."""
        name, times, said = " ".join(words), [], []
        for number in range(1, _COMMAND_RUNS + 1):
            self.doing(f"{name}: run {number} of {_COMMAND_RUNS}")
            seen = await self.laboratory.command(("sh", "-c", '"$@" >"$BLASTDOOR_OUT/stdout"', "sh", *words))
            if not completed(seen):
                self.note(f"{name} fails: {seen.why}")
                return
            times.append(seen.seconds)
            said.append(seen.outcome.outputs.get("stdout", b"")[: _OUTPUT_BYTES + 1])
        how, output = alike(said)
        self.found.targets.append(CommandTarget(tuple(words), path, tuple(times), editable, why, how, output))


def alike(outputs: Sequence[bytes]) -> tuple[str, str]:
    """How far one run prints what another does, and that; of a long one nothing is compared."""
    if any(len(it) > _OUTPUT_BYTES for it in outputs):
        return "code", ""
    said = [it.decode("utf-8", "replace") for it in outputs]
    if len(set(said)) == 1:
        return "exact", said[0]
    bare = {without_numbers(it) for it in said}
    return ("numbers", bare.pop()) if len(bare) == 1 else ("code", "")


def pool_of(seen: Seen) -> Pool | str:
    report = seen.report("replay.json")
    if report is None:
        return f"asked again, it did not come to an end: {seen.why}"
    totals = report.get("totals")
    times = tuple(map(number_of, totals)) if isinstance(totals, list) else ()
    count = int(number_of(report.get("pool")))
    if count < LEAST_CALLS:
        return "asked again, it does not answer alike, or changes its arguments"
    if number_of(report.get("answers")) < _LEAST_ANSWERS:
        return "it gives the same answer to all: what it does cannot be seen in that"
    if not times or not min(times):
        return "asked again, its calls could not be timed"
    recorded, made = (int(number_of(report.get(name))) for name in ("recorded", "made"))
    return Pool(seen.outcome.outputs.get("pool.bin", b""), recorded, count, times, made)
