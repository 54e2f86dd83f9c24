"""What a profile of the baseline brings to operators: attempts until a planted loop, which costs two thirds of the time
and does nothing, is gone; and whether a search that has nothing to gain by it gets worse.

The profile is the product's own module at work on the program as it stands, in a process of its own, read as what comes
out of a chamber is read. Changed programs are run by benchmarks/families/running.py, which counts steps: the score is
less steps with the right answers. Seeds from 1000 on were looked at while the constants were chosen.
"""

import asyncio
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from benchmarks.chance import of_mean
from benchmarks.families.running import Broken, Running
from benchmarks.figure import Figure
from benchmarks.operators import BESIDE, POLICY, PROBLEMS, Memory, _tried
from orchestrator.change import Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.profile import Profile
from orchestrator.judge.helpers import GUEST, PROFILE
from orchestrator.judge.profile import read_profile
from orchestrator.meta.chooser import Meta
from orchestrator.proposers import Brief, Exhausted
from orchestrator.proposers.operators import Operators

SEEDS, ATTEMPTS, SHORT, USUAL = 20, 160, 80, 60
OFF, HOT = "without", "with"
DRIVE = "import f\nfor _ in range({times}):\n    {call}\n"

PAIRS = """LIMIT = 0.25


def near(dx, dy, radius):
    if dx < 0:
        dx = -dx
    if dy < 0:
        dy = -dy
    return dx * dx + dy * dy <= radius * radius


def old_way(points, radius):
    count = 0
    for i in range(len(points)):
        for j in range(i):
            x, y = points[i]
            u, v = points[j]
            if abs(x - u) > 2 * radius:
                continue
            if near(x - u, y - v, radius):
                count += 1
    return count * LIMIT


def spread(points):
    low = min(points)
    high = max(points)
    return high[0] - low[0] + high[1] - low[1]


def counted(points, radius):
    count = 0
    first = 0
    points = sorted(points)
    for i, (x, y) in enumerate(points):
        while points[first][0] < x - radius:
            first += 1
        for u, v in points[first:i]:
            count += near(x - u, y - v, radius)
    return count


def checksum(points):
    total = 0
    for x, y in points:
        total += x * 31 + y
    return total


def f(points, radius):
    width = spread(points)
    total = checksum(points)
    far = 0
    for x, y in points:
        for u, v in points:
            far = far + (abs(x - u) + abs(y - v) > width)
    if total < 0:
        radius = radius * 2
    return counted(points, radius)
"""
WORDS = """SHORT = 3
LONG = 12


def folded(word):
    found = ""
    for sign in word:
        if "A" <= sign <= "Z":
            sign = sign.lower()
        found += sign
    return found


def is_word(word):
    if len(word) < SHORT:
        return False
    if len(word) > LONG:
        return False
    return True


def reversed_words(words):
    found = []
    for word in words:
        turned = ""
        for sign in word:
            turned = sign + turned
        found.append(turned)
    return found


def tally(words):
    counts = {}
    seen = 0
    for word in words:
        name = folded(word)
        for other in words:
            if other == word:
                seen = seen + 1
            if len(other) > LONG:
                seen = seen - 1
        if is_word(name):
            counts[name] = counts.get(name, 0) + 1
    return counts


def f(text):
    words = text.split()
    counts = tally(words)
    best = ""
    most = 0
    for word in sorted(counts):
        if counts[word] > most:
            most = counts[word]
            best = word
    return best, most
"""
_DRAW = random.Random("hints")
_POINTS = [(_DRAW.randrange(100), _DRAW.randrange(100)) for _ in range(50)]
_TEXT = " ".join("".join(_DRAW.choice("abAB") for _ in range(_DRAW.randint(2, 5))) for _ in range(60))


@dataclass(frozen=True)
class Planted:
    """`values` are what it is called with; at less than `target` of its steps, the loop is gone."""

    name: str
    source: str
    values: tuple[object, ...]
    target: float

    def steps(self, source: str) -> float | None:
        """None for a program that is wrong."""
        try:
            it = Running(source)
            found = it.call("f", *self.values)
        except (Broken, ArithmeticError, TypeError, ValueError, IndexError, KeyError, AttributeError):
            return None
        return it.steps if found == self.as_it_stands[0] else None

    @cached_property
    def as_it_stands(self) -> tuple[object, int]:
        """The right answer, and the steps to it."""
        it = Running(self.source)
        return it.call("f", *self.values), it.steps


PLANTED = (Planted("pairs", PAIRS, (_POINTS, 20), 0.5), Planted("words", WORDS, (_TEXT,), 0.5))


