"""What all events have in common: a kind, what they change, and what they say."""

from abc import abstractmethod
from collections.abc import Mapping

from pydantic import BaseModel

from orchestrator.domain import figures
from orchestrator.domain.account import Account, shown
from orchestrator.domain.records import Spent
from orchestrator.domain.state import State

Amounts = dict[str, int]
NAMED = 6  # of a list in a sentence


class Event(BaseModel, extra="forbid", frozen=True):
    """Something that happened. A class that is made of this one is all that a new kind of event needs."""

    kind: str

    def apply(self, state: State, at: str, /) -> None:
        """Change the records that it names, by nothing but itself and them. Nothing changes unless a kind says so.

        Raises KeyError for something unknown: then the ledger is broken.
        """

    @property
    @abstractmethod
    def said(self) -> str:
        """What happened, in a sentence. Words of others in it are as they came."""


def amounts(units: Mapping[str, int]) -> str:
    known = {account.value: account for account in Account}
    told = [shown(known[name], count) for name, count in units.items() if name in known and count]
    return ", ".join(told) or "nothing"


def cost(spent: Spent) -> str:
    return f" ({figures.spent(spent)})" if spent != Spent() else ""


def because(why: str) -> str:
    return f": {why}" if why else ""
