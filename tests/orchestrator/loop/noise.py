"""Scores that differ from run to run, and yet the same for the same measurement, however often a campaign is killed."""

import random
from collections.abc import Callable, Mapping, Sequence

from orchestrator.domain.state import State

NOISY = '[certify]\nrule = "noisy"\nrepeats = {repeats}\nchampion = {champion}\n'


def noisy(repeats: int = 12, champion: int = 8) -> str:
    """The section of a task with few repeats."""
    return NOISY.format(repeats=repeats, champion=champion)


def gaussian(state: State, sigma: float, seed: int = 0) -> Callable[[str], float]:
    """What a node's so-manieth verdict is off by depends on nothing but node and number."""

    def noise(node: str) -> float:
        return random.Random(f"{seed}/{node}/{judged(state, node)}").gauss(0.0, sigma)

    return noise


def scripted_scores(state: State, told: Mapping[str, Sequence[float]]) -> Callable[[str], float]:
    """What is added to the verdicts of a node, one after the other; the last one stays."""

    def noise(node: str) -> float:
        of_node = told.get(node, (0.0,))
        return of_node[min(judged(state, node), len(of_node) - 1)]

    return noise


def judged(state: State, node: str) -> int:
    """How many verdicts a node has."""
    return sum(trial.judged for trial in state.trials_of(node))
