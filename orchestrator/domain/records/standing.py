"""What is rented and stands longer than one chamber, and what was rented and not seen to end."""

from pydantic import BaseModel

from orchestrator.domain.records.base import Doubt, Spent

# What the holds of standing things are called, before their names: they belong to no node.
STANDING = "standing-"


class Standing(BaseModel, extra="forbid", frozen=True):
    """One that was made, or was about to be; if nobody hears of its end, it costs as much as it can have cost.
    `registry` is the provider's list that can tell of it later."""

    name: str
    backend: str
    worst: Spent
    usd_per_second: float | None
    since: str
    registry: str = ""


class Unsettled(Doubt, frozen=True):
    """A doubt that was booked `since` then, in a run, to a node; to the campaign itself where that is empty, for what
    `stood` or for another run of its own. `trial` has the same in its own figures.

    `lost` is None until the accounts have it, then whether it is among the stall losses. `bounded` is None until its
    free ending was counted, then whether its dollars count towards the bound of free endings.
    """

    node: str
    since: str
    run: int
    trial: str = ""
    stood: bool = False
    lost: bool | None = None
    bounded: bool | None = None
