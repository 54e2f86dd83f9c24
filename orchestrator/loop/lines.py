"""What the loop needs of whoever opens lines to models."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from orchestrator.domain.model_use import ModelRole
from orchestrator.llm.line import Line


class Models(Protocol):
    def line(self, node: str, role: ModelRole) -> AbstractAsyncContextManager[Line]:
        """A line for one piece of work of a role on a node; what it may cost is set aside within the node's hold."""
