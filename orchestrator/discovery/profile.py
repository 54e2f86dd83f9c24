"""Where the time of a repository's tests goes, by its own definitions. The report comes out of a chamber: names that
its files do not define are dropped, and what is no number counts as none.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.discovery.repository import Definition, Repository
from orchestrator.text import short

_MOST_FAILED = 200
MOST_ROWS = 50_000
_MOST_EDGES = 500_000


@dataclass(frozen=True)
class Spot:
    """A definition, how often it was called, and its seconds: its own, and with all that it calls."""

    definition: Definition
    calls: int
    own_s: float
    all_s: float


@dataclass(frozen=True)
class Tests:
    """How the tests ended, by their own word. `cut`: they were ended, since they took too long."""

    passed: int = 0
    failed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Profile:
    """`beneath` has, for each spot by its number, those that it calls."""

    seconds: float
    tests: Tests
    spots: tuple[Spot, ...]
    beneath: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def reached(self, start: int) -> set[int]:
        """Itself and all that is called from there, directly or not."""
        found, waiting = {start}, [start]
        while waiting:
            more = self.beneath.get(waiting.pop(), frozenset()) - found
            found |= more
            waiting += more
        return found


def read_profile(report: Mapping[str, Any], repository: Repository) -> Profile:
    rows = report.get("rows")
    known = {path: _Lines(repository.definitions(path)) for path in repository.code}
    found: dict[Definition, Spot] = {}
    owners: dict[int, Definition] = {}
    for number, row in enumerate(rows[:MOST_ROWS] if isinstance(rows, list) else ()):
        owner = _owner(row, known)
        if owner is not None:
            owners[number] = owner
            found[owner] = _with(found.get(owner, Spot(owner, 0, 0.0, 0.0)), row)
    order = {it: number for number, it in enumerate(found)}
    beneath: dict[int, set[int]] = defaultdict(set)
    for caller, callee in _pairs(report.get("edges")):
        if caller in owners and callee in owners:
            beneath[order[owners[caller]]].add(order[owners[callee]])
    return Profile(
        number_of(report.get("seconds")),
        read_tests(report.get("tests")),
        tuple(found.values()),
        {caller: frozenset(callees) for caller, callees in beneath.items()},
    )


class _Lines:
    """The definitions of a file, by line."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._lines = [it.line for it in definitions]

    def at(self, line: int) -> Definition | None:
        number = bisect_right(self._lines, line) - 1
        return self._definitions[number] if number >= 0 and line <= self._definitions[number].end else None


def _owner(row: object, known: Mapping[str, _Lines]) -> Definition | None:
    """The definition that a row is of: itself, or the one that it lies in, as comprehensions and inner functions do."""
    if not isinstance(row, list) or len(row) != 6 or not isinstance(row[0], str) or row[0] not in known:
        return None
    return known[row[0]].at(int(number_of(row[1])))


def _with(spot: Spot, row: list[Any]) -> Spot:
    """Of what lies in it, only its own time counts: the rest is within that of the whole."""
    own_s = spot.own_s + number_of(row[4])
    definition = spot.definition
    if int(number_of(row[1])) != definition.line or row[2] != definition.name.rpartition(".")[2]:
        return replace(spot, own_s=own_s)
    return replace(spot, calls=int(number_of(row[3])), own_s=own_s, all_s=number_of(row[5]))


def read_tests(told: object) -> Tests:
    table = told if isinstance(told, dict) else {}
    failed, broken = _names(table.get("failed")), _names(table.get("broken"))
    return Tests(int(number_of(table.get("passed"))), failed, broken, table.get("cut") is True)


def number_of(value: object) -> float:
    """A number that is one; else 0."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    return float(value) if math.isfinite(value) and value >= 0 else 0.0


def _pairs(edges: object) -> Iterator[tuple[int, int]]:
    flat = [it for it in edges[: 2 * _MOST_EDGES] if isinstance(it, int)] if isinstance(edges, list) else []
    return zip(flat[::2], flat[1::2], strict=False)


def _names(told: object) -> tuple[str, ...]:
    return tuple(short(it, 300) for it in told[:_MOST_FAILED] if isinstance(it, str)) if isinstance(told, list) else ()
