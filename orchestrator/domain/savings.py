"""What pruning saved, and whether it was right: a share of trials is spared, so that somebody knows."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.domain.ending import Ending
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Run
from orchestrator.domain.state import State


@dataclass(frozen=True)
class Savings:
    """`watched` trials were under the rule, `pruned` of them ended by it. Of the spared ones it would have ended
    `let_go`; `late` were done before the order came. `misjudged` are nodes of both that were kept in the end.
    `winner_cut` is the step at which it would have ended the winner.

    Saved is estimated: what is left of the median length of the `basis` watched trials that ran to their end.
    """

    watched: int
    pruned: int
    spared: int
    let_go: int
    late: int
    misjudged: tuple[str, ...]
    winner: str | None
    winner_watched: bool
    winner_spared: bool
    winner_cut: int | None
    basis: int
    seconds: float | None
    dollars: float | None

    def record(self) -> dict[str, Any]:
        return asdict(self)


def savings(state: State, run: Run | None = None, *, watched: bool = True) -> Savings:
    """`watched` is whether the run has a rule for pruning: else no trial needs to be looked at."""
    run = run or state.run
    all_trials = state.trials.values() if watched else ()
    trials = [it for it in all_trials if it.ended and it.pruning and run_of(it.node) == run.number]
    pruned = [it for it in trials if it.ending is Ending.PRUNED]
    wanted = [it for it in trials if it.pruning and it.pruning.cut and it.ending is not Ending.PRUNED]
    let_go = sum(bool(it.pruning and it.pruning.spared) for it in wanted)
    whole = [it for it in trials if it.judged]
    champion = state.champion(run)
    best = state.trials.get(champion.submitted or "") if champion else None
    look = best.pruning if best else None
    return Savings(
        watched=len(trials),
        pruned=len(pruned),
        spared=sum(bool(it.pruning and it.pruning.spared) for it in trials),
        let_go=let_go,
        late=len(wanted) - let_go,
        misjudged=tuple(it.node for it in wanted if state.nodes[it.node].kept),
        winner=champion.id if champion else None,
        winner_watched=look is not None,
        winner_spared=bool(look and look.spared),
        winner_cut=look.step if look else None,
        basis=len(whole),
        seconds=_saved([it.spent.milliseconds for it in pruned], [it.spent.milliseconds for it in whole], 1000),
        dollars=_saved([it.spent.microdollars for it in pruned], [it.spent.microdollars for it in whole], 1_000_000),
    )


def _saved(pruned: list[int], whole: list[int], units: int) -> float | None:
    """None where nothing ran to its end, so that nobody knows what a whole trial takes."""
    if not whole:
        return None
    length = statistics.median(whole)
    return sum(max(0.0, length - spent) for spent in pruned) / units
