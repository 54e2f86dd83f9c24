"""Several proposers in one search, each an arm with a price: the cheap ones first, the dear ones when those stall.

Which one is asked is a choice like any other: with `search.meta` it follows what each brought at what it cost. Points
beside changes of code, the proposer `mixed`, are one case: two arms without a price, of which the one that
often got better lately is asked more often, whether the search learns or not.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, Exhausted, Past, Proposer, Unanswered

SLOT = "proposer"
# After so many attempts without a better one, a price counts about a third of what it did: the dear ones get a chance.
_STALL = 8.0
# What does not apply, or has no output, halves an arm's weight each time in a row, down to this.
_LEAST_TRUST = 1 / 16
_LOOK_BACK = 40
# Of arms without a price, the weaker must get its chance again.
_LEAST_SHARE = 1 / 4


@dataclass(frozen=True)
class PricedArm:
    """`price` is what a proposal costs beside the cheapest; `asks`: a model, so it needs a line to one. `several`: it
    offers several changes at once.
    """

    proposer: Proposer
    price: float = 1.0
    asks: bool = False
    several: bool = False


class Arms:
    """Builds on what the search has found so far, whichever arm found it. `drafts`: all compete in tuning, so that each
    arm is asked for as many as it may offer. `priced`: the usual weights have prices in them.
    """

    branching = True

    def __init__(self, arms: Mapping[str, PricedArm], *, drafts: bool = False, priced: bool = True) -> None:
        self._arms = arms
        self._drafts = drafts
        self._priced = priced
        self.serial = any(arm.proposer.serial for arm in arms.values())

    def exhausted(self, number: int) -> str | None:
        said = [arm.proposer.exhausted(number) for arm in self._arms.values()]
        return said[0] if all(said) else None

    def with_proposer(self, name: str, proposer: Proposer) -> "Arms":
        """The same with another proposer for an arm."""
        return Arms(
            {**self._arms, name: replace(self._arms[name], proposer=proposer)}, drafts=self._drafts, priced=self._priced
        )

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        """Another one is asked where the first has nothing more, or only repeats what is known; those that ask a model
        only where one may be asked.
        """
        open_to = {name: arm for name, arm in self._arms.items() if brief.line is not None or not arm.asks}
        repeating = {it.drawn.arms[SLOT].option for it in brief.repeated if it.drawn and SLOT in it.drawn.arms}
        among = open_to.keys() - repeating or open_to.keys()
        weights = {name: weight for name, weight in self._weights(brief).items() if name in among}
        rng = self._dice(brief)
        nothing: Exhausted | None = None
        while weights:
            chooser = brief.chooser.fork()
            name = chooser.choose(SLOT, weights, rng, priced=self._priced) or next(iter(weights))
            arm = open_to[name]
            count = brief.count if self._drafts or arm.several else 1
            try:
                made = await arm.proposer.propose(replace(brief, chooser=chooser, count=count))
            except Exhausted as error:
                nothing = error
                del weights[name]
                continue
            except Unanswered as error:
                error.drawn = error.drawn or chooser.drawn
                raise
            return [it if it.drawn else it.model_copy(update={"drawn": chooser.drawn}) for it in made]
        raise nothing or Exhausted("no arm may be asked: dollars are short, and each of them asks a model")

    def _dice(self, brief: Brief) -> random.Random:
        # Not for secrets: the seed is in the ledger.
        return random.Random(f"arms/{brief.seed}/{brief.number}/{brief.again}")  # noqa: S311

    def _weights(self, brief: Brief) -> dict[str, float]:
        """Before anything is learnt: by price, which counts less and less while nothing gets better. Arms without a
        price: by how often each was better lately, if the search does not learn.
        """
        if not self._priced:
            chooser = brief.chooser
            rates = {name: 1.0 if chooser.learns else chooser.lately.rate(SLOT, name) for name in self._arms}
            return {name: max(rate, _LEAST_SHARE * max(rates.values())) for name, rate in rates.items()}
        matters = math.exp(-_since_better(brief.past) / _STALL)
        return {name: arm.price**-matters * _trust(brief.past, name) for name, arm in self._arms.items()}


def _since_better(past: Past) -> int:
    ended = past.ended
    for back in range(min(len(ended), _LOOK_BACK)):
        tried = ended[-1 - back]
        if tried.merits is not None and tried.parent_merits is not None and tried.merits > tried.parent_merits:
            return back
    return min(len(ended), _LOOK_BACK)


def _trust(past: Past, name: str) -> float:
    """Less for an arm whose last changes did not apply, or gave nothing that can be judged."""
    trust = 1.0
    for tried in past.ended[-_LOOK_BACK:][::-1]:
        arm = tried.drawn.arms.get(SLOT) if tried.drawn else None
        if arm is None or arm.option != name:
            continue
        if tried.ending is not Ending.INVALID or trust <= _LEAST_TRUST:
            break
        trust /= 2
    return trust
