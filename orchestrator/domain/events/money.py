"""What is set aside and what was spent."""

from typing import Literal

from orchestrator.domain.events.base import Amounts, Event, amounts, cost
from orchestrator.domain.records import EVOLVING, Role, Spent, Standing
from orchestrator.domain.state import State


class Reserved(Event):
    """The worst case, set aside before anything that costs exists."""

    kind: Literal["reserved"] = "reserved"
    hold: str
    amounts: Amounts

    @property
    def said(self) -> str:
        return f"reserved for {self.hold}: {amounts(self.amounts)}"


class Settled(Event):
    """`node` is empty for work that belongs to no attempt, like evolving the playbook."""

    kind: Literal["settled"] = "settled"
    hold: str
    node: str
    spent: Amounts

    def apply(self, state: State, _: str, /) -> None:
        _book(state, self.hold, self.node, self.spent)

    @property
    def said(self) -> str:
        return f"settled {self.hold}: {amounts(self.spent)}"


class Refunded(Event):
    """The slot goes back; what was spent stays spent. It is a loss, unless we ended it ourselves."""

    kind: Literal["refunded"] = "refunded"
    hold: str
    node: str
    spent: Amounts
    lost: bool = True

    def apply(self, state: State, _: str, /) -> None:
        _book(state, self.hold, self.node, self.spent)

    @property
    def said(self) -> str:
        return f"refunded {self.hold}; lost: {amounts(self.spent)}"


def _book(state: State, hold: str, node: str, units: Amounts) -> None:
    spent = Spent(microdollars=units.get("usd", 0), milliseconds=units.get("seconds", 0), tokens=units.get("tokens", 0))
    if node:
        state.set_node(node, booked=state.nodes[node].booked + spent)
        return
    state.set_campaign(unbooked=state.campaign.unbooked - spent)
    if hold.startswith(EVOLVING):
        evolutions = state.campaign.evolutions + 1
        state.set_campaign(evolutions=evolutions, evolved_after=state.count_all(Role.SEARCH))


class Charged(Event):
    """Usage that arrived late, or without a reservation of its own."""

    kind: Literal["charged"] = "charged"
    what: str
    spent: Amounts
    lost: bool = False

    @property
    def said(self) -> str:
        return f"charged for {self.what}: {amounts(self.spent)}"


class StandingIntended(Event):
    """Something rented is about to be made that stands longer than one chamber; `worst` is what it can cost.

    `name` is what the provider knows it by, `backend` who that is. Without a price, one whose end nobody saw counts as
    the worst case.
    """

    kind: Literal["standing intended"] = "standing intended"
    name: str
    backend: str
    worst: Spent
    usd_per_second: float | None = None

    def apply(self, state: State, at: str, /) -> None:
        record = Standing(
            name=self.name, backend=self.backend, worst=self.worst, usd_per_second=self.usd_per_second, since=at
        )
        state.new("standing", self.name, record)
        state.set_campaign(stood=state.campaign.stood + 1)

    @property
    def said(self) -> str:
        return f"{self.name} is to stand ready on {self.backend}, at most{cost(self.worst)}"


class StandingEnded(Event):
    """What it did cost, by measured seconds. `interrupted`: nobody of ours saw its end, so this is the most that it
    can have been.
    """

    kind: Literal["standing ended"] = "standing ended"
    name: str
    spent: Spent
    interrupted: bool = False

    def apply(self, state: State, _: str, /) -> None:
        """It is booked by the settling of its hold, in the same transaction."""
        state.drop("standing", self.name)
        now = state.campaign
        state.set_campaign(standing=now.standing + self.spent, unbooked=now.unbooked + self.spent)

    @property
    def said(self) -> str:
        seen = "; nobody saw its end, so that is the most that it can have cost" if self.interrupted else ""
        return f"{self.name} stands no more{cost(self.spent)}{seen}"
