"""When a better score is an improvement: replayed where scores repeat, proven by repeats where they are noisy.

The proof is a ratio of likelihoods of ranks. Were the candidate no better than the champion, every order of their
measurements would be as likely as any other, whatever the noise looks like. Savage's ratio weighs that against a
candidate whose best measurements come first more often (Lehmann's alternative, theta > 1):

    E(theta) = theta^n * N! / prod_{i=1..N} (a_i + theta * b_i)

where a_i and b_i count the champion's and the candidate's among the i lowest of all N = m + n. With every measurement
more, of whichever side, it is a martingale of mean 1; so it ever reaches 1/level with a probability of at most
`level`, however often one looks (Ville). A mean over several theta is one too. See ADR 11.

A machine that gets faster or slower makes orders unlike. So both are measured in turn, in blocks of two runs each, in
an order that a coin decides beforehand, and only runs of one block are compared: were both alike, the coin alone would
decide whose the best runs of a block are, whatever the machine does. The product over blocks is a martingale, too.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, combinations, count

# From a candidate that wins three of five comparisons to one that wins all.
THETAS = (1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_WEIGHT = math.log(len(THETAS))

Standing = tuple[float, ...]

# So many runs of each side are a block: more prove more on a quiet machine, fewer on one whose load swings.
EACH = 2
_ORDERS = tuple(tuple(place in mine for place in range(2 * EACH)) for mine in combinations(range(2 * EACH), EACH))


class CertifyRule(StrEnum):
    """Strict: the same candidate gets the same score. Noisy: it does not."""

    STRICT = "strict"
    NOISY = "noisy"


@dataclass(frozen=True)
class Certify:
    """`error` is the probability that a whole campaign keeps anything at all that is no improvement.

    A candidate is measured `repeats` times at most in one test, and not tested unless its first score is past the
    median of the champion's latest `champion` measurements.
    """

    rule: CertifyRule = CertifyRule.STRICT
    error: float = 0.05
    repeats: int = 24
    champion: int = 5
    replay: bool = True

    @property
    def noisy(self) -> bool:
        return self.rule is CertifyRule.NOISY

    @property
    def replays(self) -> bool:
        return self.replay and not self.noisy

    @property
    def beyond(self) -> str:
        """What no worst case of an attempt holds, in words: repeats are reserved a block at a time, when it
        comes to them.
        """
        if not self.noisy:
            return ""
        return (
            f"a candidate that looks better takes up to {2 * EACH * self.blocks} more runs, half of them the champion's"
        )

    @property
    def blocks(self) -> int:
        """How many a test has at most: as many as `repeats` of the candidate need, and never so few that the first
        test of a campaign could prove nothing.
        """
        return max(-(-self.repeats // EACH), self.least)

    @property
    def least(self) -> int:
        """How many blocks, all won, pass the first test."""
        level = self.level(1, 1)
        return next(most for most in count(1) if look_at_blocks([], level, most).stand is Stand.OPEN)

    def level(self, reference: int, against: int) -> float:
        """The share of `error` for one test: the so-manieth `against` the champion that is the so-manieth `reference`.

        All shares that there can ever be add up to `error`. Both are counted, and not the tests alone, because which
        test meets which champion depends on what the champion's measurements happened to be.
        """
        return self.error / (reference * (reference + 1) * against * (against + 1))


class Stand(StrEnum):
    """How a test stands after a look. Futile: nothing is proven, and nothing can be any more."""

    PROVEN = "proven"
    WORSE = "proven worse"
    FUTILE = "futile"
    OPEN = "open"


@dataclass(frozen=True)
class Evidence:
    """`log` is the evidence's natural logarithm, `needed` that of what the level asks for."""

    log: float
    needed: float
    repeats: int
    stand: Stand

    @property
    def words(self) -> str:
        return self.told("repeat")

    def told(self, unit: str) -> str:
        """In decimal digits: evidence may be beyond what a float holds."""
        count = f"{self.repeats} {unit}{'' if self.repeats == 1 else 's'}"
        return f"evidence {_power(self.log)} in {count}, {_power(self.needed)} needed"


@dataclass(frozen=True)
class Block:
    """What was measured in turn. Complete with `EACH` of either side."""

    champion: tuple[Standing, ...] = ()
    candidate: tuple[Standing, ...] = ()

    @property
    def is_complete(self) -> bool:
        return len(self.champion) == len(self.candidate) == EACH


def turns(coin: str, block: int) -> tuple[bool, ...]:
    """Whose the runs of a block are, one after the other; True for the candidate's. `coin` must be known before the
    first of them, so that nobody can choose it and a resume goes on in the same order; every order is as likely.
    """
    drawn = hashlib.sha256(f"certify {coin}/{block}".encode()).digest()
    return _ORDERS[int.from_bytes(drawn) % len(_ORDERS)]


def look_at_blocks(blocks: Sequence[Block], level: float, most: int, *, both: bool = False) -> Evidence:
    """Where a test stands, of which there may be `most` blocks; only the last of `blocks` may be incomplete.

    PROVEN: the candidate is better. WORSE, only with `both`: it is worse. Were the two alike, each of these two answers
    would ever come with a probability of at most `level`, however often one looks and whatever the machine does
    between and within blocks. FUTILE: not proven, and winning all that is left (with `both`: or losing all) would not
    do; so after `most` blocks it is never OPEN. OPEN: measure on. Only complete blocks count as evidence. Runs that are
    equal count against what is to be proven. `log` is the evidence that it is better, and with `both` the larger one;
    `repeats` are the candidate's runs.
    """
    mirrored = [Block(it.candidate, it.champion) for it in blocks]
    found = [_one_sided(side, level, most) for side in ([blocks, mirrored] if both else [blocks])]
    needed, repeats = -math.log(level), sum(len(it.candidate) for it in blocks)
    stands = [stand for _, stand in found]
    stand = Stand.FUTILE
    if stands[0] is Stand.PROVEN:
        stand = Stand.PROVEN
    elif Stand.PROVEN in stands:
        stand = Stand.WORSE
    elif Stand.OPEN in stands:
        stand = Stand.OPEN
    return Evidence(max(log for log, _ in found), needed, repeats, stand)


