"""What a thousand adaptive submissions read out of a held-out set: a leaderboard of exact scores against the ladder.

The labels are fair coins that nobody sees, so the true accuracy of everything is one half: whatever a submission gains
on the held-out set, it gains by what was answered before.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.figure import Figure
from orchestrator.domain import ladder

ITEMS = 10_000
QUERIES = 1_000
STEP = 0.02
ERROR = 0.01
SEEDS = 100

Bits = npt.NDArray[np.bool_]
Board = Callable[[float], float]
Ask = Callable[[Bits], float]


@dataclass(frozen=True)
class Gains:
    """On the held-out set, above the one half that is true: of the attacker's last word, and of any submission."""

    last: float
    best: float


def exact_board() -> Board:
    """The naive leaderboard."""
    return lambda score: score


def ladder_board(step: float) -> Board:
    """What a campaign tells: the released value, whatever was asked. The baseline is right half the time."""
    released = ladder.rounded(0.5, step) or 0.0

    def board(score: float) -> float:
        nonlocal released
        released = ladder.answer(score, released, step).released
        return released

    return board


def majority(ask: Ask, items: int, queries: int, step: float, rng: np.random.Generator) -> Bits:
    """The boosting attack: noise is submitted, and votes with as much weight as its answer says that it is right.

    Behind a ladder, an answer that does not move says a little, too: that this one is probably no lucky one.
    """
    votes = np.zeros(items)
    spread = 0.5 / math.sqrt(items)
    last = 0.5
    for _ in range(queries):
        guess = rng.random(items) < 0.5
        told = ask(guess)
        weight = told - 0.5 if not step or told > last else _expected_below((last + step - 0.5) / spread) * spread
        votes += weight * (guess - 0.5)
        last = told
    return votes > 0


def probing(ask: Ask, items: int, queries: int, step: float, rng: np.random.Generator) -> Bits:
    """Bit by bit: one block of the best answer is turned round at a time, and stays so where that is told to help.

    Behind a ladder a block must be large to be seen at all, so other ones are drawn until one is.
    """
    best = rng.random(items) < 0.5
    told = ask(best)
    blocks = np.array_split(rng.permutation(items), queries) if not step else None
    for number in range(1, queries):
        block = blocks[number] if blocks else rng.permutation(items)[: rng.integers(items // 20, items // 2)]
        trial = best.copy()
        trial[block] ^= True
        now = ask(trial)
        if now > told:
            best, told = trial, now
    return best


ATTACKS = {"majority": majority, "probing": probing}


def attack(name: str, step: float, items: int, queries: int, seed: int) -> Gains:
    """One attacker against one set; a step of 0 is the naive leaderboard."""
    rng = np.random.default_rng(seed)
    labels = rng.random(items) < 0.5
    board = ladder_board(step) if step else exact_board()
    best = 0.0

    def score(guess: Bits) -> float:
        return float(np.mean(guess == labels))

    def ask(guess: Bits) -> float:
        nonlocal best
        found = score(guess)
        best = max(best, found - 0.5)
        return board(found)

    last = ATTACKS[name](ask, items, queries, step, rng)
    return Gains(score(last) - 0.5, max(best, score(last) - 0.5))


async def measure(seeds: int = SEEDS) -> list[Figure]:
    bound = ladder.bound(ITEMS, STEP, QUERIES, error=ERROR)
    figures = [Figure(f"bound on a gain, {QUERIES} queries, {ITEMS} items, step {STEP:g}, error {ERROR:g}", bound, "")]
    for name in ATTACKS:
        naive = [attack(name, 0.0, ITEMS, QUERIES, seed) for seed in range(seeds)]
        held = [attack(name, STEP, ITEMS, QUERIES, seed) for seed in range(seeds)]
        past = statistics.fmean(it.best > bound for it in held)
        figures += [
            Figure(
                f"{name}, exact scores: gain, least of {seeds} seeds",
                min(it.last for it in naive),
                "",
                f">= {bound:.4g}",
            ),
            Figure(f"{name}, exact scores: gain, median", statistics.median(it.last for it in naive), ""),
            Figure(f"{name}, ladder: gain, median", statistics.median(it.last for it in held), ""),
            Figure(
                f"{name}, ladder: most that any submission gains", max(it.best for it in held), "", f"<= {bound:.4g}"
            ),
            Figure(f"{name}, ladder: share of seeds past the bound", past, "", f"<= {ERROR:g}"),
        ]
    return figures


def _expected_below(limit: float) -> float:
    """The mean of a standard normal variable that is known to lie below the limit."""
    density = math.exp(-limit * limit / 2) / math.sqrt(2 * math.pi)
    return -density / (0.5 * (1 + math.erf(limit / math.sqrt(2))))
