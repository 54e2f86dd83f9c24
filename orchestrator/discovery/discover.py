"""From a repository to a ranked list of what could be searched for: profiled, recorded and asked again in chambers."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.change.regions import BadRegion, Region, spans
from orchestrator.discovery.chambers import CALLS, Laboratory, Seen, completed
from orchestrator.discovery.profile import Profile, Tests, number_of, read_profile
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.suites import Suite, suites_of
from orchestrator.discovery.targets import (
    CommandTarget,
    FunctionTarget,
    Pool,
    Target,
    entries,
    near,
    ranked,
    regions,
    share_of,
)
from orchestrator.text import short

_MOST_RECORDED = 40
_MOST_REPLAYED = 6
_MOST_REGIONS = 6
_REPLAY_S = 25.0
_LEAST_CALLS = 3
_LEAST_ANSWERS = 2
_COMMAND_RUNS = 3
_SHOWN = 3


@dataclass(frozen=True)
class Guard:
    """The repository's tests as a candidate must pass them, and how long they took."""

    suite: Suite
    seconds: float
    left_out: int


@dataclass
class Found:
    """`notes` say what was seen and what could not be had, each in one line."""

    targets: list[Target] = field(default_factory=list)
    guard: Guard | None = None
    notes: list[str] = field(default_factory=list)


async def discover(
    repository: Repository, laboratory: Laboratory, doing: Callable[[str], None], work_s: float = 0.5
) -> Found:
    """`work_s` is how many seconds of work the questions to one function should be together.

    Raises the sandbox's errors when the engine fails. What the repository does wrong becomes a note.
    """
    work = _Discovery(repository, laboratory, doing, work_s)
    for suite in suites_of(repository):
        await work.look_at(suite)
    work.found.targets = ranked([*work.functions.values(), *work.found.targets])
    return work.found


