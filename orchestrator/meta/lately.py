"""What each arm brought lately. It is all that decides beside the usual weights where a search does not learn, and what
operators read of places is told in the same words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

from orchestrator.meta.credit import Came, Result, outcome
from orchestrator.meta.policy import View

# What a change is worth without being better: one that runs and matters is nearer to it than one that does not.
_BROKEN, _SAME, _WORSE, _BETTER = 0.0, 0.02, 0.08, 0.2
_EXPECTED = 0.15
_TRUST = 5.0  # so many trials weigh as much as what was expected beforehand
_FADING = 0.97
_CURIOUS = 0.25  # share of draws that asks nobody which arm did well
# A small success long ago must not decide for ever.
_MEMORY, _AT_FIRST = 0.9, 0.5


@dataclass
class Tally:
    """How often something was tried, what came of it, and how often that was just nothing; older things fade. `tried`
    and `matters` do not: whether a change there ever made a difference. `rate` is how often it was better of late.
    """

    weight: float = 0.0
    reward: float = 0.0
    same: float = 0.0
    tried: int = 0
    matters: bool = False
    rate: float = _AT_FIRST

    def add(self, reward: float, came: Came, *, matters: bool = True) -> None:
        self.tried += 1
        self.matters |= matters
        self.weight = self.weight * _FADING + 1.0
        self.reward = self.reward * _FADING + reward
        self.same = self.same * _FADING + (came is Came.SAME)
        self.rate = _MEMORY * self.rate + (1.0 - _MEMORY) * (came is Came.BETTER)

    @property
    def quality(self) -> float:
        """1 for what is as good as expected."""
        return (_TRUST * _EXPECTED + self.reward) / (_TRUST + self.weight) / _EXPECTED

    @property
    def life(self) -> float:
        """How much of it makes a difference at all: code that is never reached is soon known."""
        return (1.0 + self.weight - self.same) / (1.0 + self.weight)


@dataclass
class Rewards:
    """A gain counts beside the largest of late: the scale of scores is the task's own."""

    large_gain: float = 0.0

    def of(self, came: Came, gain: float) -> float:
        self.large_gain *= _FADING
        if came is not Came.BETTER:
            return {Came.SAME: _SAME, Came.WORSE: _WORSE}.get(came, _BROKEN)
        self.large_gain = max(self.large_gain, gain)
        return _BETTER + (1.0 - _BETTER) * gain / self.large_gain


@dataclass(frozen=True)
class Recent:
    """What is known at one moment: `view` has weights times what each arm was worth, as a policy has them."""

    view: View
    rates: Mapping[str, Mapping[str, float]]

    def quality(self, slot: str, option: str) -> float:
        """1 for an arm that was as good as expected, or is not known."""
        return exp(self.view.logits.get(slot, {}).get(option, 0.0))

    def rate(self, slot: str, option: str) -> float:
        """How often it was better than what it was built on."""
        return self.rates.get(slot, {}).get(option, _AT_FIRST)


class Lately:
    """A fold over what has ended, slot by slot. Of an older ledger, which tells no draws, the operator is known."""

    def __init__(self) -> None:
        self._rewards = Rewards()
        self._tallies: dict[str, dict[str, Tally]] = {}

    def learn(self, result: Result) -> None:
        came, gain = outcome(result)
        reward = self._rewards.of(came, gain)
        arms = {slot: arm.option for slot, arm in result.drawn.arms.items()} if result.drawn else {}
        for slot, option in (arms or {"operator": result.operator}).items():
            self._tallies.setdefault(slot, {}).setdefault(option, Tally()).add(reward, came)

    def recent(self) -> Recent:
        logits = {slot: {name: log(it.quality) for name, it in found.items()} for slot, found in self._tallies.items()}
        rates = {slot: {name: it.rate for name, it in found.items()} for slot, found in self._tallies.items()}
        return Recent(View(logits, {}, _CURIOUS, 0.0), rates)
