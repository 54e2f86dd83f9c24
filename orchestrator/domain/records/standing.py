"""What is rented and stands longer than one chamber."""

from pydantic import BaseModel

from orchestrator.domain.records.base import Spent

# What the holds of standing things are called, before their names: they belong to no node.
STANDING = "standing-"


class Standing(BaseModel, extra="forbid", frozen=True):
    """One that was made, or was about to be; if nobody hears of its end, it costs as much as it can have cost."""

    name: str
    backend: str
    worst: Spent
    usd_per_second: float | None
    since: str