@dataclass
class _Discovery:
    """`functions` has the best target of each function so far."""

    repository: Repository
    laboratory: Laboratory
    doing: Callable[[str], None]
    work_s: float
    found: Found = field(default_factory=Found)
    functions: dict[str, FunctionTarget] = field(default_factory=dict)

    def note(self, text: str) -> None:
        self.found.notes.append(text)

    async def look_at(self, suite: Suite) -> None:
        self.doing(f"a profile of {suite.name}")
        seen = await self.laboratory.guest(("blastdoor_watch", "profile"), suite.plan)
        report = seen.report("profile.json")
        if report is None:
            self.note(f"{suite.name} did not come to an end: {seen.why}")
            return
        # A stranger's report may be long, and others use this loop.
        profile = await asyncio.to_thread(read_profile, report, self.repository)
        if not suite.is_tests:
            if report.get("code") != 0:
                self.note(f"{suite.name} fails: {seen.why}")
                return
            await self._time_command(suite, profile)
        else:
            passing = await self._guard(suite, profile.tests)
            if passing is None:
                return
            suite = passing
        await self._find_functions(suite, profile)

    async def _guard(self, suite: Suite, tests: Tests) -> Suite | None:
        """The tests that pass, tried once more as a guard will run them; None where there are none."""
        wrong = (*tests.broken, *tests.failed)
        if not tests.passed and tests.cut:
            self.note("no test had passed when their time was over; raise --wall")
            return None
        if not tests.passed:
            first = (*wrong, "none was found")[0]
            self.note(f"no test passes as it is: {first}; mend the tests, or name what they import with --package")
            return None
        if wrong:
            suite = suite.without(tests)
            told = ", ".join(wrong[:_SHOWN])
            self.note(f"{len(wrong)} tests or files of tests fail as it is, and guard nothing: {told}")
        if tests.cut:
            self.note("the tests take too long, were cut short and guard nothing; raise --wall for all of them")
            return suite
        self.doing("the tests as a guard")
        seen = await self.laboratory.command(suite.command(self.laboratory.roots))
        if completed(seen):
            self.found.guard = Guard(suite, seen.seconds, len(wrong))
        else:
            self.note(f"the tests that passed do not pass alone, and guard nothing: {seen.why}")
        return suite

    async def _find_functions(self, suite: Suite, profile: Profile) -> None:
        """Those whose calls could be recorded, and are answered alike when they are asked again."""
        names = {number: profile.spots[number].definition for number in entries(profile, _MOST_RECORDED)}
        wanted = {number: it for number, it in names.items() if self._can_cut(f"{it.path}::{it.name}")}
        if not wanted:
            self.note(f"{suite.name}: no function of a module is called for long enough to be worth it")
            return
        self.doing(f"calls of {len(wanted)} functions")
        plan = {**suite.plan, "functions": [[it.path, it.name] for it in wanted.values()]}
        seen = await self.laboratory.guest(("blastdoor_watch", "record"), plan)
        kept, why = _recorded(seen, list(wanted))
        if not kept:
            self.note(f"no calls of {suite.name} could be recorded: {why}")
        for number, calls in list(kept.items())[:_MOST_REPLAYED]:
            target = await self._replay(number, profile, calls)
            if target and target.worth > getattr(self.functions.get(target.title), "worth", 0.0):
                self.functions[target.title] = target

    async def _replay(self, number: int, profile: Profile, calls: bytes) -> FunctionTarget | None:
        spot = profile.spots[number]
        path, name = spot.definition.path, spot.definition.name
        module = self.repository.module_of(path)
        self.doing(f"{name} once more")
        plan = {"module": module, "function": name, "calls": CALLS, "seconds": _REPLAY_S, "work": self.work_s}
        plan["seed"] = secrets.randbits(128)
        pool = _pool_of(await self.laboratory.guest(("blastdoor_replay",), plan, calls=calls))
        if isinstance(pool, str):
            self.note(f"{path}::{name}: {pool}")
            return None
        editable = tuple(filter(self._can_cut, regions(profile, number)))
        return FunctionTarget(
            module=module,
            function=name,
            path=path,
            share=share_of(profile, number),
            calls=spot.calls,
            editable=editable,
            parameters=near(self.repository.parameters, editable),
            pool=pool,
        )

    async def _time_command(self, suite: Suite, profile: Profile) -> None:
        """A benchmark or script as a whole."""
        command = suite.command(self.laboratory.roots)
        times = []
        for number in range(1, _COMMAND_RUNS + 1):
            self.doing(f"{suite.name}: run {number} of {_COMMAND_RUNS}")
            seen = await self.laboratory.command(command)
            if not completed(seen):
                self.note(f"{suite.name} fails without a profile: {seen.why}")
                return
            times.append(seen.seconds)
        hot = sorted(profile.spots, key=lambda it: -it.own_s)[:_MOST_REGIONS]
        editable = tuple(filter(self._can_cut, (f"{it.definition.path}::{it.definition.name}" for it in hot)))
        if editable:
            why = "it times what no single call shows"
            self.found.targets.append(CommandTarget(command, suite.paths[0], tuple(times), editable, why))

    def _can_cut(self, entry: str) -> bool:
        """Whether the file can be cut at this region: its name is there once, and is a plain one."""
        path, _, name = entry.partition("::")
        try:
            return bool(spans(path, self.repository.files[path], (Region(name, definition=True),)))
        except BadRegion:
            return False


def _recorded(seen: Seen, numbers: list[int]) -> tuple[dict[int, bytes], str]:
    """The calls of each function that has enough of them, as bytes; and why others have none."""
    report = seen.report("record.json")
    told = report.get("functions") if report else None
    if not isinstance(told, list):
        return {}, seen.why
    found, why = {}, "nothing was called with values that could be taken to another chamber"
    for at, (number, it) in enumerate(zip(numbers, told, strict=False)):
        table: Mapping[str, object] = it if isinstance(it, dict) else {}
        said = table.get("why")
        if number_of(table.get("kept")) >= _LEAST_CALLS:
            found[number] = seen.outcome.outputs.get(f"calls-{at}.bin", b"")
        elif isinstance(said, str) and said:
            why = short(said, 200)
    return found, why


def _pool_of(seen: Seen) -> Pool | str:
    """The pool of questions, or why there is none."""
    report = seen.report("replay.json")
    if report is None:
        return f"asked again, it did not come to an end: {seen.why}"
    totals = report.get("totals")
    times = tuple(map(number_of, totals)) if isinstance(totals, list) else ()
    count = int(number_of(report.get("pool")))
    if count < _LEAST_CALLS:
        return "asked again, it does not answer alike, or changes its arguments"
    if number_of(report.get("answers")) < _LEAST_ANSWERS:
        return "it gives the same answer to all: what it does cannot be seen in that"
    if not times or not min(times):
        return "asked again, its calls could not be timed"
    recorded, made = (int(number_of(report.get(name))) for name in ("recorded", "made"))
    return Pool(seen.outcome.outputs.get("pool.bin", b""), recorded, count, times, made)
