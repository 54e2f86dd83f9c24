"""What is set aside and what was spent."""

from typing import Literal

from orchestrator.domain.events.base import Amounts, OneEvent
from orchestrator.domain.records import Spent


class Reserved(OneEvent):
    """The worst case, set aside before anything that costs exists."""

    kind: Literal["reserved"] = "reserved"
    hold: str
    amounts: Amounts


class Settled(OneEvent):
    """`node` is empty for work that belongs to no attempt, like evolving the playbook."""

    kind: Literal["settled"] = "settled"
    hold: str
    node: str
    spent: Amounts


class Refunded(OneEvent):
    """The slot goes back; what was spent stays spent. It is a loss, unless we ended it ourselves."""

    kind: Literal["refunded"] = "refunded"
    hold: str
    node: str
    spent: Amounts
    lost: bool = True


class Charged(OneEvent):
    """Usage that arrived late, or without a reservation of its own."""

    kind: Literal["charged"] = "charged"
    what: str
    spent: Amounts
    lost: bool = False


class StandingIntended(OneEvent):
    """Something rented is about to be made that stands longer than one chamber; `worst` is what it can cost.

    `name` is what the provider knows it by, `backend` who that is. Without a price, one whose end nobody saw counts as
    the worst case.
    """

    kind: Literal["standing intended"] = "standing intended"
    name: str
    backend: str
    worst: Spent
    usd_per_second: float | None = None


class StandingEnded(OneEvent):
    """What it did cost, by measured seconds. `interrupted`: nobody of ours saw its end, so this is the most that it
    can have been.
    """

    kind: Literal["standing ended"] = "standing ended"
    name: str
    spent: Spent
    interrupted: bool = False
