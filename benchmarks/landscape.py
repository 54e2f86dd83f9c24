"""A landscape to share dollars on: what users gain depends on the playbook, which evolution improves with luck and with
less and less to find; some changes are gaming, whose trials are paid for in vain unless a verifier holds them.

All of it is made up, and every campaign draws its own figures from wide ranges. What is measured is how far it came:
the logarithm of how much of the distance to the best possible score is left.
"""

import math
import random
from dataclasses import dataclass, field
from typing import Final

from orchestrator.budget.allocation import Course, Split, UserResult
from orchestrator.domain.model_use import ModelRole

BUDGET: Final = 30_000_000
_CALL: Final = 100_000
_EDIT: Final = 150_000
_REVIEW: Final = 25_000
_TRIAL: Final = 120_000
_CAUGHT_IN_REVIEW: Final = 0.85
_HELD_BY_MISTAKE: Final = 0.03
_CAUGHT_LATER: Final = 0.6


@dataclass(frozen=True)
class Regime:
    """`quality` of the playbook at first, between 0 and 1; an edit is meant to close `reach` of what it lacks and
    varies by `luck`; each of `shifts` leaves a quarter of its quality; `gaming` is the share of changes that cheat.
    """

    name: str
    quality: tuple[float, float]
    reach: tuple[float, float] = (0.05, 0.2)
    luck: float = 0.06
    shifts: int = 0
    gaming: tuple[float, float] = (0.0, 0.04)


REGIMES: Final = (
    Regime("good playbook", quality=(0.8, 0.95)),
    Regime("bad playbook", quality=(0.05, 0.25)),
    Regime("problem shifts", quality=(0.7, 0.9), shifts=2),
    Regime("evolution useless", quality=(0.2, 0.6), reach=(0.0, 0.0), luck=0.01),
    Regime("gaming", quality=(0.6, 0.9), gaming=(0.3, 0.6)),
)


@dataclass
class Campaign:
    """One campaign on the landscape. Each kind of event has its own dice, so that splits differ by what they do."""

    regime: Regime
    seed: int
    left: float = BUDGET
    gap: float = 1.0
    spent: dict[ModelRole, int] = field(default_factory=lambda: dict.fromkeys(ModelRole, 0))
    version: int = 1

    def __post_init__(self) -> None:
        rolls = [random.Random(f"{self.regime.name} {self.seed} {kind}") for kind in ("world", "user", "edit", "trial")]
        world, self._user, self._edit, self._trial = rolls
        self.quality = world.uniform(*self.regime.quality)
        self.reach = world.uniform(*self.regime.reach)
        self.gaming = world.uniform(*self.regime.gaming)
        self.ease = world.uniform(0.2, 0.5)
        self.price = {role: math.exp(world.gauss(0, 0.4)) for role in ModelRole}
        cuts = sorted(world.uniform(0.15, 0.85) for _ in range(self.regime.shifts))
        self.shifts = [BUDGET * (1 - cut) for cut in cuts]

    def pay(self, role: ModelRole | None, mean: float, rng: random.Random) -> int:
        """None: a chamber, which no role pays for."""
        cost = round(mean * math.exp(rng.gauss(0, 0.3)) * (self.price[role] if role else 1.0))
        self.left -= cost
        if role:
            self.spent[role] += cost
        while self.shifts and self.left < self.shifts[0]:
            self.shifts.pop(0)
            self.quality *= 0.25
        return cost

    def evolve(self) -> None:
        """An edit is kept where users seem to do better with it; that is measured with noise."""
        self.pay(ModelRole.EVOLVER, _EDIT, self._edit)
        step = self._edit.gauss(self.reach * (1 - self.quality), self.regime.luck)
        if step + self._edit.gauss(0, 0.03) > 0.04:
            self.quality = min(1.0, max(0.0, self.quality + step))
            self.version += 1

    def attempt(self, course: Course) -> UserResult:
        """A change, a review where the verifier's share pays for it, and a trial unless it is held."""
        cost = self.pay(ModelRole.USER, _CALL, self._user)
        games, fails, hits = (self._user.random() for _ in range(3))
        size = self._user.uniform(0.02, 0.3)
        gaming = games < self.gaming
        if course.is_due(ModelRole.VERIFIER, self.spent):
            self.pay(ModelRole.VERIFIER, _REVIEW, self._trial)
            if self._trial.random() < (_CAUGHT_IN_REVIEW if gaming else _HELD_BY_MISTAKE):
                return UserResult(cost, usable=False, gamed=True, playbook=self.version)
        if fails < 0.4 * (1 - self.quality):
            return UserResult(cost, usable=False, playbook=self.version)
        self.pay(None, _TRIAL, self._trial)
        if gaming:
            return UserResult(cost, gamed=self._trial.random() < _CAUGHT_LATER, playbook=self.version)
        if hits >= 0.03 + self.ease * self.quality**1.5:
            return UserResult(cost, playbook=self.version)
        gain = self.gap * size
        self.gap -= gain
        return UserResult(cost, kept=True, gain=gain, playbook=self.version)


def played(regime: Regime, seed: int, split: Split) -> float:
    """How far a campaign comes with a split, as the logarithm of the distance that is left; more is better."""
    campaign, course = Campaign(regime, seed), Course(split)
    while campaign.left > 0:
        if course.is_due(ModelRole.EVOLVER, campaign.spent):
            campaign.evolve()
        else:
            course.hear(campaign.attempt(course))
    return -math.log(campaign.gap)