def profiled(source: str, call: str) -> Profile:
    """The program as it stands, in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "own").mkdir()
        (folder / "own" / "sitecustomize.py").write_bytes((GUEST / PROFILE).read_bytes())
        (folder / "src").mkdir()
        (folder / "src" / "f.py").write_text(source)
        (folder / "src" / "drive.py").write_text(DRIVE.format(times=100, call=call))
        told = {
            "PYTHONPATH": str(folder / "own"),
            "BLASTDOOR_PROFILE": str(folder / "out"),
            "BLASTDOOR_PROFILE_ROOT": str(folder / "src"),
        }
        subprocess.run([sys.executable, "drive.py"], cwd=folder / "src", env={**os.environ, **told}, check=True)
        return read_profile(
            [it.read_bytes() for it in (folder / "out").glob("*.json")], Tree.of({"f.py": source.encode()})
        )


async def searched(
    source: str,
    score: Callable[[str], float | None],
    profile: Profile | None,
    seed: int,
    *,
    hot: bool,
    most: int,
    until: float = math.inf,
) -> list[float]:
    """The best score after each attempt, each built on the best so far; no more than until one is as good as that."""
    root, proposer = Tree.of({"f.py": source.encode()}), Operators(POLICY)
    past, meta, best, found = Memory(root), Meta(), "1", []
    scores: dict[str, float | None] = {"1": score(source)}
    for number in range(1, most + 1):
        chooser = meta.chooser(past.ended, seed, number, 0)
        brief = Brief(f"{best}.{number}", best, number, seed, past.trees[best], past=past, chooser=chooser)
        try:
            [proposal] = await proposer.propose(replace(brief, profile=profile, hot=hot))
        except Exhausted:
            break
        tree = apply_text(brief.tree, proposal.text or "", POLICY)
        came = score(tree["f.py"].data.decode())
        past.trees[brief.node], scores[brief.node] = tree, came
        past.known.add(tree.digest)
        past.ended.append(_tried(brief, proposal, came, scores[best]))
        now = scores[best]
        if came is not None and (now is None or came > now):
            best = brief.node
        found.append(scores[best] or 0.0)
        if found[-1] >= until:
            break
    return found


def _planted(at: int, way: str, seed: int) -> int:
    """How many attempts it took; one more than there were where they did not do."""
    problem = PLANTED[at]
    profile = None if way == OFF else profiled(problem.source, f"f.f(*{problem.values!r})")

    def score(source: str) -> float | None:
        steps = problem.steps(source)
        return None if steps is None else -steps / problem.as_it_stands[1]

    found = asyncio.run(
        searched(problem.source, score, profile, seed, hot=way == HOT, most=ATTEMPTS, until=-problem.target)
    )
    return len(found) if found[-1] >= -problem.target else ATTEMPTS + 1


def _usual(at: int, way: str, seed: int) -> float:
    """A file where no place is hot: what of its error is gone."""
    problem = PROBLEMS[at]
    source = problem.source + BESIDE
    call = "[f.f(x / 4 - 1.0, y / 4 - 0.5) for x in range(90) for y in range(70)]"
    profile = None if way == OFF else profiled(source, call)
    found = asyncio.run(searched(source, problem.score, profile, seed, hot=way == HOT, most=USUAL))
    return found[-1]


async def measure(seeds: int = SEEDS, first: int = 0) -> list[Figure]:
    figures = []
    with ProcessPoolExecutor() as pool:
        for at, problem in enumerate(PLANTED):
            found = {
                way: list(pool.map(_planted, [at] * seeds, [way] * seeds, range(first, first + seeds)))
                for way in (OFF, HOT)
            }
            for way, took in found.items():
                said = f"hints, {problem.name}: attempts until the planted loop is gone, {way}"
                figures.append(Figure(f"{said}, at the median", statistics.median(took), ""))
                within = sum(it <= SHORT for it in took) / seeds
                goal = ">= 0.9" if way == HOT else ""
                figures.append(Figure(f"{said}, share within {SHORT}", within, "", goal))
        ratios: dict[str, list[float]] = {HOT: []}
        for at, _ in enumerate(PROBLEMS):
            usual = {
                way: list(pool.map(_usual, [at] * seeds, [way] * seeds, range(first, first + seeds)))
                for way in (OFF, HOT)
            }
            for way, mine in ratios.items():
                mine.append(statistics.fmean(usual[way]) / statistics.fmean(usual[OFF]))
        for way, mine in ratios.items():
            low, high = of_mean(mine)
            said = f"hints, nothing planted: error gone after {USUAL}, {way} beside without ({low:.2f} to {high:.2f})"
            figures.append(Figure(said, statistics.fmean(mine), "", ">= 0.95"))
    return figures
