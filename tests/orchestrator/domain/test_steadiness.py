"""That a machine drifted is said when it did, and hardly ever when it did not."""

import math
import random
from collections.abc import Callable

import pytest

from orchestrator.domain.steadiness import ERROR, p_of_steady
from tests.chance import at_most

Draw = Callable[[random.Random], float]
STEADY: dict[str, Draw] = {
    "gaussian": lambda chance: chance.gauss(0, 1),
    "skewed": lambda chance: chance.lognormvariate(0, 2),
    "ties": lambda chance: float(chance.randint(0, 2)),
}
DRIFTS: dict[str, Callable[[int], float]] = {
    "linear": lambda at: at / 15,
    "step": lambda at: 2.0 * (at >= 30),
    "season": lambda at: 1.5 * math.sin(at / 5),
}


@pytest.mark.parametrize(("noise", "sizes"), [("gaussian", (5, 5, 5, 5)), ("skewed", (40, 10)), ("ties", (20,))])
def test_steady(noise: str, sizes: tuple[int, ...]) -> None:
    """Of steady machines about one in a hundred seems to drift, with few scores of each champion, and ties, too."""
    false = 0
    for seed in range(300):
        chance = random.Random(f"{noise}/{sizes}/{seed}")
        series = [[(STEADY[noise](chance),) for _ in range(size)] for size in sizes]
        false += p_of_steady(series) < ERROR
    assert false <= at_most(300, ERROR)


@pytest.mark.parametrize("drift", DRIFTS)
def test_drifting(drift: str) -> None:
    """Sixty scores of a machine that drifts by about two deviations show it, whatever way it drifts, nearly always."""
    found = 0
    for seed in range(50):
        chance = random.Random(f"{drift}/{seed}")
        found += p_of_steady([[(chance.gauss(0, 1) + DRIFTS[drift](at),) for at in range(60)]]) < ERROR
    assert found > 35


def test_all_alike() -> None:
    """Scores that are all the same say nothing of the machine."""
    assert p_of_steady([[(1.0,)] * 30]) == 1.0
    assert p_of_steady([]) == 1.0
