"""Node: tests run with a module of ours looking on, and the exported functions that a judge can ask."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.discovery.bench import LEAST_CALLS, SHOWN, Bench
from orchestrator.discovery.chambers import Seen
from orchestrator.discovery.node import NODE_PATH, NodePackage
from orchestrator.discovery.profile import number_of, read_tests
from orchestrator.discovery.targets import FunctionTarget, Language, near
from orchestrator.text import short

_MOST_REPLAYED = 6
_MOST_FILES = 6
_MOST_BENCHMARKS = 2
_HOT_SHARE = 0.03
_LEAST_SHARE = 0.005
_EXPORT = re.compile(r"[\w$.-]{1,100}")


@dataclass(frozen=True)
class _Function:
    """An exported function, the seconds beneath it, and the files in which they went, the hottest first."""

    file: str
    name: str
    calls: int
    seconds: float
    files: tuple[str, ...]
    hottest: str
    recorded: bytes


async def look_at_node(bench: Bench, package: NodePackage) -> None:
    if package.unknown:
        shown = ", ".join(package.unknown[:8])
        bench.note(f"packages that no table of Debian's has: {shown}; --package IMPORT=NAME names one of Debian's")
    if package.tests:
        await _tests(bench, package)
    for path in package.benchmarks[:_MOST_BENCHMARKS]:
        words = ("env", f"NODE_PATH={NODE_PATH}", "node", path)
        await bench.time_command(words, path, package.code[:_MOST_FILES], "it times what no single call shows")


async def _tests(bench: Bench, package: NodePackage) -> None:
    bench.doing("the tests of the Node package, with their calls")
    seen = await bench.laboratory.guest(("blastdoor_node",), package.plan())
    report = seen.report("node.json")
    if report is None:
        bench.note(f"the tests did not come to an end: {seen.why}")
        return
    tests = read_tests(report.get("tests"))
    failed = tuple(it for it in tests.failed if it in package.tests)
    if not tests.passed or len(failed) == len(package.tests):
        why = "their time was over; raise --wall" if tests.cut else seen.why
        bench.note(f"no file of tests passes as it is: {why}")
        return
    if failed:
        cut = " or did not end in time (raise --wall)" if tests.cut else ""
        bench.note(f"{len(failed)} files of tests fail as it is{cut}, and guard nothing: {', '.join(failed[:SHOWN])}")
    guard = package.guard(failed)
    await bench.guard("tests-of-node", guard, len(failed))
    functions, why = _functions(seen, report, package)
    if not functions:
        bench.note(f"no calls of exported functions could be recorded: {why}")
        await bench.time_command(
            guard, package.tests[0], package.code[:_MOST_FILES], "no single function could be asked"
        )
    for it in functions[:_MOST_REPLAYED]:
        await _replay(bench, package, it, max(one.seconds for one in functions))


def _functions(seen: Seen, report: Mapping[str, Any], package: NodePackage) -> tuple[list[_Function], str]:
    """Those with enough calls, by the seconds beneath them; and why others have none."""
    told = report.get("functions")
    why = "nothing was called with values that could be taken to another chamber"
    if not package.can_be_watched:
        why = "jest loads modules in a way of its own"
    found = []
    for at, it in enumerate(told if isinstance(told, list) else ()):
        if not isinstance(it, dict) or it.get("file") not in package.code or not _is_export(it.get("name")):
            continue
        if number_of(it.get("kept")) >= LEAST_CALLS:
            calls = seen.outcome.outputs.get(f"calls-{at}.bin", b"")
            files, hottest = _hot(it, package)
            count, seconds = int(number_of(it.get("calls"))), number_of(it.get("seconds"))
            found.append(_Function(it["file"], it["name"], count, seconds, files, hottest, calls))
        elif isinstance(it.get("why"), str) and it["why"]:
            why = short(it["why"], 200)
    most = max((it.seconds for it in found), default=0.0)
    return sorted((it for it in found if it.seconds >= _LEAST_SHARE * most), key=lambda it: -it.seconds), why


def _is_export(name: object) -> bool:
    return isinstance(name, str) and bool(_EXPORT.fullmatch(name))


def _hot(told: Mapping[str, Any], package: NodePackage) -> tuple[tuple[str, ...], str]:
    """Its own file and the others in which the time goes, and the one place where most of it does."""
    rows = told.get("hot")
    spots = [it for it in (rows if isinstance(rows, list) else ()) if isinstance(it, list) and len(it) == 4]
    spots = [it for it in spots if it[0] in package.code]
    times: dict[str, float] = {told["file"]: 0.0}
    for file, _, _, seconds in spots:
        times[file] = times.get(file, 0.0) + number_of(seconds)
    whole = sum(times.values())
    others = sorted(
        (it for it in times if it != told["file"] and times[it] >= _HOT_SHARE * whole), key=times.__getitem__
    )
    hottest = ""
    if spots:
        file, line, name, _ = max(spots, key=lambda it: number_of(it[3]))
        hottest = f"{short(str(name), 60) or 'a function'} ({file}:{int(number_of(line))})"
    return (told["file"], *others[::-1])[:_MOST_FILES], hottest


async def _replay(bench: Bench, package: NodePackage, it: _Function, most: float) -> None:
    bench.doing(f"{it.name} of {it.file} once more")
    pool = await bench.replay({"node": [it.file, it.name]}, it.recorded)
    if isinstance(pool, str):
        bench.note(f"{it.file}::{it.name}: {pool}")
        return
    bench.offer(
        FunctionTarget(
            module=it.file,
            function=it.name,
            path=it.file,
            share=min(1.0, it.seconds / most) if most else 0.0,
            calls=it.calls,
            editable=it.files,
            parameters=near(package.parameters, it.files),
            pool=pool,
            language=Language.NODE,
            hottest=it.hottest,
        )
    )
