"""What is set aside and what was spent."""

from typing import Literal

from orchestrator.domain.events.base import Amounts, OneEvent


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
