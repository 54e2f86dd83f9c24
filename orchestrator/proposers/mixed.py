"""Points and changes to code in one search: whichever of the two improved on its parents lately is asked more often."""

import random
from collections.abc import Sequence

from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, Exhausted, Past, Proposer, Tried

# A small success long ago must not decide for ever, and the weaker one must get its chance again.
_MEMORY = 0.9
_LEAST = 0.2
_AT_FIRST = 0.5


class Mixed:
    """`points` draws parameters, `code` changes files; both build on what the search has found so far."""

    serial = False
    branching = True

    def __init__(self, points: Proposer, code: Proposer) -> None:
        self._points = points
        self._code = code
        self._ended: Sequence[Tried] = ()
        self._seen = 0
        self._success = {True: _AT_FIRST, False: _AT_FIRST}

    def exhausted(self, number: int) -> str | None:
        said = [it.exhausted(number) for it in (self._points, self._code)]
        return said[0] if all(said) else None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        """The other one is asked where the first has nothing more."""
        order = [self._points, self._code] if self._draws_point(brief) else [self._code, self._points]
        try:
            return await order[0].propose(brief)
        except Exhausted:
            return await order[1].propose(brief)

    def _draws_point(self, brief: Brief) -> bool:
        self._learn(brief.past)
        points, code = self._success[True], self._success[False]
        share = points / (points + code) if points + code else _AT_FIRST
        # Not for secrets: the seed is in the ledger.
        drawn = random.Random(f"mixed/{brief.seed}/{brief.number}/{brief.again}").random()  # noqa: S311
        return drawn < min(1 - _LEAST, max(_LEAST, share))

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
