"""What a campaign has to show for what it cost: comparable useful results beside raw counts.

A result is useful when the judge scored it, found it valid and believable, its guards passed, and it can be ranked
against the others of its run: the same cohort, the real target. The baseline is what they are compared with, so it is
not counted; nor is a second run of the same node.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from orchestrator.domain.census import Sort
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Role, Run, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode, Verdict

_MS_PER_HOUR = 3_600_000
_ENDED_PLACE = attrgetter("ended_order", "ended_at")


@dataclass(frozen=True)
class Rates:
    """Useful results for each of these; None where none of it was spent: that is no infinity."""

    per_dollar: float | None
    per_hour: float | None
    per_gpu_hour: float | None
    per_chamber_hour: float | None


@dataclass(frozen=True)
class Goodput:
    """`ended` counts attempts, `charged` those that were used up, `scored` every score, comparable or not."""

    useful: int
    ended: int
    charged: int
    scored: int
    kept: int
    trials: int
    endings: dict[str, int]
    dollars: float
    hours: float
    gpu_hours: float
    chamber_hours: float
    rates: Rates

    def record(self) -> dict[str, Any]:
        return asdict(self)


def is_attempt(node: AnyNode | Sort) -> bool:
    """Neither the baseline nor what minimising left takes one."""
    return node.role not in (Role.BASELINE, Role.MINIMISED)


def goodput(state: State, *, usd: int, elapsed_s: float, run: Run | None = None) -> Goodput:
    """Of a run, or of the present one. `usd` is in micro-dollars, and with `elapsed_s` the whole campaign's; what is
    the run's own of them lies between its beginning and that of the next one.
    """
    run = run or state.run
    after = state.runs.get(str(run.number + 1))
    usd = max(0, (after.usd_before if after else usd) - run.usd_before)
    elapsed_s = max(0.0, (after.began_s if after else elapsed_s) - run.began_s)
    every = in_order(state, run)
    nodes = [node for node in every if is_attempt(node)]
    ended = [node for node in nodes if node.phase is Phase.ENDED and node.ending]
    trials = [trial for trial in state.trials.values() if run_of(trial.node) == run.number]
    useful = sum(comparable(node, run) is not None for node in ended)
    dollars = usd / 1_000_000
    chamber_hours = sum(node.spent.milliseconds for node in every) / _MS_PER_HOUR
    gpu_hours = sum(trial.spent.milliseconds * gpus(trial) for trial in trials) / _MS_PER_HOUR
    hours = elapsed_s / 3600
    return Goodput(
        useful=useful,
        ended=len(ended),
        charged=sum(bool(node.ending and node.ending.charged) for node in ended),
        scored=sum(bool(node.ending and node.ending.scoreable) for node in ended),
        kept=sum(node.kept for node in ended),
        trials=len(trials),
        endings=dict(Counter(str(node.ending) for node in ended).most_common()),
        dollars=dollars,
        hours=hours,
        gpu_hours=gpu_hours,
        chamber_hours=chamber_hours,
        rates=Rates(*(_rate(useful, spent) for spent in (dollars, hours, gpu_hours, chamber_hours))),
    )


def iterations(state: State, run: Run) -> dict[str, int]:
    """The nodes of a run that have a verdict, numbered as they ended: what every table calls the iteration."""
    return {node.id: number for number, node in enumerate(scored_in_order(state, run), 1)}


def scored_in_order(state: State, run: Run) -> list[AnyNode]:
    """The nodes of a run that have a verdict, as they ended."""
    scored = [node for node in state.node_lines() if node.verdict and node.ended_at and run_of(node.id) == run.number]
    # Where the ledger numbered all endings, that is enough, as with openings.
    if len({node.ended_order for node in scored}) == len(scored):
        return sorted(scored, key=attrgetter("ended_order"))
    return sorted(_as_opened(scored), key=_ENDED_PLACE)


def in_order(state: State, run: Run) -> list[Node]:
    """The nodes of a run in the order in which they were opened."""
    return [state.nodes[node.id] for node in lines_in_order(state, run)]


def lines_in_order(state: State, run: Run) -> list[AnyNode]:
    """The same, of most of them no more than a line."""
    return _as_opened([node for node in state.node_lines() if run_of(node.id) == run.number])


def _as_opened(nodes: list[AnyNode]) -> list[AnyNode]:
    # Where the ledger numbered all of them, that is enough: a place in the tree takes long to make.
    if len({node.opened_order for node in nodes}) == len(nodes):
        return sorted(nodes, key=attrgetter("opened_order"))
    return sorted(nodes, key=lambda node: node.opened_place)


def comparable(node: Node, run: Run) -> Verdict | None:
    """The verdict by which a node may be ranked in the run's present cohort."""
    verdict = node.verdicts.get(run.cohort or "") or node.verdict
    if verdict is None or not (node.ending and node.ending.scoreable):
        return None
    if verdict.mode is not Mode.SUBMIT or verdict.cohort != run.cohort or not all(node.guarded.values()):
        return None
    return verdict if verdict.valid and not verdict.suspect else None


def gpus(trial: Trial) -> int:
    """How many the chamber saw: its fingerprint names each of them."""
    return sum(bool(name.strip()) for name in trial.fingerprint.get("gpu", "").split(";"))


def _rate(results: int, spent: float) -> float | None:
    return results / spent if spent > 0 else None
