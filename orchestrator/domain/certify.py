"""When a better score is an improvement: replayed where scores repeat, proven by repeats where they are noisy.

The proof is a ratio of likelihoods of ranks. Were the candidate no better than the champion, every order of their
measurements would be as likely as any other, whatever the noise looks like. Savage's ratio weighs that against a
candidate whose best measurements come first more often (Lehmann's alternative, theta > 1):

    E(theta) = theta^n * N! / prod_{i=1..N} (a_i + theta * b_i)

where a_i and b_i count the champion's and the candidate's among the i lowest of all N = m + n. With every measurement
more, of whichever side, it is a martingale of mean 1; so it ever reaches 1/level with a probability of at most
`level`, however often one looks (Ville). A mean over several theta is one too. See ADR 11.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate

# From a candidate that wins three of five comparisons to one that wins all.
THETAS = (1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
_WEIGHT = math.log(len(THETAS))

Standing = tuple[float, ...]


class CertifyRule(StrEnum):
    """Strict: the same candidate gets the same score. Noisy: it does not."""

    STRICT = "strict"
    NOISY = "noisy"


@dataclass(frozen=True)
class Certify:
    """`error` is the probability that a whole campaign keeps anything at all that is no improvement."""

    rule: CertifyRule = CertifyRule.STRICT
    error: float = 0.05
    repeats: int = 20
    champion: int = 20
    replay: bool = True

    @property
    def noisy(self) -> bool:
        return self.rule is CertifyRule.NOISY

    @property
    def replays(self) -> bool:
        return self.replay and not self.noisy

    @property
    def beyond(self) -> str:
        """What no worst case of an attempt holds, in words: repeats are reserved one by one, where it comes to them."""
        if not self.noisy:
            return ""
        return f"a candidate that looks better takes up to {self.repeats} more runs, and every champion {self.champion}"

    def level(self, reference: int, against: int) -> float:
        """The share of `error` for one test: the so-manieth `against` the champion that is the so-manieth `reference`.

        All shares that there can ever be add up to `error`. Both are counted, and not the tests alone, because which
        test meets which champion depends on what the champion's measurements happened to be.
        """
        return self.error / (reference * (reference + 1) * against * (against + 1))

    def can_prove(self, reference: int = 1, against: int = 1) -> bool:
        """Whether a candidate that wins every single comparison would pass this test."""
        return _log_mean([False] * self.champion + [True] * self.repeats) >= -math.log(self.level(reference, against))


class Stand(StrEnum):
    """How a test stands after a look."""

    PROVEN = "proven"
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


def look(champion: Sequence[Standing], candidate: Sequence[Standing], level: float, repeats: int) -> Evidence:
    """Where the test stands. It is futile as soon as even winning every comparison that is left would not do."""
    order = _order(champion, candidate)
    now, needed = _log_mean(order), -math.log(level)
    if now >= needed:
        return Evidence(now, needed, len(candidate), Stand.PROVEN)
    left = repeats - len(candidate)
    hope = left > 0 and _log_mean(order + [True] * left) >= needed
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


def _order(champion: Sequence[Standing], candidate: Sequence[Standing]) -> list[bool]:
    """All measurements from the lowest on, True for the candidate's; where both are equal, the candidate's is below."""
    marked = sorted([(value, 1) for value in champion] + [(value, 0) for value in candidate])
    return [mark == 0 for _, mark in marked]


def _log_mean(order: Sequence[bool]) -> float:
    if not order:
        return 0.0
    below = accumulate(order)
    rows = [_logs(place - mine, mine) for place, mine in enumerate(below, start=1)]
    ratios: list[float] = [math.lgamma(len(order) + 1) - sum(column) for column in zip(*rows, strict=True)]
    mine = sum(order)
    return _mean_of([mine * math.log(theta) + ratio for theta, ratio in zip(THETAS, ratios, strict=True)])


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
