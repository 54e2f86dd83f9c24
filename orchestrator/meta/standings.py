"""What each arm was worth so far, by both credits side by side, and how likely it is from now on."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.credit import Came, Credit, Crediting, Result, outcome
from orchestrator.meta.tuning import USUAL, Tuning


@dataclass(frozen=True)
class ArmStanding:
    """`lift` and `lineage` are means of advantages, shrunk towards nothing, in units of what is usual. `share` is how
    likely it is in the next draw with all on offer that ever were; None where nothing is learnt there.
    """

    slot: str
    arm: str
    attempts: int
    better: int
    lift: float
    lineage: float
    usd: float
    seconds: float
    share: float | None = None


@dataclass(frozen=True)
class KnobStanding:
    knob: str
    attempts: int
    at_first: float
    now: float


@dataclass(frozen=True)
class Standings:
    attempts: int
    arms: Sequence[ArmStanding]
    knobs: Sequence[KnobStanding]


@dataclass
class _Sum:
    attempts: int = 0
    better: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    weight: float = 0.0
    advantages: float = 0.0


def standings(ended: Sequence[Result], learnt: Learnt, tuning: Tuning = USUAL) -> Standings:
    """Of attempts in the order in which they ended; those without anything on record are counted, and no more."""
    sums = {kind: _summed(ended, kind, learnt, tuning) for kind in Crediting}
    priors = _priors(ended)
    view = Meta(learnt, tuning).view(ended)
    arms = []
    for (slot, arm), lift in sums[Crediting.LIFT].items():
        lineage = sums[Crediting.LINEAGE][slot, arm]
        share = view.odds(slot, priors[slot])[arm] if view and slot in view.logits else None
        arms.append(
            ArmStanding(
                slot=slot,
                arm=arm,
                attempts=lift.attempts,
                better=lift.better,
                lift=lift.advantages / (tuning.trust + lift.weight),
                lineage=lineage.advantages / (tuning.trust + lineage.weight),
                usd=lift.usd,
                seconds=lift.seconds,
                share=share,
            )
        )
    first = {name: knob.at_first for it in ended if it.drawn for name, knob in it.drawn.knobs.items()}
    knobs = [
        KnobStanding(name, sum(name in it.drawn.knobs for it in ended if it.drawn), at, exp(view.mean(name, at)))
        for name, at in sorted(first.items())
        if view
    ]
    return Standings(len(ended), sorted(arms, key=lambda it: (it.slot, -it.lift, it.arm)), knobs)


def _summed(ended: Sequence[Result], kind: Crediting, learnt: Learnt, tuning: Tuning) -> dict[tuple[str, str], _Sum]:
    credit, sums = Credit(kind, learnt.price, tuning), dict[tuple[str, str], _Sum]()
    for result in ended:
        better = outcome(result)[0] is Came.BETTER
        for earned in credit.earned(result):
            for slot, arm in earned.drawn.arms.items():
                it = sums.setdefault((slot, arm.option), _Sum())
                it.advantages += earned.weight * earned.advantage
                if earned.own:
                    it.attempts += 1
                    it.better += better
                    it.usd += result.usd
                    it.seconds += result.seconds
                    it.weight += earned.weight
    return sums


def _priors(ended: Sequence[Result]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for slot, arm in ((slot, arm) for it in ended if it.drawn for slot, arm in it.drawn.arms.items()):
        found.setdefault(slot, {}).update(arm.among)
    return found
