"""Scores that differ from run to run, and yet the same for the same measurement, however often a campaign is killed."""

import random
from collections.abc import Callable, Mapping, Sequence

from orchestrator.domain.state import State

NOISY = '[certify]\nrule = "noisy"\nrepeats = {repeats}\nchampion = {champion}\n'


def noisy(repeats: int = 12, champion: int = 4) -> str:
    """The section of a task with few repeats."""
    return NOISY.format(repeats=repeats, champion=champion)


def gaussian(state: State, sigma: float, seed: int = 0) -> Callable[[str], float]:
    """What a node's so-manieth verdict is off by depends on nothing but node and number."""

    def noise(node: str) -> float:
        return random.Random(f"{seed}/{node}/{judged(state, node)}").gauss(0.0, sigma)

    return noise


def scripted_scores(state: State, told: Mapping[str, Sequence[float]]) -> Callable[[str], float]:
    """What is added to the verdicts of a node, one after the other; the last one stays. Not to those of references."""

    def noise(node: str) -> float:
        of_node = told.get(node, (0.0,))
        if state.trials[f"{node}-{state.nodes[node].trials}"].subject:
            return 0.0
        own = sum(trial.judged and not trial.subject for trial in state.trials_of(node))
        return of_node[min(own, len(of_node) - 1)]

    return noise


def drifting(state: State, drift: Callable[[int], float], sigma: float, seed: int = 0) -> Callable[[str], float]:
    """A machine whose so-manieth run is off by `drift`, whoever is run."""
    noise, measured = gaussian(state, sigma, seed), 0

    def at_node(node: str) -> float:
        nonlocal measured
        measured += 1
        return noise(node) + drift(measured)

    return at_node


def judged(state: State, node: str) -> int:
    """How many verdicts a node's trials have."""
    return sum(trial.judged for trial in state.trials_of(node))
