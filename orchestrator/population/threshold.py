"""From which share on changes are too much alike, learnt from what came of those that were run."""

import math
from typing import Final

LEVELS: Final = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
_LEAST_PAIRS = 8
_LEAST_SHARE = 0.8
_SURE = 1.28  # one side of 90 %
_LET_THROUGH = 10  # one in so many, to go on learning


class Threshold:
    """`said` holds where it is given. Else it is the least level at which so much alike has meant the same score."""

    def __init__(self, said: float | None = None) -> None:
        self._said = said
        self.pairs: dict[float, list[int]] = {level: [0, 0] for level in LEVELS}

    def count(self, share: float, *, same: bool) -> None:
        """A pair that was measured: how much alike it was, and whether its scores are the same."""
        level = next((level for level in LEVELS if share >= level), None)
        if level:
            counts = self.pairs[level]
            counts[0], counts[1] = counts[0] + same, counts[1] + 1

    @property
    def value(self) -> float:
        if self._said is not None:
            return self._said
        found, same, pairs = 1.0, 0, 0
        for level, (same_here, here) in self.pairs.items():
            if here > 1 and same_here < _LEAST_SHARE * here:
                break
            same, pairs = same + same_here, pairs + here
            if pairs >= _LEAST_PAIRS and _at_least(same, pairs) >= _LEAST_SHARE:
                found = level
        return found

    def refuses(self, share: float, form: str) -> bool:
        """What is the same but for its writing is never run; of what is alike some is, where that is learnt from."""
        if share < self.value:
            return False
        return self._said is not None or share == 1.0 or int(form[:8], 16) % _LET_THROUGH != 0


def _at_least(same: int, pairs: int) -> float:
    """The lower end of what the share may be (Wilson)."""
    share, spread = same / pairs, _SURE**2 / pairs
    half = _SURE * math.sqrt(share * (1 - share) / pairs + spread / pairs / 4)
    return (share + spread / 2 - half) / (1 + spread)
