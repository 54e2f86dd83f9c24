"""How likely each choice is: one softmax a slot over what is on offer, and a log-normal draw a knob.

The weights that options have beforehand are offsets of their logits: without anything learnt, they alone decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import exp, fsum, log
from typing import Protocol

from orchestrator.domain.proposal import Arm, Drawn, Knob
from orchestrator.meta.credit import Earned
from orchestrator.meta.tuning import USUAL, Tuning

_NO_LOGITS: Mapping[str, float] = {}
# What is free, or very dear, counts as if it cost so many times less or more than usual.
_DEAREST = 20.0


class Learning(StrEnum):
    OFF = "off"
    LIFT = "lift"
    GRADIENT = "gradient"


@dataclass(frozen=True)
class View:
    """A policy as it is at one moment: a chooser looks at it from another thread while more is learnt."""

    logits: Mapping[str, Mapping[str, float]]
    means: Mapping[str, float]
    floor: float
    spread: float
    costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def per_cost(self, slot: str, prior: Mapping[str, float]) -> dict[str, float]:
        """The same weights beside what each cost so far, so that as much is spent on each of equal weight. One that
        was not tried yet is taken to cost what the others do.
        """
        known = {name: cost for name, cost in self.costs.get(slot, _NO_LOGITS).items() if name in prior}
        usual = sum(known.values()) / len(known) if known else 0.0
        if usual <= 0.0:
            return dict(prior)
        return {
            name: weight / min(_DEAREST, max(1.0 / _DEAREST, known.get(name, usual) / usual))
            for name, weight in prior.items()
        }

    def odds(self, slot: str, prior: Mapping[str, float]) -> dict[str, float]:
        """The probability of each; `prior` has a weight above 0 for each."""
        return mixed(self.logits.get(slot, _NO_LOGITS), prior, self.floor)

    def mean(self, knob: str, at_first: float) -> float:
        """Of the logarithm."""
        return log(at_first) + self.means.get(knob, 0.0)


def mixed(logits: Mapping[str, float], prior: Mapping[str, float], floor: float) -> dict[str, float]:
    # Sums that are exact: a ledger gives options back in another order, and a resume must come to the very same odds.
    whole = fsum(prior.values())
    # Beside the largest: however far a logit has gone, its exponential is a number.
    most = max(logits.get(name, 0.0) for name in prior)
    weights = {name: weight * exp(logits.get(name, 0.0) - most) for name, weight in prior.items()}
    learnt = fsum(weights.values())
    return {name: (1.0 - floor) * weights[name] / learnt + floor * prior[name] / whole for name in prior}


class Policy(Protocol):
    def learn(self, earned: Earned) -> None: ...

    def view(self, under_way: Sequence[Drawn] = ()) -> View:
        """As it is while these have no result yet."""


@dataclass
class _Tally:
    weight: float = 0.0
    total: float = 0.0


class _Costs:
    """What each arm costs, slot by slot; older results fade."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._tallies: dict[str, dict[str, _Tally]] = {}

    def learn(self, earned: Earned) -> None:
        for slot, arm in earned.drawn.arms.items() if earned.own else ():
            tally = self._tallies.setdefault(slot, {}).setdefault(arm.option, _Tally())
            tally.weight = tally.weight * self._tuning.fading + 1.0
            tally.total = tally.total * self._tuning.fading + earned.cost

    def means(self) -> dict[str, dict[str, float]]:
        return {
            slot: {name: it.total / it.weight for name, it in tallies.items()}
            for slot, tallies in self._tallies.items()
        }


class LiftPolicy:
    """An arm's weight follows the mean of its advantages, shrunk towards the mean of all, which is nothing. Knobs stay
    where they are.
    """

    def __init__(self, tuning: Tuning = USUAL) -> None:
        self._tuning = tuning
        self._costs = _Costs(tuning)
        self._seen: dict[str, int] = {}
        self._tallies: dict[str, dict[str, _Tally]] = {}

    def learn(self, earned: Earned) -> None:
        self._costs.learn(earned)
        for slot, arm in earned.drawn.arms.items():
            self._seen[slot] = self._seen.get(slot, 0) + earned.own
            tally = self._tallies.setdefault(slot, {}).setdefault(arm.option, _Tally())
            fading = self._tuning.fading if earned.own else 1.0
            tally.weight = tally.weight * fading + earned.weight * earned.own
            tally.total = tally.total * fading + earned.weight * earned.advantage

    def view(self, under_way: Sequence[Drawn] = ()) -> View:
        del under_way  # a mean is not moved by what is not known
        tuning = self._tuning
        logits = {
            slot: {name: tuning.sharpness * it.total / (tuning.trust + it.weight) for name, it in tallies.items()}
            for slot, tallies in self._tallies.items()
            if self._seen[slot] >= tuning.wait
        }
        return View(logits, {}, tuning.floor, 0.0, self._costs.means())


