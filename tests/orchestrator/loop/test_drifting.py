"""A machine whose speed changes while a campaign runs decides nothing: champion and challenger meet it in turn."""

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.verdict import Aim
from orchestrator.judge.relay import Conversation
from tests.orchestrator.loop.noise import drifting, noisy
from tests.orchestrator.loop.relay_script import RelayScript, write_relay_task
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, scripted, write_task

# By how many of its deviations the so-manieth run is off. Where the champion is measured once, beforehand, the first
# and the last of these keep no-ops.
DRIFTS: dict[str, Callable[[int], float]] = {
    "linear": lambda at: 0.2 * at,
    "season": lambda at: 4.0 * math.sin(at / 12),
    "steps": lambda at: 6.0 * (at // 25 % 2),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", noisy(12, 4))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("drift", DRIFTS)
async def test_t85_no_ops_on_a_drifting_machine(folder: Path, drift: str, width: int) -> None:
    """A campaign of no-ops keeps none of them, though many get past the screening.

    An error of 5 % a campaign, and one seed of each kind: that one of six fails is excluded by the seed, not by chance.
    """
    script = Script()
    points: list[Point] = [{"value": 0, "a": number} for number in range(1, 21)]
    async with scripted(folder, script, *points, width=width, attempts=20) as session:
        script.noise = drifting(session.bench.state, DRIFTS[drift], 1.0)
        finished = await session.run()
        assert len(session.of(e.CertificationOpened)) >= 3
        assert finished.champion == session.bench.state.nodes["1"]


@pytest.mark.parametrize("drift", DRIFTS)
async def test_t85_control_better_on_a_drifting_machine(folder: Path, drift: str) -> None:
    """One that is really better is kept there, also where the machine got slower since the champion was measured."""
    script = Script()
    points: list[Point] = [{"value": 0, "a": 1}, {"value": 0, "a": 2}, {"value": 12}]
    async with scripted(folder, script, *points) as session:
        script.noise = drifting(session.bench.state, lambda at: -DRIFTS[drift](at), 1.0)
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.3"]


# A task that says of no rule, and that one run is enough.
TIMED = '[[metrics]]\nname = "seconds"\ngoal = "lower"\ntiming = true\n[certify]\nreplay = false\n'


class Times(dict[int, float]):
    """Seconds of one run after the other, whoever is run; those that are told here take their share of them."""

    def __init__(self, drift: Callable[[int], float], shares: dict[int, float]) -> None:
        super().__init__(shares)
        self._drift, self._rng, self._runs = drift, random.Random(5), 0

    def get(self, value: int, default: Any = None) -> Any:
        self._runs += 1
        return super().get(value, 1.0) * math.exp(0.05 * (self._rng.gauss(0.0, 1.0) - self._drift(self._runs)))


@pytest.mark.parametrize("share", [1.0, 0.5], ids=["copies", "one that is faster"])
async def test_t100_a_time_is_decided_by_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """T100: of copies of the same code none is kept, though some of them seem faster when they are run first; the
    control, one that really is faster, is kept. Nobody named a rule.
    """

    async def measured(*_: object) -> tuple[float, float]:
        return 0.0001, 0.0001

    monkeypatch.setattr(Conversation, "_empty_calls", measured)
    points: list[Point] = [{"value": number} for number in range(1, 6)]
    script = RelayScript(times=Times(DRIFTS["linear"], {5: share}))
    async with scripted(write_relay_task(tmp_path / "task", TIMED), script, *points, attempts=5) as session:
        finished = await session.run()
        assert finished.champion
        assert finished.champion.id == ("1" if share == 1.0 else "1.5")
        assert session.of(e.CertificationOpened)


async def test_screened_by_fresh_measurements(folder: Path) -> None:
    """A machine that got slower for good: who is better now is tested, though the champion was faster long ago."""
    script = Script()
    points: list[Point] = [{"value": -20, "a": number} for number in range(20)]
    async with scripted(folder, script, *points, {"value": 10}, attempts=21) as session:
        slower: list[e.Event] = []
        session.when(e.AttemptEnded, lambda event: slower.append(event) if event.node == "1.2" else None)
        script.noise = drifting(session.bench.state, lambda _: -30.0 if slower else 0.0, 0.5)
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.21"]
        # One of the champion's runs for every four attempts at most, and as many at first as screening needs.
        untested = [node for node in session.bench.state.nodes.values() if node.certification is None]
        runs = sum(bool(trial.subject) for node in untested for trial in session.bench.state.trials_of(node.id))
        assert runs <= 4 + 20 / 4


@pytest.mark.parametrize(
    ("value", "kept", "why"),
    [(9, True, "proven better than"), (-9, False, "proven worse than"), (0, True, "proven neither better nor worse")],
)
async def test_not_worse_is_enough(folder: Path, value: int, kept: bool, why: str) -> None:
    """Where a candidate need not be better, it is tested in both directions, unscreened, and fails if proven worse."""
    script = Script()
    async with scripted(folder, script, {"value": value, "a": 1}, aim=Aim.NOT_WORSE) as session:
        script.noise = drifting(session.bench.state, DRIFTS["season"], 0.5)
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert node.kept is kept
        assert node.why.startswith(why)
        (opened,) = session.of(e.CertificationOpened)
        assert opened.both
