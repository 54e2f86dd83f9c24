"""What is left of the gain of learning with sixteen attempts in flight, which end late and out of order.

A gain is what gradient needs beside uniform, both with so many in flight. It shrinks for three reasons:

- The first sixteen are drawn before anything is known.
- Sixteen build on the same parent, and of what they find one is the best: the more often an attempt succeeds, the more
  successes are for nothing. So a better policy loses more, however it learns.
- Results come late.

Only the last is the policy's own. `told at once after the first 16` is the same search with the same sixteen in flight,
that build on what has ended, but after the first sixteen it learns from each attempt as if that had ended at once. No
search with sixteen in flight knows more at any draw, so what it keeps is the most that a policy which learns alike can.
"""

from collections.abc import Sequence

from benchmarks.figure import Figure
from benchmarks.meta_families import (
    GOALS,
    SEEDS,
    TOLD,
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
    found = costs(seeds, GOALS, SIDES, (*SIDES, TOLD))
    return [row for name in GOALS for row in of_family(found, name)] + over(found, GOALS)


def of_family(found: Costs, name: str) -> list[Figure]:
    rows = [middle(found, name, side, width) for side in SIDES for width in (1, WIDE)]
    rows.append(middle(found, name, TOLD, WIDE))
    said = f"{marked(name)}: gain with {WIDE} in flight beside the gain one at a time"
    rows.append(figure(said, ratio(_kept(found, name, "gradient"))))
    rows.append(figure(f"{marked(name)}: the most of it that could be kept", ratio(_kept(found, name, TOLD))))
    return [*rows, figure(f"{marked(name)}: told at once beside gradient", ratio(_late(found, name)))]


def over(found: Costs, names: Sequence[str]) -> list[Figure]:
    of = f"median over {len(names)} families"
    rows = []
    for side in SIDES:
        lost = [logs(found[name, side, 1], found[name, side, WIDE]) for name in names]
        rows.append(figure(f"{side}, one at a time beside {WIDE} in flight, {of}", over_families(lost)))
    beside = [logs(found[name, "gradient", WIDE], found[name, "uniform", WIDE]) for name in names]
    rows.append(figure(f"gradient beside uniform, both with {WIDE} in flight, {of}", over_families(beside)))
    kept, most = ([_kept(found, name, side) for name in names] for side in ("gradient", TOLD))
    said = f"gain of gradient over uniform with {WIDE} in flight, beside the gain one at a time, {of}"
    rows.append(figure(said, over_families(kept), ">= 0.9"))
    rows.append(figure(f"the most of it that could be kept, {of}", over_families(most)))
    late = [_late(found, name) for name in names]
    return [*rows, figure(f"{WIDE} in flight, told at once beside gradient, {of}", over_families(late), ">= 0.9")]


def _kept(found: Costs, name: str, side: str) -> list[list[float]]:
    """The gain one at a time less that of a side beside uniform in flight."""
    alone = logs(found[name, "gradient", 1], found[name, "uniform", 1])
    flying = logs(found[name, side, WIDE], found[name, "uniform", WIDE])
    return [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(alone, flying, strict=True)]


def _late(found: Costs, name: str) -> list[list[float]]:
    return logs(found[name, TOLD, WIDE], found[name, "gradient", WIDE])
