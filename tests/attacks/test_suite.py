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


async def gone(_: Arena) -> Finding:
    raise Unavailable("the engine is gone")


async def late(_: Arena) -> Finding:
    raise TimeoutError("inside")


async def hanging(_: Arena) -> Finding:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("attempt", "limit", "evidence"),
    [
        (gone, 60, "Unavailable: the engine is gone"),
        (late, 60, "TimeoutError: inside"),
        (hanging, 0.01, "over the suite's limit of 0.01 s"),
    ],
)
async def test_an_attack_that_raises_or_hangs(attempt: object, limit: float, evidence: str) -> None:
    """It has proved nothing. Its error is the evidence, an own time-out too; the suite's own limit is told as that."""
    result = await perform_bounded(Attack("T01", "wrong", attempt), ARENA, limit=limit)  # type: ignore[arg-type]
    assert (result.good, result.finding.ran, result.finding.evidence) == (False, False, evidence)


async def test_unknown_id() -> None:
    """An id that does not exist is refused before an engine is asked for."""
    with pytest.raises(Refused, match="no attack T999"):
        await run_suite(LocalTarget(DockerConfig()), {"T999"})
