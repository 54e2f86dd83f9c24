"""Three roles share the model budget: users propose, evolvers edit the playbook that users work with, verifiers check.

For every dollar that users spend, the other roles earn theirs, at the shares of that moment. So a share that changes
is a new rate from then on, never a debt to be worked off. Evolution earns more while users struggle and less while the
playbook carries the load; where it was paid for long and no new version came of it, less again. Verification earns
more while there is gaming to be found. Floors and caps hold in any case. Scores count only as ratios to each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.domain.model_use import ModelRole

# Found on the tuning seeds of benchmarks/allocation.py, not on those that it reports.
_HALF_LIFE: Final = 6.0
_PRIOR: Final = 2.0
# The trouble of a change that runs and is no better, and how much trouble is none, and as much as there can be.
_IDLE: Final = 0.6
_EASY: Final = 0.5
_HARD: Final = 0.6
# In attempts' worth of dollars: after so much beyond its floor without a new version, evolution gets half as much.
_PATIENCE: Final = 12.0
_FORGOTTEN: Final = 0.5
_MUCH_GAMING: Final = 0.3


@dataclass(frozen=True)
class RoleShare:
    """Of the model's dollars: what a role gets to begin with, what it always gets, what it never gets past."""

    share: float
    floor: float
    cap: float

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= self.share <= self.cap < 1:
            raise ValueError(f"a share is written as floor <= share <= cap < 1, not {self}")

    def at(self, level: float) -> float:
        return self.floor + (self.cap - self.floor) * level

    @property
    def level(self) -> float:
        """The level at which it gets its share to begin with."""
        return (self.share - self.floor) / (self.cap - self.floor) if self.cap > self.floor else 0.0


@dataclass(frozen=True)
class Split:
    """None: nobody has that role. `microdollars` is what the campaign may cost in all, None where that has no cap."""

    evolver: RoleShare | None = None
    verifier: RoleShare | None = None
    microdollars: int | None = None

    def __post_init__(self) -> None:
        if sum(role.cap for role in (self.evolver, self.verifier) if role) >= 1:
            raise ValueError("the caps of evolver and verifier leave nothing for users")

    def cap_of(self, role: ModelRole) -> float:
        """Users may have what the floors of the others leave."""
        match role:
            case ModelRole.EVOLVER:
                return self.evolver.cap if self.evolver else 0.0
            case ModelRole.VERIFIER:
                return self.verifier.cap if self.verifier else 0.0
        return 1.0 - sum(other.floor for other in (self.evolver, self.verifier) if other)


@dataclass(frozen=True)
class UserResult:
    """What one attempt of a user brought. `usable` is false where its change was refused or did not run to a score.

    `gain` is how much better than the best before a kept one is, in any unit, None where that cannot be told.
    `gamed`: the verifier held it, or it was caught later. A flag does not count: a verifier must not be able to earn by
    flagging. `playbook` is the version that it was made with.
    """

    microdollars: int
    kept: bool = False
    gain: float | None = None
    usable: bool = True
    gamed: bool = False
    playbook: int | None = None


