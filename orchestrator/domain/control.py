"""Whether the proposer is ahead of the control that runs beside it. Only who is ahead after equally many attempts:
that one best is better than another says nothing yet of luck.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.goodput import comparable, in_order
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node, Phase, Role, Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict


class Ahead(StrEnum):
    PROPOSER = "proposer"
    CONTROL = "control"
    NEITHER = "neither"


@dataclass(frozen=True)
class Best:
    node: str
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """`attempts` is how many of each were looked at: the first ones of both, failures included, for they cost too."""

    attempts: int
    proposer: Best | None
    control: Best | None
    ahead: Ahead | None


def compare(state: State, ranking: Ranking, run: Run | None = None) -> Comparison:
    """The best of each at an equal number of attempts. `ahead` is None where one of them has none at all."""
    run = run or state.run
    proposed, drawn = _attempts(state, run, Role.SEARCH), _attempts(state, run, Role.CONTROL)
    count = min(len(proposed), len(drawn))
    mine, theirs = best_of(proposed[:count], run, ranking), best_of(drawn[:count], run, ranking)
    return Comparison(count, mine, theirs, _ahead(mine, theirs, ranking) if count else None)


def best_of(nodes: Iterable[Node], run: Run, ranking: Ranking) -> Best | None:
    """The first of those that none after it beats."""
    best: Best | None = None
    for node in nodes:
        verdict = comparable(node, run)
        if verdict and (best is None or ranking.better(verdict.metrics, best.verdict.metrics)):
            best = Best(node.id, verdict)
    return best


def _attempts(state: State, run: Run, role: Role) -> list[Node]:
    """Charged ones. A score of another cohort is left out with its attempt: it says nothing here."""
    found = []
    for node in in_order(state, run):
        charged = node.role is role and node.phase is Phase.ENDED and node.ending is not None and node.ending.charged
        elsewhere = node.verdict is not None and run.cohort not in (node.verdict.cohort, *node.verdicts)
        if charged and not elsewhere:
            found.append(node)
    return found


def _ahead(mine: Best | None, theirs: Best | None, ranking: Ranking) -> Ahead:
    if mine and theirs:
        if ranking.better(mine.verdict.metrics, theirs.verdict.metrics):
            return Ahead.PROPOSER
        beaten = ranking.better(theirs.verdict.metrics, mine.verdict.metrics)
        return Ahead.CONTROL if beaten else Ahead.NEITHER
    if mine or theirs:
        return Ahead.PROPOSER if mine else Ahead.CONTROL
    return Ahead.NEITHER