@dataclass
class _Slot:
    """`alarm` is Page and Hinkley's sum, `brought` the mean that it is beside."""

    logits: dict[str, float] = field(default_factory=dict)
    seen: int = 0
    alarm: float = 0.0
    brought: float = 0.0


class GradientPolicy:
    """Logits, and means of knobs, follow the score function times the advantage."""

    def __init__(self, tuning: Tuning = USUAL) -> None:
        self._tuning = tuning
        self._costs = _Costs(tuning)
        self._slots: dict[str, _Slot] = {}
        self._means: dict[str, float] = {}
        self._knobs: dict[str, int] = {}

    def learn(self, earned: Earned) -> None:
        self._costs.learn(earned)
        for slot, arm in earned.drawn.arms.items():
            self._follow(self._slots.setdefault(slot, _Slot()), arm, earned)
        for name, knob in earned.drawn.knobs.items():
            self._move(name, knob, earned)

    def _follow(self, slot: _Slot, arm: Arm, earned: Earned) -> None:
        tuning = self._tuning
        slot.seen += earned.own
        now = mixed(slot.logits, arm.among, tuning.floor)
        ratio = min(tuning.clip, max(1.0 / tuning.clip, now[arm.option] / arm.p))
        step = tuning.rate * earned.weight * ratio * earned.advantage
        for name in arm.among:
            old = slot.logits.get(name, 0.0)
            slot.logits[name] = old * (1.0 - tuning.forgetting * earned.own) + step * ((name == arm.option) - now[name])
        if earned.own:
            self._watch(slot, arm, earned)

    def _watch(self, slot: _Slot, arm: Arm, earned: Earned) -> None:
        """A change of regime: what following the policy brings beyond its prior falls below what it brought before."""
        tuning = self._tuning
        prior = arm.among[arm.option] / fsum(arm.among.values())
        brings = earned.advantage * (1.0 - min(2.0, prior / arm.p))
        slot.alarm = max(0.0, slot.alarm + slot.brought - brings - tuning.drift)
        slot.brought += (brings - slot.brought) / min(slot.seen, 30)
        if slot.alarm > tuning.alarm:
            slot.logits = {name: tuning.kept * it for name, it in slot.logits.items()}
            slot.alarm, slot.brought = 0.0, 0.0

    def _move(self, name: str, knob: Knob, earned: Earned) -> None:
        if knob.spread <= 0:
            return
        tuning = self._tuning
        self._knobs[name] = self._knobs.get(name, 0) + earned.own
        middle, at = log(knob.at_first), log(knob.value)
        mean = middle + self._means.get(name, 0.0)
        away, then = (at - mean) / knob.spread, (at - knob.mean) / knob.spread
        ratio = min(tuning.clip, max(1.0 / tuning.clip, exp((then * then - away * away) / 2)))
        mean += tuning.knob_rate * knob.spread * earned.weight * ratio * earned.advantage * away
        self._means[name] = min(log(knob.most), max(log(knob.least), mean)) - middle

    def view(self, under_way: Sequence[Drawn] = ()) -> View:
        """What is under way counts as a small disappointment until it ends: else all in flight draw the same arm."""
        tuning = self._tuning
        logits = {name: dict(it.logits) for name, it in self._slots.items() if it.seen >= tuning.wait}
        for slot, arm in ((slot, arm) for drawn in under_way for slot, arm in drawn.arms.items() if slot in logits):
            moved = logits[slot]
            now = mixed(moved, arm.among, tuning.floor)
            for name in arm.among:
                moved[name] = moved.get(name, 0.0) - tuning.doubt * ((name == arm.option) - now[name])
        means = {name: it for name, it in self._means.items() if self._knobs[name] >= tuning.wait}
        return View(logits, means, tuning.floor, tuning.spread, self._costs.means())
