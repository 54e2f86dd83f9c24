"""In which order tests run beside each other: those with an engine first, each file on one worker.

pytest-xdist's `worksteal` deals the list out in equal parts, one after the other, and a worker that has finished takes
from the end of the longest. So each part begins with whole files of slow tests, whose set-ups are then paid for once,
and ends with quick ones, which are all that moves in the end; without it, the longest test of all may begin last.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

# What a test takes beside a quick one, roughly: a campaign in processes, a provider, a chamber.
WEIGHTS = {"crash": 60, "e2e": 40, "modal": 30, "docker": 10, "attack": 5, "postgres": 5, "long": 2}
QUICK = 1


def weight(marks: Iterable[str]) -> int:
    return max((WEIGHTS.get(mark, QUICK) for mark in marks), default=QUICK)


def dealt(
    items: Sequence[Item], workers: int, file_of: Callable[[Item], str], weight_of: Callable[[Item], int]
) -> list[Item]:
    """All items, so that the parts of a `worksteal` weigh the same at their beginning."""
    quick = [item for item in items if weight_of(item) == QUICK]
    files: dict[str, list[Item]] = {}
    for item in items:
        if weight_of(item) > QUICK:
            files.setdefault(file_of(item), []).append(item)
    parts: list[list[Item]] = [[] for _ in range(workers)]
    weights = [0] * workers
    for file in sorted(files.values(), key=lambda file: -sum(map(weight_of, file))):
        lightest = weights.index(min(weights))
        parts[lightest] += file
        weights[lightest] += sum(map(weight_of, file))
    order: list[Item] = []
    for number, part in enumerate(parts):
        size = (len(items) - len(order)) // (workers - number)
        room = max(0, size - len(part))
        order += part + quick[:room]
        del quick[:room]
    return order + quick
