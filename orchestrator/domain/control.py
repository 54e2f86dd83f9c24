"""Whether the proposer beats the control that runs beside it: whose best is better after equally many attempts, and
whether chance alone could have put as many of the best results on the proposer's side.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain.chance import Lead, lead_of
from orchestrator.domain.goodput import comparable, lines_in_order
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node, Phase, Role, Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict

# The share of campaigns with a proposer as blind as its control in which it is said to beat it, at most.
ERROR_RATE = 0.05
# Only what is drawn blindly tells what chance gives; a grid goes through its corners in turn.
_BLIND = ("random",)


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
    """`attempts` is how many of each were looked at: the first ones of both, failures included, for they cost too.

    `lead` is None where there are too few of them, or the control is not drawn by chance.
    """

    attempts: int
    proposer: Best | None
    control: Best | None
    ahead: Ahead | None
    lead: Lead | None = None
    better: Best | None = None

    @property
    def beaten(self) -> bool:
        """A better best alone is luck in every second campaign; it counts where chance is unlikely to do as well."""
        return self.ahead is Ahead.PROPOSER and self.lead is not None and self.lead.p < ERROR_RATE


def compare(state: State, ranking: Ranking, run: Run | None = None) -> Comparison:
    """The best of each at an equal number of attempts. `ahead` is None where one of them has none at all."""
    run = run or state.run
    if run.control is None:
        return Comparison(0, None, None, None, None, None)
    mine, others = _attempts(state, run, Role.SEARCH), _attempts(state, run, Role.CONTROL)
    count = min(len(mine), len(others))
    proposed, drawn = ([state.nodes[name] for name in names[:count]] for names in (mine, others))
    best, theirs = best_of(proposed, run, ranking), best_of(drawn, run, ranking)
    ahead = _ahead(best, theirs, ranking) if count else None
    lead = lead_of(_values(proposed, run), _values(drawn, run), ranking) if run.control in _BLIND else None
    return Comparison(count, best, theirs, ahead, lead, _better_than_kept(state, ranking, run))


def _better_than_kept(state: State, ranking: Ranking, run: Run) -> Best | None:
    """A control is never kept, so the best result of all may be one of its own."""
    controls = (state.nodes[it.id] for it in lines_in_order(state, run) if it.role is Role.CONTROL)
    best, champion = best_of(controls, run, ranking), state.champion(run)
    kept = headline(state, champion, run.cohort) if champion else None
    if best is None or kept is None or ranking.missing(kept.metrics):
        return None
    return best if ranking.better(best.verdict.metrics, kept.metrics) else None


def best_of(nodes: Iterable[Node], run: Run, ranking: Ranking) -> Best | None:
    """The first of those that none after it beats."""
    best: Best | None = None
    for node in nodes:
        verdict = comparable(node, run)
        if verdict and (best is None or ranking.better(verdict.metrics, best.verdict.metrics)):
            best = Best(node.id, verdict)
    return best


def _values(nodes: Iterable[Node], run: Run) -> list[Mapping[str, float] | None]:
    verdicts = (comparable(node, run) for node in nodes)
    return [verdict.metrics if verdict else None for verdict in verdicts]


def _attempts(state: State, run: Run, role: Role) -> list[str]:
    """Charged ones. A score of another cohort is left out with its attempt: it says nothing here."""
    found = []
    for node in lines_in_order(state, run):
        if node.role is not role or node.phase is not Phase.ENDED or node.ending is None or not node.ending.charged:
            continue
        here = node.verdict is None or node.verdict.cohort == run.cohort
        if here or run.cohort in state.nodes[node.id].verdicts:
            found.append(node.id)
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
