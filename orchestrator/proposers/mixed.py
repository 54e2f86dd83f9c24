"""Points and changes to code in one search: whichever of the two improved on its parents lately is asked more often."""

import random
from collections.abc import Sequence

from orchestrator.proposers.arms import Arms, PricedArm
from orchestrator.proposers.base import Brief, Past, Proposer, Tried

# A small success long ago must not decide for ever, and the weaker one must get its chance again.
_MEMORY = 0.9
_LEAST = 0.2
_AT_FIRST = 0.5


class Mixed(Arms):
    """`points` draws parameters, `code` changes files. Where the search learns, these are two arms like any others;
    else their own success decides.
    """

    _priced = False

    def __init__(self, points: Proposer, code: Proposer) -> None:
        super().__init__({"points": PricedArm(points), "code": PricedArm(code)}, drafts=True)
        self.serial = False
        self._ended: Sequence[Tried] = ()
        self._seen = 0
        self._success = {True: _AT_FIRST, False: _AT_FIRST}

    def _dice(self, brief: Brief) -> random.Random:
        # Not for secrets: the seed is in the ledger.
        return random.Random(f"mixed/{brief.seed}/{brief.number}/{brief.again}")  # noqa: S311

    def _weights(self, brief: Brief) -> dict[str, float]:
        if brief.chooser.learns:
            return {"points": 1.0, "code": 1.0}
        self._learn(brief.past)
        points, code = self._success[True], self._success[False]
        share = min(1 - _LEAST, max(_LEAST, points / (points + code) if points + code else _AT_FIRST))
        return {"points": share, "code": 1.0 - share}

    def _learn(self, past: Past) -> None:
        """From what ended since the last look; from all of it where another cohort began."""
        if past.ended is not self._ended:
            self._ended, self._seen = past.ended, 0
            self._success = {True: _AT_FIRST, False: _AT_FIRST}
        for tried in past.ended[self._seen :]:
            if tried.parent_merits is not None:
                better = tried.merits is not None and tried.merits > tried.parent_merits
                is_point = tried.params is not None
                self._success[is_point] = _MEMORY * self._success[is_point] + (1 - _MEMORY) * better
        self._seen = len(past.ended)
