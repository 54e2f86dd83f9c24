"""What several of the handlers need."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from orchestrator.domain.state import State

Handlers = dict[type[BaseModel], Callable[[State, Any, str], None]]


def fields_of(event: BaseModel, *without: str) -> dict[str, Any]:
    return {name: getattr(event, name) for name in type(event).model_fields if name not in without}
