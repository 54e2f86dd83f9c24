"""What another node did well, taken over: a function of the same name, or a run of its lines.

Where the other's own origin is there, what it changed itself comes before what only differs.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from orchestrator.change import Effort
from orchestrator.change.comparison import common_runs
from orchestrator.proposers.operators.code import Code, Spot, read_code
from orchestrator.proposers.operators.edit import Edit, counted
from orchestrator.proposers.operators.hints import Donor, Hints, pick

STEPS = 20_000  # of the comparison; beyond, what lies between beginning and end counts as one difference
MOST_LINES = 4_000
_NOT_ITS_OWN = 0.2


@dataclass(frozen=True)
class Difference:
    """Lines `start` to `end` of ours are `new` in the other."""

    start: int
    end: int
    new: tuple[bytes, ...]


def crossover(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """A function of the same name, or part of it, from another node."""
    donor = pick(rng, hints.donors(), lambda _: 1.0)
    other = read_code(donor.data) if donor else None
    if donor is None or other is None:
        return None
    ours, theirs = _functions(code), _functions(other)
    differing = [name for name in ours if name in theirs and code.text(ours[name]) != other.text(theirs[name])]
    owner = pick(rng, differing, hints.favour)
    if owner is None:
        return lines_from(code.data, donor, rng)
    mine, its = _own_lines(code, ours[owner]), _own_lines(other, theirs[owner])
    found = differences(mine, its)
    one = _taken(found, mine, donor, rng)
    if one is None:
        return None
    if len(found) > 1 and rng.random() < 0.3:
        one = Difference(0, len(mine), tuple(its))
    changed = [*mine[: one.start], *one.new, *mine[one.end :]]
    first = code.data.rfind(b"\n", 0, ours[owner].start) + 1
    data = code.data[:first] + b"".join(changed) + code.data[first + sum(map(len, mine)) :]
    whole = one.start == 0 and one.end == len(mine)
    said = f"took {'all of it' if whole else _amount(one)} from node {donor.node}"
    return Edit(data, said, code.line(ours[owner]) + one.start, owner)


def lines_from(data: bytes, donor: Donor, rng: random.Random) -> Edit | None:
    """A run of lines of another node, in place of those that stand there."""
    mine, its = data.splitlines(keepends=True), donor.data.splitlines(keepends=True)
    if max(len(mine), len(its)) > MOST_LINES:
        return None
    one = _taken(differences(mine, its), mine, donor, rng)
    if one is None:
        return None
    changed = b"".join([*mine[: one.start], *one.new, *mine[one.end :]])
    return Edit(changed, f"took {_amount(one)} from node {donor.node}", one.start + 1)


def differences(mine: Sequence[bytes], its: Sequence[bytes]) -> list[Difference]:
    runs = common_runs(mine, its, Effort(steps=STEPS))
    gaps = ((one.old + one.length, two.old, one.new + one.length, two.new) for one, two in pairwise(runs))
    found = [Difference(start, end, tuple(its[a:b])) for start, end, a, b in gaps]
    return [it for it in found if it.end > it.start or it.new]


def _taken(found: Sequence[Difference], mine: Sequence[bytes], donor: Donor, rng: random.Random) -> Difference | None:
    """One of them; seldom any, where all that differs is what this one has changed: that would be a step back."""
    one = pick(rng, found, lambda it: _worth(it, mine, donor))
    return one if one and rng.random() < _worth(one, mine, donor) else None


def _worth(one: Difference, mine: Sequence[bytes], donor: Donor) -> float:
    """More where the other changed what stands here, less where it lacks what this one has changed."""
    old = b"".join(mine[one.start : one.end])
    if donor.base is None:
        return 1.0
    return 1.0 if old in donor.base and b"".join(one.new) not in donor.base else _NOT_ITS_OWN


def _amount(one: Difference) -> str:
    return counted(len(one.new), "line") if one.new else "what is left out there"


def _functions(code: Code) -> dict[str, Spot]:
    """By name; the first of a name counts."""
    found: dict[str, Spot] = {}
    for spot in code.of(cst.FunctionDef):
        if isinstance(spot.node, cst.FunctionDef):
            name = spot.node.name.value
            found.setdefault(f"{spot.owner}.{name}()" if spot.owner else f"{name}()", spot)
    return found


def _own_lines(code: Code, spot: Spot) -> list[bytes]:
    first = code.data.rfind(b"\n", 0, spot.start) + 1
    last = code.data.find(b"\n", spot.end)
    return code.data[first : len(code.data) if last < 0 else last + 1].splitlines(keepends=True)
