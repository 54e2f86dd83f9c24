"""A campaign on rented chambers is killed at each step of create, run and terminate, and at each event around them.

After a resume nothing is running, nothing is charged twice, and the books cover what the provider charged: T72, T73.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.bills import checked, lost
from tests.crash.fate import last_of_each_kind
from tests.crash.nursery import child
from tests.crash.rented_campaign import ATTEMPTS, live, make, provider_of, reap

pytestmark = [pytest.mark.crash, pytest.mark.touching("skypilot", "recovery")]

TARGET = f"{live.__module__}:{live.__name__}"
REAPER = f"{reap.__module__}:{reap.__name__}"
AT_ONCE = 2


def calm(base: Path) -> tuple[dict[str, object], list[str]]:
    folder, told = make(base / "calm"), base / "points.json"
    assert child(TARGET, folder=str(folder), count=str(told)) == 0
    return checked(folder, provider_of(folder).usd(), ATTEMPTS), json.loads(told.read_text())


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_killed_at_steps(tmp_path: Path, every: bool) -> None:
    """Same verdicts, every attempt charged once, nothing rented in the end; what was lost is on record.

    All steps of the provider, and an event of each kind; at length, every event.
    """
    expected, points = calm(tmp_path)
    kinds = ("provider", "after Ledger.append", "before Session")
    deaths = [number for number, point in enumerate(points, start=1) if point.startswith(kinds)]
    steps = [number for number in deaths if points[number - 1].startswith("provider")]
    assert len(steps) == 20
    if not every:
        deaths = sorted({*steps, *last_of_each_kind(points, deaths)})

    def some(share: list[int]) -> None:
        for number in share:
            folder, where = make(tmp_path / str(number)), f"point {number}: {points[number - 1]}"
            assert child(TARGET, folder=str(folder), at=number) == -9, where
            left = provider_of(folder).running()
            assert child(TARGET, folder=str(folder)) == 0, where
            assert not provider_of(folder).running(), where
            assert checked(folder, provider_of(folder).usd(), ATTEMPTS) == expected, where
            assert not left or lost(folder) > 0, where

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(some, (deaths[first::AT_ONCE] for first in range(AT_ONCE))))


def test_reap_alone(tmp_path: Path) -> None:
    """Without a resume, `reap` ends what a dead owner left; a resume long after books no second that nobody charged."""
    _, points = calm(tmp_path)
    folder, ready = make(tmp_path / "task"), "provider ready"
    assert child(TARGET, folder=str(folder), at=points.count(ready), named=ready) == -9
    assert provider_of(folder).running()
    assert child(REAPER, folder=str(folder)) == 0
    assert not provider_of(folder).running()
    assert child(TARGET, folder=str(folder)) == 0
    checked(folder, provider_of(folder).usd(), ATTEMPTS)
