"""Time that tests took: by folder beside the budget that the repository keeps, and the slowest of them."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

BUDGET = Path(__file__).resolve().parents[1] / "tests" / "budget.toml"
TIMES = "TESTS_TIMES"  # where a run of pytest writes them
SLOWEST = 20
SPLIT = ("tests/orchestrator/", "tests/sandbox/")  # their folders are counted one by one


def read_times(path: Path) -> tuple[Counter[str], Counter[str], set[str]]:
    """Seconds of each test, set-up and teardown included: a worker's time, not the machine's; seconds in which it
    computed; and those left out.
    """
    times: Counter[str] = Counter()
    computed: Counter[str] = Counter()
    left_out = set()
    for line in path.read_text().splitlines():
        test, seconds, processor = json.loads(line)
        if seconds is None:
            left_out.add(test)
        else:
            times[test] += seconds
            computed[test] += processor
    return times, computed, left_out


def summary(path: Path, minutes: float, budget: Path = BUDGET) -> Iterator[str]:
    """Lines for whoever ran the tests; a budget that was passed is named in the last ones."""
    times, computed, left_out = read_times(path)
    allowed = tomllib.loads(budget.read_text())
    seconds: dict[str, float] = allowed["seconds"]
    folders, computing = by_folder(times), by_folder(computed)
    yield f"{len(times)} tests took {minutes:.1f} min, {sum(times.values()) / 60:.1f} min of workers"
    yield "seconds by folder, those in which it computed (without engines), and the budget:"
    yield from (
        f"{took:7.0f} {computing[name]:6.0f} {seconds.get(name, 0):6.0f}  {name}"
        for name, took in folders.most_common()
    )
    yield "the slowest tests, in seconds:"
    yield from (f"{took:7.1f}  {test}" for test, took in times.most_common(SLOWEST))
    if left_out:
        files = sorted({test.partition("::")[0] for test in left_out})
        yield f"left out, since nothing they are about was touched ({len(left_out)} tests; --thorough runs them):"
        yield from (f"  {file}" for file in files)
    if minutes > allowed["minutes"]:
        yield f"over budget: {minutes:.1f} min in all, {allowed['minutes']} are allowed"
    over = [name for name, took in folders.items() if took > seconds.get(name, 0)]
    yield from (f"over budget: {name}, {folders[name]:.0f} s where {seconds.get(name, 0)} are allowed" for name in over)


def by_folder(times: Counter[str]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for test, took in times.items():
        sums[folder(test)] += took
    return sums


def folder(test: str) -> str:
    """`tests/docs`, and `tests/sandbox/runc` where a folder is split; a file beside folders goes with its folder."""
    parts = test.partition("::")[0].split("/")
    depth = 3 if test.startswith(SPLIT) else 2
    return "/".join(parts[: min(depth, len(parts) - 1)])
