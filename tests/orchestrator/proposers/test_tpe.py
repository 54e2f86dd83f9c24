"""TPE behind our interface is Optuna's, as long as all of the past is in view."""

import asyncio
import random

import optuna
import pytest

from orchestrator.domain.proposal import Value
from orchestrator.proposers.samplers import make_sampler
from orchestrator.proposers.samplers.sampler import number_of
from orchestrator.proposers.samplers.tpe import LIMIT
from orchestrator.proposers.space import random_point
from orchestrator.task import Float, Int
from tests.orchestrator.proposers.pasts import ONE, Shown, Space, asked, point_of, tried

SPACE: Space = {"n": Int(low=10, high=50, step=5), "x": Float(low=-5, high=10), "y": Float(low=0.01, high=10, log=True)}


def merit(point: dict[str, Value]) -> float:
    return -((float(point["x"]) - 2) ** 2) - (float(point["y"]) - 3) ** 2 - (int(point["n"]) - 30) ** 2 / 100


def by_optuna(past: Shown, seed: int) -> dict[str, Value]:
    """The next point of a study that was told the same, by a sampler with Optuna's defaults."""
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    ways = {
        "n": optuna.distributions.IntDistribution(10, 50, step=5),
        "x": optuna.distributions.FloatDistribution(-5, 10),
        "y": optuna.distributions.FloatDistribution(0.01, 10, log=True),
    }
    for it in past.ended:
        assert it.params
        assert it.merits
        study.add_trial(optuna.create_trial(params=dict(it.params), distributions=ways, value=it.merits[0]))
    trial = study.ask()
    return {
        "n": trial.suggest_int("n", 10, 50, step=5),
        "x": trial.suggest_float("x", -5, 10),
        "y": trial.suggest_float("y", 0.01, 10, log=True),
    }


@pytest.mark.parametrize("length", [10, 37, LIMIT])
def test_it_proposes_what_optuna_proposes(length: int) -> None:
    """With the same seed, point for point: the regret can only differ by chance."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = random.Random(length)
    points = [random_point(SPACE, rng) for _ in range(length)]
    past = Shown([tried(number, point, (merit(point),)) for number, point in enumerate(points, 1)])
    for number in range(length + 1, length + 4):
        brief = asked(number, past)
        (ours,) = asyncio.run(make_sampler("tpe", SPACE, ONE).propose(brief))
        theirs = by_optuna(past, number_of(f"{brief.seed}/{number}/0/0"))
        assert point_of(ours) == pytest.approx(theirs, rel=1e-9)
        assert ours.operator == "tpe"
