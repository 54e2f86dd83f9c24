"""Whose a sandbox is, in its tags: they travel with create, so that even one whose reply was lost can be found."""

import asyncio
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sandbox.errors import SandboxError
from sandbox.logger import logger
from sandbox.tenancy import Mark, Tenancy

if TYPE_CHECKING:
    from sandbox.backends.modal.engine import ModalEngine

OURS = {"blastdoor": "chamber"}
# Clocks of two machines differ; those who reap elsewhere wait this much longer.
CLOCKS_S = 600.0
OWNER, PLACE, ENDS, NAME = "blastdoor-owner", "blastdoor-place", "blastdoor-ends", "blastdoor-name"


def name_of(owner: str) -> str:
    """A new one. It tells when it was made, for those who ask about it later."""
    return f"blastdoor-{owner}-{int(time.time()):08x}{uuid.uuid4().hex[:6]}"


def named_at(name: str) -> float:
    try:
        return float(int(name.rpartition("-")[2][:8], 16))
    except ValueError:
        return 0.0


def tags_of(mark: Mark, name: str) -> dict[str, str]:
    return {**OURS, OWNER: mark.owner, PLACE: mark.place, ENDS: str(mark.ends), NAME: name}


def mark_of(tags: Mapping[str, str]) -> Mark | None:
    """None for what we did not make: it is nobody's to end."""
    owner, place, ends = tags.get(OWNER, ""), tags.get(PLACE, ""), tags.get(ENDS, "")
    if OURS.items() <= tags.items() and owner and place and ends.isascii() and ends.isdigit():
        return Mark(owner, place, int(ends))
    return None


async def reap(engine: "ModalEngine", tenancy: Tenancy) -> tuple[list[str], list[str]]:
    """End what nobody can still be working with, never a living owner's; what was ended, and what could not be."""
    marked = []
    for sandbox, tags in await engine.running(OURS):
        if mark := mark_of(tags):
            marked.append(((sandbox, tags.get(NAME, sandbox.sandbox_id)), mark))
    over, unknown = tenancy.sorted_out(marked)
    results = await asyncio.gather(*(sandbox.end() for sandbox, _ in over), return_exceptions=True)
    ended, left = [], [name for _, name in unknown]
    for (_, name), result in zip(over, results, strict=True):
        if isinstance(result, SandboxError):
            logger(chamber=name).warning("chamber.not_reaped", reason=str(result))
            left.append(name)
        elif isinstance(result, BaseException):
            raise result
        else:
            ended.append(name)
    return ended, left


async def end_owned(engine: "ModalEngine", owner: str) -> int:
    """End every sandbox of an owner who is gone; how many there were."""
    found = await engine.running({**OURS, OWNER: owner})
    await asyncio.gather(*(sandbox.end() for sandbox, _ in found))
    return len(found)
