"""Real small programs with something wrong or slow in them. As in real code, most lines have nothing to do with it.

Each is scored by running it. A program that gives a wrong answer where it must not has no score.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.families.running import Broken, Running
from benchmarks.operators import BESIDE
from benchmarks.operators import PROBLEMS as EXPRESSIONS


@dataclass(frozen=True)
class Program:
    """`score` is higher where it is better, None where the program is wrong."""

    name: str
    source: str
    score: Callable[[str], float | None]
    target: float


def _running(judge: Callable[[Running], float | None]) -> Callable[[str], float | None]:
    def score(source: str) -> float | None:
        try:
            found = judge(Running(source))
            return found if found is None or math.isfinite(found) else None
        except (Broken, ArithmeticError, TypeError, ValueError, IndexError, KeyError, AttributeError):
            return None

    return score


_DRAW = random.Random("families")
_LISTS = [[_DRAW.randrange(100) for _ in range(size)] for size in (1, 2, 9, 16, 24)]

SORT = """def sort(values):
    items = list(values)
    gap = len(items)
    done = False
    while not done:
        gap = int(gap / 1.05)
        if gap <= 1:
            gap = 1
            done = True
        at = 0
        while at + gap < len(items):
            if items[at] > items[at + gap]:
                items[at], items[at + gap] = items[at + gap], items[at]
                done = False
            at += 1
        before = 0
        for one in items:
            for other in items:
                before += one < other
    return items
"""


def _sorted(it: Running) -> float | None:
    for values in _LISTS:
        if it.call("sort", values) != sorted(values):
            return None
    return -math.log(it.steps)


PARSER = """BASE = 8
DIGITS = "0123456789"


def number(text, at):
    value = 0
    while at < len(text) and text[at] in DIGITS:
        value = value * BASE + DIGITS.index(text[at])
        at += 1
    return value, at


def factor(text, at):
    if text[at] == "(":
        value, at = total(text, at + 1)
        return value, at + 1
    if text[at] == "-":
        value, at = factor(text, at + 1)
        return value, at
    return number(text, at)


def term(text, at):
    value, at = factor(text, at)
    while at < len(text) and text[at] == "*":
        more, at = factor(text, at + 1)
        value = value + more
    return value, at


def total(text, at):
    value, at = term(text, at)
    while at < len(text) and text[at] in "+-":
        sign = 1 if text[at] == "+" else 1
        more, at = term(text, at + 1)
        value = value + sign * more
    return value, at


def evaluate(text):
    value, at = total(text, 0)
    return value if at >= len(text) else None
"""
_TEXTS = [
    "7",
    "12",
    "907",
    "1+2",
    "30+4",
    "5-3",
    "9-4-3",
    "2*3",
    "4*5+1",
    "2+3*4",
    "-5",
    "-5+9",
    "3--2",
    "(2+3)*4",
    "(7)",
    "2*(8-3)",
    "-(3+4)",
    "10*10",
    "6-2*2",
    "1+2+3+4",
    "(1+1)*(1+2)",
    "-2*-3",
    "100-(50-8)",
    "3*3*3",
]


def _parsed(it: Running) -> float | None:
    # Ours alone, and a fixed list.
    wanted = [eval(text) for text in _TEXTS]  # noqa: S307  a fixed list of ours
    right = [bool(it.call("evaluate", text) == value) for text, value in zip(_TEXTS, wanted, strict=True)]
    return sum(right) / len(right)


SCHEDULER = """MACHINES = 3
LONG = 0.1
TAIL = 0.1
LOAD = 1.0


def urgency(job, tails):
    return LONG * job[0] - TAIL * tails[job[1]]


def schedule(jobs, tails):
    loads = [0.0] * MACHINES
    waiting = list(jobs)
    plan = []
    while waiting:
        best = 0
        for at in range(len(waiting)):
            if urgency(waiting[at], tails) < urgency(waiting[best], tails):
                best = at
        job = waiting.pop(best)
        place = 0
        for at in range(MACHINES):
            if loads[at] * LOAD + at < loads[place] + place:
                place = at
        loads[place] = loads[place] + job[0]
        plan.append((job, place))
    return plan
