"""What is left of the gain of learning with sixteen attempts in flight, which end late and out of order.

A gain is what gradient needs beside uniform, both with so many in flight: any search needs more attempts where sixteen
build on the same parent, so that `one at a time beside in flight` alone says little of learning.

The first sixteen are drawn before anything is known, whatever a policy does later. `the first 16 blind` is a search one
at a time whose first sixteen attempts know nothing; from then on it knows every result at once. No search with sixteen
in flight knows as much at any draw, so what this one keeps is a bound for all policies that learn alike.

Targets of `far` are those that uniform draws, one at a time, reach at the median in 240 attempts, on six seeds that are
used for nothing else (twenty with dice). Nothing was tuned on them, nor chosen by what gradient does there.
"""

from collections.abc import Sequence

from benchmarks.figure import Figure
from benchmarks.meta_families import (
    BLIND,
    FAR,
    GOALS,
    SEEDS,
    WIDE,
    Costs,
    costs,
    figure,
    logs,
    marked,
    middle,
    over_families,
    ratio,
)

SIDES = ("uniform", "gradient")


async def measure(seeds: int = SEEDS) -> list[Figure]:
    names = (*GOALS, *FAR)
    found = costs(seeds, names, (*SIDES, BLIND), SIDES)
    rows = [row for name in names for row in _of_family(found, name)]
    return rows + _over(found, GOALS, "near targets") + _over(found, tuple(FAR), "far targets")


def _of_family(found: Costs, name: str) -> list[Figure]:
    rows = [middle(found, name, side, width) for side in SIDES for width in (1, WIDE)]
    rows.append(middle(found, name, BLIND, 1))
    said = f"{marked(name)}: gain with {WIDE} in flight beside the gain one at a time"
    rows.append(figure(said, ratio(_kept(found, name, "gradient", WIDE))))
    return [*rows, figure(f"{marked(name)}: the most that could be kept", ratio(_kept(found, name, BLIND, 1)))]


def _over(found: Costs, names: Sequence[str], which: str) -> list[Figure]:
    of = f"median over {len(names)} families, {which}"
    rows = []
    for side in SIDES:
        lost = [logs(found[name, side, 1], found[name, side, WIDE]) for name in names]
        rows.append(figure(f"{side}, one at a time beside {WIDE} in flight, {of}", over_families(lost)))
    for width in (1, WIDE):
        beside = [logs(found[name, "gradient", width], found[name, "uniform", width]) for name in names]
        rows.append(figure(f"gradient beside uniform, both with {width} in flight, {of}", over_families(beside)))
    kept, most = ([_kept(found, name, *of) for name in names] for of in (("gradient", WIDE), (BLIND, 1)))
    said = f"gain of gradient over uniform with {WIDE} in flight, beside the gain one at a time, {of}"
    rows.append(figure(said, over_families(kept), ">= 0.9"))
    return [*rows, figure(f"the most of it that could be kept, {of}", over_families(most))]


def _kept(found: Costs, name: str, side: str, width: int) -> list[list[float]]:
    """The gain one at a time less that of a side beside uniform in flight."""
    alone = logs(found[name, "gradient", 1], found[name, "uniform", 1])
    flying = logs(found[name, side, width], found[name, "uniform", WIDE])
    return [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(alone, flying, strict=True)]
