"""What chambers at one place cost: for so many seconds, and at most. Pure, so that a plan says what a run reserves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrator.budget import micro_dollars, milliseconds
from orchestrator.domain.records import Spent
from sandbox import FREE, Limits, Terms

# The job that must pass wherever a backend is well.
CONTROL = Limits(wall=10, build=10, grace=1)


@dataclass(frozen=True)
class Tariff:
    """`provision_s` is how long a chamber is waited for, `spare_s` what it can take beyond its job's limits: upload,
    collection and the kill have their own. `terms` is what is charged beyond all of that.
    """

    usd_per_second: Callable[[Limits], float]
    provision_s: float
    spare_s: float
    terms: Terms = FREE

    @cached_property
    def is_rented(self) -> bool:
        return self.terms != FREE

    @property
    def opening_s(self) -> float:
        """How long to wait for a chamber; one that is rented takes the time that its provider's terms give it."""
        return max(self.provision_s, self.terms.opening_s)

    def worst_within(self, limits: Limits, *, builds: bool) -> Spent:
        """The most that one run can cost; where chambers are rented, with the control job that may have to tell whose
        fault an ending was.
        """
        worst = self.whole_life(limits, builds=builds)
        return worst + self.whole_life(CONTROL) if self.is_rented else worst

    def worst_in_turn(self, chambers: Sequence[tuple[Limits, bool]]) -> Spent:
        """The most that chambers can cost, one after the other, where the first that breaks off is the last: so that
        there is one control job at most. Each with its limits and whether it builds.
        """
        worst = Spent()
        for limits, builds in chambers:
            worst += self.whole_life(limits, builds=builds)
        return worst + self.whole_life(CONTROL) if self.is_rented and chambers else worst

    def whole_life(self, limits: Limits, *, builds: bool = False) -> Spent:
        """The most that one chamber can cost."""
        seconds = longest(limits, builds=builds, spare_s=self.spare_s)
        if self.is_rented:
            seconds += self.opening_s + self.terms.closing_s
        return self.cost(limits, seconds)

    def cost(self, limits: Limits, seconds: float) -> Spent:
        usd = self.usd_per_second(limits) * seconds
        return Spent(microdollars=micro_dollars(usd), milliseconds=milliseconds(seconds))


def longest(limits: Limits, *, builds: bool, spare_s: float) -> float:
    """The most seconds that a chamber of such limits can work."""
    return limits.wall + limits.grace + (limits.build if builds else 0.0) + spare_s
