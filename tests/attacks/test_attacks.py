"""Every row of the threat table that concerns the chamber, on every local runtime."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.attacks import artifacts, gpu, host_escape
from sandbox.attacks.attack import Arena, Attack, Result, registered
from sandbox.attacks.suite import GROUPS, perform_bounded
from sandbox.backend import Backend
from sandbox.errors import NoSuchGpu
from sandbox.job import Job

RUNTIMES = ["runc", "runsc"]
WANTED = """
    C01 C02
    T01 T02 T03 T04 T05 T06 T07 T08 T09 T10 T11 T12
    T13 T14 T15 T16 T17 T18 T19 T20 T21 T22 T23
    T24 T31 T33 T34 T36 T78 T81 T82 T83
    T97 T98
    T47 T48 T49 T50 T51 T52 T53 T54 T55 T56 T57 T58
    T59 T60 T61 T62 T63
    T46 T96
"""
HAS_GPU = Path("/dev/nvidiactl").exists()
# One of each wall, on gVisor too; its other rows where Docker's part or what every backend promises was touched.
BRIEFLY = {"C01", "C02", "T02", "T05", "T09", "T11", "T12", "T97", "T98"}
AT_ONCE = 4
QUIET = (artifacts, host_escape)


def here() -> list[Attack]:
    """Those that this machine can show: rows of `sandbox.attacks.gpu` need one."""
    return [item for item in registered() if HAS_GPU or item.attempt.__module__ != gpu.__name__]


def rows() -> Iterator[Any]:
    """Each on each runtime: `runc-T03`, and `runc-T03-2` for the second of an id.

    What is stopped by the reader of its bytes runs on the first runtime, and one of each id on the others: there it can
    differ only in how the bytes got out. `make thorough` runs all of them.
    """
    for runtime in RUNTIMES:
        seen: Counter[str] = Counter()
        read: Counter[str] = Counter()
        for item in here():
            seen[item.id] += 1
            read[item.id] += item.is_bytes
            number = f"-{seen[item.id]}" if seen[item.id] > 1 else ""
            marks = []
            if runtime != RUNTIMES[0]:
                marks += [pytest.mark.slow] * (item.is_bytes and read[item.id] > 1)
                marks += [pytest.mark.touching("docker")] * (item.id not in BRIEFLY)
            yield pytest.param(runtime, item, marks=marks, id=f"{runtime}-{item.id}{number}")


def is_quiet(item: Attack) -> bool:
    """It looks at nothing but its own chamber, and waits most of its time."""
    return item.is_bytes or item.attempt.__module__.startswith(tuple(it.__name__ for it in QUIET))


RESULTS: dict[tuple[str, str, str], Result] = {}


async def performed(arena: Arena, item: Attack, planned: list[Attack]) -> Result:
    """Quiet rows are performed with those that come next, a few at once."""

    def key(row: Attack) -> tuple[str, str, str]:
        return arena.runtime, row.id, row.title

    if key(item) not in RESULTS:
        batch = [it for it in planned[planned.index(item) :] if is_quiet(it)][:AT_ONCE] if is_quiet(item) else [item]
        for row, result in zip(batch, await asyncio.gather(*(perform_bounded(it, arena) for it in batch)), strict=True):
            RESULTS[key(row)] = result
    return RESULTS[key(item)]


@pytest.mark.attack
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("arena", "item"), list(rows()), indirect=["arena"], scope="session")
async def test_attack(request: pytest.FixtureRequest, arena: Arena, item: Attack) -> None:
    """The attack ran, and had no effect."""
    chosen = [getattr(it, "callspec", None) for it in request.session.items if it.path == request.path]
    planned = [it.params["item"] for it in chosen if it and it.params["arena"] == arena.runtime]
    result = await performed(arena, item, planned)
    assert result.finding.ran, f"{item.id} {item.title}: it proved nothing: {result.finding.evidence}"
    assert result.finding.blocked, f"{item.id} {item.title}: it succeeded: {result.finding.evidence}"


def test_rows_are_those_of_the_table() -> None:
    """No row of the chamber's groups is without an attack, no attack is of no row, and no two have one title: the
    table and the mutation check need it.
    """
    assert GROUPS
    assert {item.id for item in registered()} == set(WANTED.split())
    assert max(Counter((item.id, item.title) for item in registered()).values()) == 1


async def test_no_gpu_proves_nothing() -> None:
    """Where there is none, a row says so: it is neither blocked nor a breach."""

    class Without:
        async def open(self, job: Job) -> None:
            raise NoSuchGpu("none")

    arena = Arena(cast(Backend, Without()), "runc")
    for item in registered():
        if item.attempt.__module__ == gpu.__name__:
            result = await perform_bounded(item, arena)
            assert not result.here
            assert not result.good