"""
_KINDS = [0.0, 4.0, 9.0, 15.0]
_JOBS = [[(_DRAW.randint(1, 12), _DRAW.randrange(4)) for _ in range(10)] for _ in range(6)]


def _scheduled(it: Running) -> float | None:
    """When the last job has left, tail and all, beside what no plan can beat."""
    total = 0.0
    for jobs in _JOBS:
        least = max(sum(length for length, _ in jobs) / 3, max(length + _KINDS[kind] for length, kind in jobs))
        plan, loads, latest = it.call("schedule", jobs, _KINDS), [0.0] * 3, 0.0
        if sorted(job for job, _ in plan) != sorted(jobs):
            return None
        for (length, kind), place in plan:
            loads[range(3)[place]] += length
            latest = max(latest, loads[place] + _KINDS[kind])
        total += least / latest
    return total / len(_JOBS)


BINS = """FULL = 100
CLOSE = 0.5
EMPTY = 40.0


def worth(room, size):
    left = room - size
    return left * CLOSE + (EMPTY if left > 30 else 0.0)


def pack(sizes):
    rooms = []
    for size in sizes:
        best = -1
        for at in range(len(rooms)):
            if rooms[at] > size:
                if best < 0 or worth(rooms[at], size) > worth(rooms[best], size):
                    best = at
        if best < 0:
            rooms.append(FULL)
            best = len(rooms) - 1
        rooms[best] -= size
    return rooms
"""
_SIZES = [[_DRAW.choice((20, 25, 30, 35, 40, 50, 60, _DRAW.randint(10, 70))) for _ in range(30)] for _ in range(5)]


def _packed(it: Running) -> float | None:
    total = 0.0
    for sizes in _SIZES:
        rooms = it.call("pack", sizes)
        if any(not 0 <= room <= 100 for room in rooms) or sum(100 - room for room in rooms) != sum(sizes):
            return None
        total += math.ceil(sum(sizes) / 100) / len(rooms)
    return total / len(_SIZES)


CIRCLES = """COLUMNS = 4
LEFT = 0.1
WIDE = 0.2
HIGH = 0.2
SHIFT = 0.0


def place(at):
    row = at // COLUMNS
    column = at - row * COLUMNS
    x = LEFT + column * WIDE + SHIFT * (row % 2)
    y = LEFT + row * HIGH
    return x, y


def radius(circles, x, y):
    room = min(x, y, 1.0 - x, 1.0 - y)
    for u, v, r in circles:
        room = min(room, ((x - u) ** 2 + (y - v) ** 2) ** 0.5 - r)
    return room * 0.9


def pack(n):
    circles = []
    for at in range(n):
        x, y = place(at)
        circles.append((x, y, radius(circles, x, y)))
    return circles
"""


def _circles(it: Running) -> float | None:
    found = it.call("pack", 12)
    if len(found) != 12:
        return None
    for at, (x, y, r) in enumerate(found):
        if r < 0 or min(x, y, 1 - x, 1 - y) < r - 1e-12:
            return None
        if any((x - u) ** 2 + (y - v) ** 2 < (r + s - 1e-12) ** 2 for u, v, s in found[:at]):
            return None
    return float(sum(r for _, _, r in found))


def judged(name: str, source: str, judge: Callable[[Running], float | None], target: float) -> Program:
    return Program(name, source + BESIDE, _running(judge), target)


REAL: Sequence[Program] = (
    judged("sort", SORT, _sorted, -9.0),
    judged("bins", BINS, _packed, 0.94),
    # Long enough by itself.
    Program("parser", PARSER, _running(_parsed), 0.3),
)
TUNING: Sequence[Program] = (judged("scheduler", SCHEDULER, _scheduled, 0.9),)
PACKING: Sequence[Program] = (judged("circles", CIRCLES, _circles, 1.13),)
_TARGETS = {"numbers": 0.3, "edges": 0.75}
EXPRESSION: Sequence[Program] = tuple(
    Program(it.name, it.source + BESIDE, it.score, _TARGETS[it.name]) for it in EXPRESSIONS if it.name in _TARGETS
)
