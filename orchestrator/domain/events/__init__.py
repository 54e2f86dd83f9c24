"""Everything that can happen. A ledger holds nothing else, in the order in which it happened.

An event is declared once, in its module: kind, fields, what it changes (`apply`) and what people read of it (`said`).
"""

# ruff: noqa: F403 - what a module declares is an event, and needs no other list
from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter

from orchestrator.domain.events.attempt import *
from orchestrator.domain.events.base import Event as Event
from orchestrator.domain.events.campaign import *
from orchestrator.domain.events.model import *
from orchestrator.domain.events.money import *
from orchestrator.domain.events.playbook import *
from orchestrator.domain.events.pool import *
from orchestrator.domain.events.profile import *
from orchestrator.domain.events.proof import *
from orchestrator.domain.events.proposal import *
from orchestrator.domain.events.run import *
from orchestrator.domain.events.trial import *

_KINDS: Any = Union[tuple(Event.__subclasses__())]  # noqa: UP007 - there is no other way to write one of a list
_UNION: TypeAdapter[Event] = TypeAdapter(Annotated[_KINDS, Field(discriminator="kind")])


def read_event(body: str) -> Event:
    """An event from the ledger. Raises pydantic's ValidationError for a kind or a field that this version lacks."""
    return _UNION.validate_json(body)