def look(champion: Sequence[Standing], candidate: Sequence[Standing], level: float, repeats: int) -> Evidence:
    """Where a test stands whose champion was measured once, beforehand: those of older ledgers.

    It is futile as soon as even winning every comparison that is left would not do.
    """
    order = _order(champion, candidate)
    now, needed = _log_mean(order), -math.log(level)
    if now >= needed:
        return Evidence(now, needed, len(candidate), Stand.PROVEN)
    left = repeats - len(candidate)
    hope = left > 0 and _log_mean((*order, *[True] * left)) >= needed
    return Evidence(now, needed, len(candidate), Stand.OPEN if hope else Stand.FUTILE)


def log_evidence(champion: Sequence[Standing], candidate: Sequence[Standing]) -> float:
    """The logarithm of the mean of E(theta); 0 before there is anything to compare."""
    return _log_mean(_order(champion, candidate))


def look_at_pairs(pairs: Sequence[tuple[Standing, Standing]], level: float, left: int) -> Evidence:
    """The same test where measurements come in pairs, (of the one in place, of its challenger), and only the two of a
    pair can be compared with each other. `left` pairs may still come; a pair that ties says nothing.

    A coin decides which of a pair is whose. So, were both alike, either order would be as likely whatever became of
    earlier pairs, and the product of each pair's own E(theta), with m = n = 1, is a martingale of mean 1 again.
    """
    wins = sum(mine > theirs for theirs, mine in pairs)
    losses = sum(mine < theirs for theirs, mine in pairs)
    now, needed = _log_mean_of_pairs(wins, losses), -math.log(level)
    hope = left > 0 and _log_mean_of_pairs(wins + left, losses) >= needed
    stand = Stand.PROVEN if now >= needed else Stand.OPEN if hope else Stand.FUTILE
    return Evidence(now, needed, len(pairs), stand)


def median(values: Sequence[Standing]) -> Standing:
    """The upper one of an even number: what a candidate's first score has to be past."""
    return sorted(values)[len(values) // 2]


def _order(champion: Sequence[Standing], candidate: Sequence[Standing]) -> tuple[bool, ...]:
    """All measurements from the lowest on, True for the candidate's; where both are equal, the candidate's is below."""
    marked = sorted([(value, 1) for value in champion] + [(value, 0) for value in candidate])
    return tuple(mark == 0 for _, mark in marked)


def _one_sided(blocks: Sequence[Block], level: float, most: int) -> tuple[float, Stand]:
    """The evidence that the candidate is better, and what can become of it."""
    done = [_of_order(_order(it.champion, it.candidate)) for it in blocks if it.is_complete]
    logs = [sum(column) for column in zip(*done, strict=True)] or [0.0] * len(THETAS)
    now, needed = _mean_of(logs), -math.log(level)
    if now >= needed:
        return now, Stand.PROVEN
    best = [_of_order(_completed(it)) for it in blocks if not it.is_complete]
    left = most - len(blocks)
    hoped = [sum(at) + left * won for *at, won in zip(logs, *best, _of_order(_completed(Block())), strict=True)]
    hope = bool(best or left > 0) and _mean_of(hoped) >= needed
    return now, Stand.OPEN if hope else Stand.FUTILE


def _completed(block: Block) -> tuple[bool, ...]:
    """With the candidate's runs that are left above all, and the champion's below."""
    theirs, mine = EACH - len(block.champion), EACH - len(block.candidate)
    return (*[False] * theirs, *_order(block.champion, block.candidate), *[True] * mine)


def _log_mean(order: tuple[bool, ...]) -> float:
    return _mean_of(_of_order(order)) if order else 0.0


@lru_cache(maxsize=1 << 10)
def _of_order(order: tuple[bool, ...]) -> tuple[float, ...]:
    """The logarithm of each E(theta)."""
    below = accumulate(order)
    rows = [_logs(place - mine, mine) for place, mine in enumerate(below, start=1)]
    ratios: list[float] = [math.lgamma(len(order) + 1) - sum(column) for column in zip(*rows, strict=True)]
    mine = sum(order)
    return tuple(mine * math.log(theta) + ratio for theta, ratio in zip(THETAS, ratios, strict=True))


def _log_mean_of_pairs(wins: int, losses: int) -> float:
    """A pair that is won has E = 2 theta / (1 + theta), one that is lost 2 / (1 + theta)."""
    return _mean_of([wins * math.log(theta) + (wins + losses) * math.log(2 / (1 + theta)) for theta in THETAS])


def _mean_of(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(sum(math.exp(it - most) for it in logs)) - _WEIGHT


@lru_cache(maxsize=1 << 16)
def _logs(theirs: int, mine: int) -> tuple[float, ...]:
    return tuple(math.log(theirs + theta * mine) for theta in THETAS)


def _power(log: float) -> str:
    digits = log / math.log(10)
    return f"{math.exp(log):.3g}" if abs(digits) < 6 else f"1e{digits:+.0f}".replace("+", "")
