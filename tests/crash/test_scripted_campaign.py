"""A campaign that is killed again and again comes to the same end as one that nobody disturbed, and pays for it once.

Where it is killed is drawn: at points before and after events and effects, and at moments that know nothing of them.
"""

import json
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.domain.state import State
from tests.crash.fate import EFFECTS, after_effects, last_of_each_kind
from tests.crash.nursery import child
from tests.crash.scripted_campaign import check_draws, checked, live, make, results, tree, verdicts

pytestmark = pytest.mark.crash

TARGET = f"{live.__module__}:{live.__name__}"
KILLED = (-9, -14)
AT_ONCE = 2
LONGEST_S = 0.6
FEWEST = 2  # kills in a life
OF_LARGE_OUTPUTS = {"Artifacts.let_go", "Artifacts.is_gone"}  # of those that are killed now and then
RECOVERY = pytest.mark.touching("recovery")
ALIKE = ("deep", "moving", "held", "noisy")  # their kinds of points are those of short campaigns
SHORT = ("short", "tested", "asked", "islands", "minimised", "combined")


def seen(kind: str, state: State) -> dict[str, object]:
    return {"wide": verdicts, "learning": results}.get(kind, tree)(state)


def endure(folder: Path, kind: str, points: int, chance: random.Random) -> int:
    """Kill and resume until it is finished; how often it was killed, which is a few times at least."""
    kills = 0
    while True:
        fate: dict[str, float | None] = {"at": None, "within": None}
        if kills < 12:
            fate["at"] = chance.randint(1, chance.choice((10, points // 8, points)))
        if chance.random() < 0.25:
            fate["within"] = chance.uniform(0.0, LONGEST_S)
        code = child(TARGET, folder=str(folder), kind=kind, surely=kills < FEWEST, **fate)
        if code == 0:
            return kills
        assert code in KILLED, f"the campaign ended with {code}"
        kills += 1


def calm(base: Path, kind: str) -> tuple[dict[str, object], list[str]]:
    """What a campaign that nobody disturbs comes to, and the points on its way."""
    folder, told = make(base / "calm", kind), base / "points.json"
    assert child(TARGET, folder=str(folder), kind=kind, count=str(told)) == 0
    return seen(kind, checked(folder, kind)), json.loads(told.read_text())


def in_turn(numbers: Sequence[int], some: Callable[[Sequence[int]], int]) -> int:
    """Share the numbers out; the sum of what came of it."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(some, (numbers[first::AT_ONCE] for first in range(AT_ONCE))))


def rounds(base: Path, kind: str, count: int) -> int:
    """So many campaigns to their end, each compared with a calm one; how many kills that took."""
    expected, points = calm(base, kind)

    def some(share: Sequence[int]) -> int:
        kills = 0
        for number in share:
            folder = make(base / str(number), kind)
            kills += endure(folder, kind, len(points), random.Random(f"{kind}/{number}"))
            assert seen(kind, checked(folder, kind)) == expected, f"round {number}"
        return kills

    return in_turn(range(count), some)


def killed_at(base: Path, kind: str, chosen: Callable[[Sequence[str]], list[int]]) -> int:
    """A campaign for each of the points, killed there once and resumed, compared with a calm one; how many."""
    expected, points = calm(base, kind)
    numbers = chosen(points)

    def some(share: Sequence[int]) -> int:
        for number in share:
            folder = make(base / str(number), kind)
            where = f"point {number}: {points[number - 1]}"
            assert child(TARGET, folder=str(folder), kind=kind, at=number, surely=True) == -9, where
            assert child(TARGET, folder=str(folder), kind=kind) == 0, where
            assert seen(kind, checked(folder, kind)) == expected, where
        return len(share)

    assert in_turn(numbers, some) == len(numbers)
    return len(numbers)


def test_killed_at_each_kind_of_point(tmp_path: Path) -> None:
    """Short campaigns, killed once after an effect of each kind: one with tuning, a guard, replays and a change of the
    fleet, then one whose scores are noisy, one in which a person is asked before anything is kept, one with two
    islands, one that is minimised and one with a combination stage, where these have points of other kinds.
    """
    met: set[str] = set()

    def new(points: Sequence[str]) -> list[int]:
        found = last_of_each_kind(points, (it for it in after_effects(points) if points[it - 1] not in met))
        met.update(points)
        return found

    numbers = {kind: killed_at(tmp_path / kind, kind, new) for kind in SHORT}
    assert numbers["short"] > 20
    assert min(numbers.values()) >= 1
    for kind in ("migrated", "minimised", "member intended", "member ended", "pool frozen"):
        assert any(kind in point for point in met), f"nobody was killed after {kind}"
    never = {it for it in EFFECTS if not any(point.startswith(f"after {it}") for point in met)}
    assert never == OF_LARGE_OUTPUTS


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", SHORT)
def test_killed_at_every_point(tmp_path: Path, kind: str) -> None:
    """The same, after each of its effects."""
    assert killed_at(tmp_path, kind, after_effects) > 60


@pytest.mark.parametrize("kind", ["wide", "full", *(pytest.param(it, marks=RECOVERY) for it in ALIKE)])
def test_killed_now_and_then(tmp_path: Path, kind: str) -> None:
    """Same verdicts, every attempt charged once, nothing reserved or running in the end, chain and rows whole; and
    where outputs are let go, all that the ledger says is there, is there, and nothing else.
    """
    assert rounds(tmp_path, kind, 1) >= 2


def test_a_search_that_learns_is_killed_now_and_then(tmp_path: Path) -> None:
    """The same with three in flight, rules that are drawn and a walk: what a resumed campaign draws is what the ledger
    says that it must.
    """
    assert rounds(tmp_path, "learning", 1) >= 2
    assert check_draws(tmp_path / "calm") > 3
    assert check_draws(tmp_path / "0") > 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["wide", "deep", "moving", "held", "noisy", "full", "learning"])
def test_killed_again_and_again(tmp_path: Path, kind: str) -> None:
    """The same, more than two hundred times in all."""
    assert rounds(tmp_path, kind, 70) >= 70
