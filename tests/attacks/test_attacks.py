"""Every row of the threat table that concerns the chamber, on every local runtime."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.attacks import gpu
from sandbox.attacks.attack import Arena, Attack, registered
from sandbox.attacks.suite import GROUPS, perform_bounded
from sandbox.backend import Backend
from sandbox.errors import NoSuchGpu
from sandbox.job import Job

RUNTIMES = ["runc", "runsc"]
WANTED = [
    "C01 C02",
    "T01 T02 T03 T04 T05 T06 T07 T08 T09 T10 T11 T12",
    "T13 T14 T15 T16 T17 T18 T19 T20 T21 T22 T23",
    "T24 T31 T33 T34 T36 T78 T81 T82 T83",
    "T97 T98",
    "T47 T48 T49 T50 T51 T52 T53 T54 T55 T56 T57 T58",
    "T59 T60 T61 T62 T63",
    "T46 T96",
]
HAS_GPU = Path("/dev/nvidiactl").exists()


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
            again = runtime != RUNTIMES[0] and item.is_bytes and read[item.id] > 1
            number = f"-{seen[item.id]}" if seen[item.id] > 1 else ""
            marks = [pytest.mark.slow] if again else []
            yield pytest.param(runtime, item, marks=marks, id=f"{runtime}-{item.id}{number}")


@pytest.mark.attack
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("arena", "item"), list(rows()), indirect=["arena"], scope="session")
async def test_attack(arena: Arena, item: Attack) -> None:
    """The attack ran, and had no effect."""
    result = await perform_bounded(item, arena)
    assert result.finding.ran, f"{item.id} {item.title}: it proved nothing: {result.finding.evidence}"
    assert result.finding.blocked, f"{item.id} {item.title}: it succeeded: {result.finding.evidence}"


@pytest.mark.parametrize("ids", WANTED)
def test_every_row_has_an_attack(ids: str) -> None:
    """No row of the chamber's groups is without an attack."""
    assert set(ids.split()) <= {item.id for item in registered()}


def test_no_row_is_unknown() -> None:
    """Every attack carries an id of the table."""
    assert GROUPS
    assert {item.id for item in registered()} <= set(" ".join(WANTED).split())


def test_rows_are_told_apart() -> None:
    """Two rows of one id have different titles: the table and the mutation check need it."""
    twice = [key for key, count in Counter((item.id, item.title) for item in registered()).items() if count > 1]
    assert not twice


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
