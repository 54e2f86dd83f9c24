"""Calls the candidate with numbers that nobody has seen before, checks what it adds up, and takes the time: the judge.

All numbers are whole and sums wrap around, so there is one right answer whatever the order of adding. Small questions
are checked in full. Of a large one, which would take this judge hours, some answers are checked: which ones is drawn
after the candidate has answered. The seconds come from the orchestrator, which carries the call.
"""

import array
import os
import random
from collections.abc import Sequence
from typing import Any

from blastdoor_judge import BadOutput, publish, trace
from blastdoor_relay import relay

VALUES = int(os.environ.get("VALUES", 262_144))
KEYS = int(os.environ.get("KEYS", 65_536))
CALLS = 5
CHECKED = 8
# Around the sizes that warps, blocks and tiles have, and none at all.
SMALL = ((0, 5), (1, 1), (31, 33), (32, 127), (129, 64), (1023, 2), (1025, 7), (4097, 3), (2, 1025))
MASK = 0xFFFFFFFF

Numbers = Sequence[int]


def twisted_sum(values: Numbers, key: int) -> int:
    """The judge's own way: the sum of all twisted values under one key."""
    total = 0
    for value in values:
        t = (value ^ key) * 0x9E3779B1 & MASK
        t = (t ^ t >> 15) * 0x85EBCA77 & MASK
        total += t ^ t >> 13
    return total & MASK


def numbers(rng: random.Random, count: int) -> Numbers:
    """Mostly noise; now and then all alike, or all bits set, where a kernel that pads or skips would be found out."""
    fixed = rng.choice((None, None, None, 0, MASK, 1 << 31))
    found = array.array("I", rng.randbytes(4 * count))
    return found if fixed is None else array.array("I", [fixed]) * count


def answers_of(value: Any, count: int) -> list[int]:
    """An array of u4, as long as the keys. Anything else, floats above all, is no answer."""
    kind = str(getattr(value, "dtype", ""))
    if kind not in ("u4", "uint32") or tuple(getattr(value, "shape", ())) != (count,):
        raise BadOutput(f"the answer must be an array of {count} u4")
    found: list[int] = value.tolist()
    return found


def check(answer: Any, values: Numbers, keys: Numbers, checked: int = CHECKED) -> None:
    """As many answers as is said; which ones, is drawn when they are there."""
    answers = answers_of(answer, len(keys))
    for at in candidate.rng().sample(range(len(keys)), min(checked, len(keys))):
        if answers[at] != twisted_sum(values, keys[at]):
            raise BadOutput(f"{len(values)} values, {len(keys)} keys: an answer is wrong")


def small() -> None:
    """Every answer of every small size."""
    for value_count, key_count in SMALL:
        rng = candidate.rng()
        values, keys = numbers(rng, value_count), numbers(rng, key_count)
        check(candidate.call("solve", values, keys).value, values, keys, key_count)


def large(rng: random.Random) -> tuple[Numbers, Numbers]:
    """Of no round size: what is left over at the end must be added too."""
    values = array.array("I", rng.randbytes(4 * (VALUES - rng.randrange(VALUES // 1000 + 1))))
    keys = array.array("I", rng.randbytes(4 * (KEYS - rng.randrange(KEYS // 1000 + 1))))
    return values, keys


with relay() as candidate:
    small()
    timing = candidate.time("solve", large, check, calls=CALLS)
    trace("solve", timing.seconds, summary=f"the median of {timing.calls} calls")
    small()
    publish(timing.seconds, metrics={"seconds": timing.seconds, "slowest": timing.slowest})
