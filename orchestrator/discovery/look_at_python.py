"""Python: a suite profiled and its calls recorded in chambers, and the functions that a judge can ask."""

import asyncio
from collections.abc import Mapping

from orchestrator.change.regions import BadRegion, Region, spans
from orchestrator.discovery.bench import LEAST_CALLS, SHOWN, Bench
from orchestrator.discovery.chambers import Seen
from orchestrator.discovery.profile import Profile, Tests, number_of, read_profile
from orchestrator.discovery.suites import Suite
from orchestrator.discovery.targets import FunctionTarget, ParameterTarget, entries, near, regions, share_of, space_of
from orchestrator.text import short

_MOST_RECORDED = 40
_MOST_REPLAYED = 6
_MOST_REGIONS = 6


async def look_at_python(bench: Bench, suite: Suite) -> None:
    bench.doing(f"a profile of {suite.name}")
    seen = await bench.laboratory.guest(("blastdoor_watch", "profile"), suite.plan)
    report = seen.report("profile.json")
    if report is None:
        bench.note(f"{suite.name} did not come to an end: {seen.why}")
        return
    # A stranger's report may be long, and others use this loop.
    profile = await asyncio.to_thread(read_profile, report, bench.repository)
    if not suite.is_tests:
        if report.get("code") != 0:
            bench.note(f"{suite.name} fails: {seen.why}")
            return
        await _time_command(bench, suite, profile)
    else:
        passing = await _guard(bench, suite, profile.tests, seen.why)
        if passing is None:
            return
        suite = passing
    await _find_functions(bench, suite, profile)


async def _guard(bench: Bench, suite: Suite, tests: Tests, why: str) -> Suite | None:
    """The tests that pass, tried once more as a guard will run them; None where there are none. `why` is how the run
    of them ended.
    """
    wrong = (*tests.broken, *tests.failed)
    if not tests.passed and tests.cut:
        bench.note("no test had passed when their time was over; raise --wall")
        return None
    if not tests.passed:
        first = (*wrong, f"none was found ({why})")[0]
        bench.note(f"no test passes as it is: {first}; mend the tests, or name what they import with --package")
        return None
    if wrong:
        suite = suite.without(tests)
        told = ", ".join(wrong[:SHOWN])
        bench.note(f"{len(wrong)} tests or files of tests fail as it is, and guard nothing: {told}")
    if tests.cut:
        bench.note("the tests take too long, were cut short and guard nothing; raise --wall for all of them")
        return suite
    await bench.guard("tests", suite.command(bench.laboratory.roots), len(wrong))
    return suite


async def _find_functions(bench: Bench, suite: Suite, profile: Profile) -> None:
    """Those whose calls could be recorded, and are answered alike when they are asked again."""
    names = {number: profile.spots[number].definition for number in entries(profile, _MOST_RECORDED)}
    if not names:
        bench.note(f"{suite.name}: no function of a module is called for long enough to be worth it")
    whys = {number: _no_region(bench, f"{it.path}::{it.name}") for number, it in names.items()}
    wanted = {number: it for number, it in names.items() if not whys[number]}
    if left := [f"{it.path}::{it.name} ({whys[number]})" for number, it in names.items() if whys[number]]:
        more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
        bench.note(f"left alone, since no region can be made of them: {'; '.join(left[:SHOWN])}{more}")
    if not wanted:
        return
    bench.doing(f"calls of {len(wanted)} functions")
    plan = {**suite.plan, "functions": [[it.path, it.name] for it in wanted.values()]}
    seen = await bench.laboratory.guest(("blastdoor_watch", "record"), plan)
    kept, why = _recorded(seen, list(wanted))
    if not kept:
        bench.note(f"no calls of {suite.name} could be recorded: {why}")
    for number, calls in list(kept.items())[:_MOST_REPLAYED]:
        await _replay(bench, number, profile, calls)


async def _replay(bench: Bench, number: int, profile: Profile, calls: bytes) -> None:
    spot = profile.spots[number]
    path, name = spot.definition.path, spot.definition.name
    module = bench.repository.module_of(path)
    bench.doing(f"{name} once more")
    pool = await bench.replay({"module": module, "function": name}, calls)
    if isinstance(pool, str):
        bench.note(f"{path}::{name}: {pool}")
        return
    editable = tuple(it for it in regions(profile, number) if not _no_region(bench, it))
    target = FunctionTarget(
        module=module,
        function=name,
        path=path,
        share=share_of(profile, number),
        calls=spot.calls,
        editable=editable,
        parameters=near(bench.repository.parameters, editable),
        pool=pool,
    )
    bench.offer(target)
    if space := space_of(target, bench.repository):
        bench.offer(ParameterTarget(target, space))


async def _time_command(bench: Bench, suite: Suite, profile: Profile) -> None:
    """A benchmark or script as a whole."""
    hot = sorted(profile.spots, key=lambda it: -it.own_s)[:_MOST_REGIONS]
    names = (f"{it.definition.path}::{it.definition.name}" for it in hot)
    if editable := tuple(it for it in names if not _no_region(bench, it)):
        command = suite.command(bench.laboratory.roots)
        await bench.time_command(command, suite.paths[0], editable, "it times what no single call shows")


def _no_region(bench: Bench, entry: str) -> str:
    """Why the file cannot be cut at this function, as where its name is there twice; empty where it can."""
    path, _, name = entry.partition("::")
    try:
        spans(path, bench.repository.files[path], (Region(name, definition=True),))
    except BadRegion as error:
        return str(error)
    return ""


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
        if number_of(table.get("kept")) >= LEAST_CALLS:
            found[number] = seen.outcome.outputs.get(f"calls-{at}.bin", b"")
        elif isinstance(said, str) and said:
            why = short(said, 200)
    return found, why
