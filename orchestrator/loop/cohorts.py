"""A new cohort: the fleet or the criteria changed, so the baseline and the champion are measured again there."""

from orchestrator.domain import events as e
from orchestrator.domain.fingerprint import difference
from orchestrator.domain.records import Node, Purpose
from orchestrator.domain.verdict import decide
from orchestrator.loop.again import CanNotCompare, run_ended_again
from orchestrator.loop.workbench import Workbench

_TRIES = 3


class NoBaseline(CanNotCompare):
    """The cohort has no baseline, so nothing in it can be kept; the message says why."""


async def open_cohort(bench: Workbench, cohort: str, trial: str) -> None:
    """Give a cohort its baseline and champion. Raises NoBaseline, or Free when a chamber could not be had."""
    async with bench.cohort_lock:
        run = bench.state.run
        if cohort in run.champions:
            return
        old = bench.state.champion(run)
        root = bench.state.nodes[run.root]
        why = _what_changed(bench, root, trial)
        best = await _measured(bench, root, cohort)
        if old and old.id != root.id:
            best = await _better_of(bench, best, old, cohort)
        # Together and last: until then, and after a crash, the run is still in the cohort that has a champion.
        bench.book.record(
            e.CohortOpened(run=run.number, cohort=cohort, why=why),
            e.ChampionChanged(run=run.number, node=best.id, cohort=cohort, over=None),
        )


async def measure_in(bench: Workbench, name: str, cohort: str) -> None:
    """Give a node that ended a verdict in a cohort. Raises like the above."""
    async with bench.cohort_lock:
        await _measured(bench, bench.state.nodes[name], cohort)


async def _better_of(bench: Workbench, root: Node, old: Node, cohort: str) -> Node:
    """The old champion where it is still better, judged like any candidate. One that no longer runs is none."""
    try:
        again = await _measured(bench, old, cohort)
    except NoBaseline:
        return root
    if bench.certify.noisy:
        # It was proven better once; one score of each is no reason to go back.
        return again
    found = decide(again.verdicts[cohort], root.verdicts[cohort], bench.ranking, lower_tier=bench.state.run.lower_tier)
    return again if found.kept else root


def _what_changed(bench: Workbench, root: Node, trial: str) -> str:
    measured = bench.state.trials[root.submitted].fingerprint if root.submitted else {}
    return ", ".join(difference(measured, bench.state.trials[trial].fingerprint)) or "the first trial of this run"


async def _measured(bench: Workbench, node: Node, cohort: str) -> Node:
    """The node with a verdict in this cohort. In a mixed fleet the trial may land elsewhere; then it is run again."""
    for _ in range(_TRIES):
        if cohort in bench.state.nodes[node.id].verdicts:
            break
        await _rerun(bench, node)
    found = bench.state.nodes[node.id]
    if cohort not in found.verdicts or not found.verdicts[cohort].valid:
        raise NoBaseline(f"{node.id} could not be measured in cohort {cohort}, so nothing there can be compared")
    return found


async def _rerun(bench: Workbench, node: Node) -> None:
    try:
        await run_ended_again(bench, node.id, Purpose.RERUN)
    except CanNotCompare as error:
        raise NoBaseline(f"a new cohort has no baseline: {error}") from error
