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
        _book(state, self.hold, self.node, self.spent, refunded=True, lost=self.lost)

    @property
    def said(self) -> str:
        return f"refunded {self.hold}; lost: {amounts(self.spent)}"


def _spent(units: Amounts) -> Spent:
    return Spent(microdollars=units.get("usd", 0), milliseconds=units.get("seconds", 0), tokens=units.get("tokens", 0))


def _book(state: State, hold: str, node: str, units: Amounts, *, refunded: bool = False, lost: bool = False) -> None:
    spent = _spent(units)
    if node:
        state.set_node(node, booked=state.nodes[node].booked + spent)
    else:
        state.set_campaign(unbooked=state.campaign.unbooked - spent)
    if not node or state.nodes[node].booked == state.nodes[node].spent:
        for doubt in [it for it in state.doubts.values() if it.node == node and it.lost is None]:
            state.set_doubt(doubt.chamber, lost=lost, bounded=None if refunded else False)
    if node:
        return
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


class DoubtSettled(Event):
    """Its provider says how long something lived that was booked at its worst: what was too much is free again.

    A loss of a free ending gets smaller by it (`lost`).
    """

    kind: Literal["doubt settled"] = "doubt settled"
    chamber: str
    seconds: float
    freed: Amounts
    lost: bool

    def apply(self, state: State, _: str, /) -> None:
        doubt, freed = state.doubts[self.chamber], _spent(self.freed)
        state.drop("doubt", self.chamber)
        if doubt.node:
            node = state.nodes[doubt.node]
            state.set_node(doubt.node, spent=node.spent - freed, booked=node.booked - freed)
        if doubt.trial:
            state.set_trial(doubt.trial, spent=state.trials[doubt.trial].spent - freed)
        if doubt.stood:
            state.set_campaign(standing=state.campaign.standing - freed)
        if doubt.bounded:
            state.set_campaign(free_usd=state.campaign.free_usd - freed.microdollars)
        for run in [it for it in state.runs.values() if it.number > doubt.run]:
            state.set_run(run.number, usd_before=run.usd_before - freed.microdollars)

    @property
    def said(self) -> str:
        return f"{self.chamber} lived {self.seconds:g} s, says its provider; booked too much: {amounts(self.freed)}"


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
    registry: str = ""

    def apply(self, state: State, at: str, /) -> None:
        record = Standing(
            name=self.name,
            backend=self.backend,
            worst=self.worst,
            usd_per_second=self.usd_per_second,
            since=at,
            registry=self.registry,
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

    def apply(self, state: State, at: str, /) -> None:
        """It is booked by the settling of its hold, in the same transaction."""
        state.drop("standing", self.name)
        state.set_campaign(standing=state.campaign.standing + self.spent.plain)
        state.spend("", self.spent, at, stood=True)

    @property
    def said(self) -> str:
        seen = "; nobody saw its end, so that is the most that it can have cost" if self.interrupted else ""
        return f"{self.name} stands no more{cost(self.spent)}{seen}"
