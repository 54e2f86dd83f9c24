"""Who pays for what stands longer than one chamber: idle warm sandboxes, warm clusters."""

from typing import Protocol

from sandbox.errors import Refused


class NotPaid(Refused):
    """A purse sets nothing aside for what would only wait. Why, it says itself, where a person should know."""


class Purse(Protocol):
    """Asked before a standing thing exists, told once what it cost. Names are unique and are found at the provider.

    Both are called in the thread of the event loop; telling it waits for nobody.
    """

    async def reserve(self, name: str, worst_usd: float, usd_per_second: float | None = None) -> bool:
        """Set the worst case aside, on record and on disk when it returns. False when it does not fit: then it must
        not be made.

        With its price, what an owner that dies leaves behind need not be booked at the worst case.
        """

    def settle(self, name: str, usd: float, *, seen: bool = True) -> None:
        """It is gone, confirmed by the provider, and cost this much. Not `seen`: that is the most that it can cost."""
