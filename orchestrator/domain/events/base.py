"""What all events have in common."""

from pydantic import BaseModel

Amounts = dict[str, int]


class OneEvent(BaseModel, extra="forbid", frozen=True):
    """Its `kind` tells it from all others."""
