"""A row that goes wrong is a row that is not good."""

import asyncio
from typing import cast

import pytest

from sandbox.attacks.attack import Arena, Attack, Finding
from sandbox.attacks.hosts import LocalTarget
from sandbox.attacks.suite import perform_bounded, run_suite
from sandbox.config import DockerConfig
from sandbox.errors import Refused, Unavailable


class _NoArena:
    runtime = "runc"


ARENA = cast(Arena, _NoArena())


async def test_an_attack_that_raises() -> None:
    """Its error is the evidence."""

    async def raising(arena: Arena) -> Finding:
        raise Unavailable("the engine is gone")

    result = await perform_bounded(Attack("T01", "raises", raising), ARENA)
    assert not result.good
    assert result.finding.evidence == "Unavailable: the engine is gone"


async def test_an_attack_that_hangs() -> None:
    """The suite's own limit ends it, and it has proved nothing."""

    async def hanging(arena: Arena) -> Finding:
        await asyncio.Event().wait()
        raise AssertionError

    result = await perform_bounded(Attack("T01", "hangs", hanging), ARENA, limit=0.01)
    assert not result.finding.ran
    assert "over the suite's limit" in result.finding.evidence


async def test_a_time_out_inside_is_not_the_suites() -> None:
    """An attack's own TimeoutError is told as what it is."""

    async def late(arena: Arena) -> Finding:
        raise TimeoutError("inside")

    result = await perform_bounded(Attack("T01", "late", late), ARENA)
    assert result.finding.evidence == "TimeoutError: inside"


async def test_unknown_id() -> None:
    """An id that does not exist is refused before an engine is asked for."""
    with pytest.raises(Refused, match="no attack T99"):
        await run_suite(LocalTarget(DockerConfig()), {"T99"})
