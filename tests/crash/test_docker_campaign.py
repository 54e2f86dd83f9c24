"""Killed after an effect of each kind, a campaign of real chambers comes to the same end and leaves nothing behind.

The points are listed by a calm run, then tried: kill there, resume, compare. At length, every one, those before too.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.budget import Account, Accounts
from orchestrator.domain.records import Phase
from orchestrator.domain.state import State
from orchestrator.settings import Settings
from orchestrator.wiring.backends.docker import docker_config
from sandbox.answers import text
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL
from tests.crash.docker_campaign import live, make
from tests.crash.fate import after_effects, last_of_each_kind
from tests.crash.nursery import child
from tests.crash.scripted_campaign import tree
from tests.orchestrator.loop.books import check_books, ledger_of

pytestmark = [pytest.mark.docker, pytest.mark.crash]

TARGET = f"{live.__module__}:{live.__name__}"
AT_ONCE = 3
CHAMBER = ("judging intended", "keep_files", "Door", "Session")  # in the names of points
GONE_S = 120.0


def checked(folder: Path) -> dict[str, object]:
    """The whole tree of a finished campaign, its books in order."""
    with ledger_of(folder) as ledger:
        check_books(ledger)
        rows = ledger.rows()
    state, accounts = State.from_rows(rows), Accounts.from_ledger(rows)
    assert not accounts.holds
    assert accounts.used(Account.ATTEMPTS) == 2
    assert [node.phase for node in state.nodes.values()] == [Phase.ENDED] * 3
    return tree(state)


async def left_of(owners: set[str]) -> list[str]:
    """Containers and leases of these owners; whoever was killed has a moment for its warden to come."""
    engine = await asyncio.to_thread(Engine, docker_config(Settings()).host)
    try:
        until = time.monotonic() + GONE_S
        while True:
            found = [*await engine.containers(OWNER_LABEL), *await engine.volumes(OWNER_LABEL)]
            left = [
                str(item.get("Names") or item.get("Name"))
                for item in found
                if text(item, "Labels", OWNER_LABEL) in owners
            ]
            if not left or time.monotonic() > until:
                return left
            await asyncio.sleep(0.1)
    finally:
        engine.close()


def one_of_each_kind(points: Sequence[str]) -> list[int]:
    """Where a chamber may be about: the other kinds are tried without an engine (`test_scripted_campaign.py`)."""
    about = [number for number in after_effects(points) if any(word in points[number - 1] for word in CHAMBER)]
    return last_of_each_kind(points, about)


def every_one(points: Sequence[str]) -> list[int]:
    return list(range(1, len(points) + 1))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("chosen", [one_of_each_kind, pytest.param(every_one, marks=pytest.mark.slow)])
def test_every_point(tmp_path: Path, chosen: Callable[[Sequence[str]], list[int]]) -> None:
    """Same nodes, points, scores, decisions and champion; charged once; no hold, no container and no lease is left."""
    told = tmp_path / "points.json"
    calm = make(tmp_path / "calm")
    assert child(TARGET, folder=str(calm), owners=str(tmp_path / "owners"), count=str(told)) == 0
    points: list[str] = json.loads(told.read_text())
    numbers = chosen(points)
    expected = checked(calm)
    assert len({points[number - 1] for number in numbers}) > 5

    def some(share: Sequence[int]) -> None:
        for number in share:
            folder = make(tmp_path / str(number))
            owners = str(folder / "owners")
            where = f"point {number}: {points[number - 1]}"
            assert child(TARGET, folder=str(folder), owners=owners, at=number) == -9, where
            assert child(TARGET, folder=str(folder), owners=owners) == 0, where
            assert checked(folder) == expected, where

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(some, (numbers[first::AT_ONCE] for first in range(AT_ONCE))))
    owners = {line for path in tmp_path.glob("*/owners") for line in path.read_text().split()}
    assert len(owners) == 2 * len(numbers)
    assert asyncio.run(left_of(owners)) == []