class Course:
    """Where the roles stand after the results so far; each more costs the same."""

    def __init__(self, split: Split) -> None:
        self._split = split
        self._trouble = _Fading(_EASY + (split.evolver.level if split.evolver else 0.0) * (_HARD - _EASY))
        self._gamed = _Fading((split.verifier.level if split.verifier else 0.0) * _MUCH_GAMING)
        self._usual: float | None = None
        self._playbook: int | None = None
        self._unrewarded = 0.0
        self._mean_cost = 0.0
        self._count = 0
        self._told = 0.0
        self._earned = {ModelRole.EVOLVER: 0.0, ModelRole.VERIFIER: 0.0}

    def hear(self, result: UserResult) -> None:
        shares = self.shares
        for role in self._earned:
            self._earned[role] += result.microdollars * shares[role] / shares[ModelRole.USER]
        self._told += result.microdollars
        self._count += 1
        self._mean_cost += (result.microdollars - self._mean_cost) / self._count
        self._see_whether_it_pays(result, shares)
        self._gamed.add(float(result.gamed))
        if not result.gamed:
            self._trouble.add(self._trouble_of(result))

    def _see_whether_it_pays(self, result: UserResult, shares: Mapping[ModelRole, float]) -> None:
        """Counts, in attempts' worth of dollars, what evolution got beyond its floor since its last new version."""
        if self._split.evolver is None:
            return
        if result.playbook != self._playbook or self._struggle <= 0.0:
            self._unrewarded *= _FORGOTTEN
        elif self._mean_cost:
            beyond = (shares[ModelRole.EVOLVER] - self._split.evolver.floor) / shares[ModelRole.USER]
            self._unrewarded += beyond * result.microdollars / self._mean_cost
        self._playbook = result.playbook

    def _trouble_of(self, result: UserResult) -> float:
        """0 for a gain as large as usual, 1 for a change that cannot even be used."""
        if not result.usable:
            return 1.0
        if not result.kept:
            return _IDLE
        if result.gain is None or result.gain <= 0:
            return 0.0
        usual = self._usual or result.gain
        self._usual = usual + (result.gain - usual) / 4
        return max(0.0, 1.0 - result.gain / usual) * _IDLE

    @property
    def _struggle(self) -> float:
        """0 where the playbook carries the load, 1 where next to nothing works."""
        return min(1.0, max(0.0, (self._trouble.value - _EASY) / (_HARD - _EASY)))

    @property
    def _gaming(self) -> float:
        return min(1.0, self._gamed.value / _MUCH_GAMING)

    @property
    def shares(self) -> dict[ModelRole, float]:
        """They sum to 1."""
        split = self._split
        evolver = split.evolver.at(self._struggle * self._hope) if split.evolver else 0.0
        verifier = split.verifier.at(self._gaming) if split.verifier else 0.0
        user = 1.0 - evolver - verifier
        return {ModelRole.USER: user, ModelRole.EVOLVER: evolver, ModelRole.VERIFIER: verifier}

    @property
    def _hope(self) -> float:
        return 1.0 / (1.0 + self._unrewarded / _PATIENCE)

    @property
    def why(self) -> str:
        """The rule's own words on the present shares, in one line."""
        shares = self.shares
        parts = []
        if self._split.evolver:
            parts.append(f"{self._users_are()}, so evolution gets {shares[ModelRole.EVOLVER]:.0%}")
        if self._split.verifier:
            gaming = f"signs of gaming in {self._gamed.value:.0%} of the changes"
            parts.append(f"{gaming}, so verification gets {shares[ModelRole.VERIFIER]:.0%}")
        return "; ".join(parts) or "users alone ask models"

    def _users_are(self) -> str:
        if self._count == 0:
            return "no results yet"
        level = self._struggle
        users = "users struggle" if level > 0.5 else "users get on" if level <= 0.1 else "users struggle at times"
        return f"{users}, though no new playbook has helped" if level > 0.1 and self._hope < 0.5 else users

    def earned(self, role: ModelRole, spent: Mapping[ModelRole, int]) -> float:
        """Micro-dollars. What users spent without a result so far counts at the present shares."""
        shares = self.shares
        untold = max(0.0, spent.get(ModelRole.USER, 0) - self._told)
        return self._earned[role] + untold * shares[role] / shares[ModelRole.USER]

    def is_due(self, role: ModelRole, spent: Mapping[ModelRole, int]) -> bool:
        """Whether it may be paid for once more; one call may pass what was earned, none may begin beyond it.

        A verifier beside users that cost nothing, and one that cost nothing itself, is always due.
        """
        if role is ModelRole.VERIFIER and not (spent.get(ModelRole.USER, 0) and spent.get(role, 0)):
            return not self._is_capped(role, spent)
        return self._has_left(role, spent)

    def _has_left(self, role: ModelRole, spent: Mapping[ModelRole, int]) -> bool:
        if self._is_capped(role, spent):
            return False
        return role is ModelRole.USER or spent.get(role, 0) < self.earned(role, spent)

    def _is_capped(self, role: ModelRole, spent: Mapping[ModelRole, int]) -> bool:
        cap, whole = self._split.cap_of(role), self._split.microdollars
        return not cap or (whole is not None and spent.get(role, 0) >= cap * whole)

    def next_role(self, spent: Mapping[ModelRole, int]) -> ModelRole:
        """The evolver goes first, since the verifier has its turn with every change of a user anyway."""
        for role in (ModelRole.EVOLVER, ModelRole.VERIFIER):
            if self._has_left(role, spent):
                return role
        return ModelRole.USER


@dataclass(frozen=True)
class Allocator:
    """The same for a whole list of results: nothing is kept, so that a resume decides alike."""

    split: Split

    def after(self, results: Sequence[UserResult]) -> Course:
        course = Course(self.split)
        for result in results:
            course.hear(result)
        return course

    def shares(self, results: Sequence[UserResult]) -> Mapping[ModelRole, float]:
        return self.after(results).shares

    def next_role(self, spent: Mapping[ModelRole, int], results: Sequence[UserResult]) -> ModelRole:
        """`spent` in micro-dollars."""
        return self.after(results).next_role(spent)

    def why(self, results: Sequence[UserResult]) -> str:
        return self.after(results).why


class _Fading:
    """A mean in which older values fade; it begins at `prior`, as if that had been seen a few times."""

    def __init__(self, prior: float) -> None:
        self._sum = prior * _PRIOR
        self._weight = _PRIOR

    def add(self, value: float) -> None:
        fade = 0.5 ** (1.0 / _HALF_LIFE)
        self._sum = self._sum * fade + value
        self._weight = self._weight * fade + 1.0

    @property
    def value(self) -> float:
        return self._sum / self._weight
