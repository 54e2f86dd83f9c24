"""What a backend must lend to the suite to be examined."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from sandbox.backend import Backend


class Orphan(Protocol):
    """A running chamber whose owner was killed without a chance to clean up."""

    async def alive(self) -> bool:
        """Whether anything of it still runs."""

    async def exists(self) -> bool:
        """Whether the provider still keeps anything of it."""


class Subject(Protocol):
    """A provider under examination. `lacks` names the rows that it cannot have, each with its reason."""

    name: str
    lacks: Mapping[str, str]

    async def connect(self) -> Backend:
        """A backend with an owner of its own; the caller closes it."""

    async def connect_cuttable(self) -> tuple[Backend, Callable[[], Awaitable[None]]]:
        """A backend, and a way to cut its provider off."""

    async def orphan(self) -> Orphan:
        """A chamber whose owner died by SIGKILL, with nobody left who would clean up for it."""

    async def close(self) -> None:
        """Remove what the rows left behind on purpose."""
