"""Who chooses for a proposer, and the memory behind it: a fold over what ended, and a function of nothing else."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import exp, log

from orchestrator.domain.proposal import Arm, Drawn, Knob
from orchestrator.meta.credit import Credit, Crediting, Price, Result
from orchestrator.meta.lately import Lately, Recent
from orchestrator.meta.policy import GradientPolicy, Learning, LiftPolicy, Policy, View
from orchestrator.meta.tuning import USUAL, Tuning

IN_SIGHT = 64  # of those under way, so that a draw costs the same with thousands in flight


class Chooser:
    """The choices for one brief, each noted with the probability under which it was made. Without a `view` it draws by
    the weights that it is given, with the caller's own dice; `lately` is what each arm was worth of late.
    """

    def __init__(
        self, rng: random.Random | None = None, view: View | None = None, lately: Callable[[], Recent] | None = None
    ) -> None:
        # Not for secrets: the seed is in the ledger.
        self._rng = rng or random.Random(0)  # noqa: S311
        self._view = view
        self._lately = lately or Lately().recent
        self._arms: dict[str, Arm] = {}
        self._knobs: dict[str, Knob] = {}

    @property
    def learns(self) -> bool:
        return self._view is not None

    @property
    def lately(self) -> Recent:
        """Found out when it is first asked for: most proposers draw nothing."""
        return self._lately()

    @property
    def drawn(self) -> Drawn | None:
        """What was chosen so far; the last choice counts where one was made twice."""
        if not self._arms and not self._knobs:
            return None
        return Drawn(arms=dict(self._arms), knobs=dict(self._knobs))

    def fork(self) -> "Chooser":
        """With the same dice and what was chosen so far; what it chooses is known to it alone."""
        other = Chooser(self._rng, self._view, self._lately)
        other._arms, other._knobs = dict(self._arms), dict(self._knobs)
        return other

    def choose(
        self,
        slot: str,
        prior: Mapping[str, float],
        rng: random.Random | None = None,
        *,
        priced: bool = False,
        lately: bool = False,
    ) -> str | None:
        """One of those whose weight is above 0; None where none is. `rng` are the caller's own dice, which are thrown
        where nothing is learnt. `priced`: the weights have prices in them already. `lately`: where nothing is learnt,
        what each was worth of late counts.
        """
        among = {name: weight for name, weight in prior.items() if weight > 0}
        if not among:
            return None
        view, dice = self._view, self._rng
        if view is None:
            view, dice = self.lately.view if lately else None, rng or self._rng
        if view is None:
            weights = [max(0.0, weight) for weight in prior.values()]
            option = dice.choices(list(prior), weights)[0]
            odds = among[option] / sum(among.values())
        else:
            among = among if priced else view.per_cost(slot, among)
            all_odds = view.odds(slot, among)
            option = dice.choices(list(all_odds), list(all_odds.values()))[0]
            odds = all_odds[option]
        self._arms[slot] = Arm(option=option, p=odds, among=among)
        return option

    def knob(self, name: str, at_first: float, least: float, most: float) -> float:
        """A number around a mean that moves, within its bounds; `at_first` where nothing is learnt."""
        if self._view is None:
            return at_first
        mean = min(log(most), max(log(least), self._view.mean(name, at_first)))
        value = min(most, max(least, exp(self._rng.gauss(mean, self._view.spread))))
        self._knobs[name] = Knob(
            value=value, mean=mean, spread=self._view.spread, at_first=at_first, least=least, most=most
        )
        return value


@dataclass(frozen=True)
class Learnt:
    """What a task says of the meta loop."""

    learning: Learning = Learning.OFF
    credit: Crediting = Crediting.LIFT
    price: Price = Price.NONE


class Meta:
    """All that was learnt in one run by one proposer. What it looks at once it does not look at again."""

    _seen: int
    _last: Result | None
    _credit: Credit
    _policy: Policy
    _lately: Lately
    _told: int
    _last_told: Result | None

    def __init__(self, learnt: Learnt | None = None, tuning: Tuning = USUAL) -> None:
        self.learnt = learnt or Learnt()
        self._tuning = tuning
        self._asks_lately = False
        self._forget()
        self._forget_lately()

    @property
    def learns(self) -> bool:
        return self.learnt.learning is not Learning.OFF

    def chooser(
        self, ended: Sequence[Result], seed: int, number: int, again: int, running: Sequence[Result] = ()
    ) -> Chooser:
        """For one brief; the same for the same past and seed. `running` are those that have not ended."""
        # Not for secrets: the seed is in the ledger.
        rng = random.Random(f"meta/{seed}/{number}/{again}")  # noqa: S311
        lately = cache(partial(self._recent, ended, len(ended)))
        if self._asks_lately:
            lately()
        return Chooser(rng, self.view(ended, running), lately)

    def view(self, ended: Sequence[Result], running: Sequence[Result] = ()) -> View | None:
        """The policy after all of these; None where nothing is learnt."""
        if not self.learns:
            return None
        self._learn(ended)
        return self._policy.view([it.drawn for it in running[-IN_SIGHT:] if it.drawn])

    def _learn(self, ended: Sequence[Result]) -> None:
        """What is new since the last time; all of it where this is another past, as after a change of cohorts."""
        if self._seen > len(ended) or (self._seen and ended[self._seen - 1] is not self._last):
            self._forget()
        for at in range(self._seen, len(ended)):
            for earned in self._credit.earned(ended[at]):
                self._policy.learn(earned)
        self._seen = len(ended)
        self._last = ended[-1] if ended else None

    def _recent(self, ended: Sequence[Result], until: int) -> Recent:
        """After so many of them. From the first time on each is asked for at once, so that none is asked for late."""
        self._asks_lately = True
        if self._told and (self._told > len(ended) or ended[self._told - 1] is not self._last_told):
            self._forget_lately()
        if self._told > until:
            before = Lately()
            for result in ended[:until]:
                before.learn(result)
            return before.recent()
        for at in range(self._told, until):
            self._lately.learn(ended[at])
        self._told = until
        self._last_told = ended[until - 1] if until else None
        return self._lately.recent()

    def _forget_lately(self) -> None:
        self._told = 0
        self._last_told = None
        self._lately = Lately()

    def _forget(self) -> None:
        self._seen = 0
        self._last = None
        self._credit = Credit(self.learnt.credit, self.learnt.price, self._tuning)
        by_lift = self.learnt.learning is Learning.LIFT
        self._policy = LiftPolicy(self._tuning) if by_lift else GradientPolicy(self._tuning)
