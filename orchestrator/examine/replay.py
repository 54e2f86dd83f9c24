"""Runs a node's candidate once more, from its commit, and says whether its verdict stands: by the rule that decided it.

A strict score must come out the same, and the decision with it: the run is taken as the node's latest replay. A noisy
score never comes out the same. There it is held against the node's own repeats: it may not be worse than the worst of
them, which of n + 1 runs that are alike happens to the last one once in n + 1 times.
"""

from dataclasses import dataclass

from orchestrator.change import Tree
from orchestrator.domain.fingerprint import difference
from orchestrator.domain.headline import repeats_of
from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Purpose, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict
from orchestrator.loop.keeping import End, Rules, may_be_kept
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.loop.workbench import Parts


@dataclass(frozen=True)
class Replay:
    """`kept` is whether the rule would keep it with this run; None where something would have to be asked first."""

    stands: bool
    why: str
    verdict: Verdict | None
    kept: bool | None = None


async def replay(parts: Parts, state: State, node: Node, tree: Tree, tolerance: float) -> Replay:
    """Nothing is recorded, and neither guards nor the held-out split are asked again: what they said counts. Raises
    Unavailable when the engine fails.
    """
    again = await rehearse(parts, tree=tree, node=node.id)
    rules = Rules(parts.ranking, parts.certify, parts.task.heldout)
    end = decided_again(state, node, rules, again)
    kept = end.kept if end else None
    old, new = node.verdict, again.verdict
    if old is None or new is None or old.valid != new.valid or again.missing:
        stands = old is None and new is None and again.ending == node.ending
        return Replay(stands, f"it ended as {_ending(again)}; recorded: {node.ending or 'unfinished'}", new, kept)
    submitted = state.trials[node.submitted] if node.submitted else None
    moved = difference(submitted.fingerprint if submitted else {}, again.fingerprint)
    where = f"; it ran elsewhere: {', '.join(moved)}" if old.cohort != new.cohort else ""
    stands, why = (_in_range if rules.certify.noisy else _the_same)(state, node, new, rules.ranking, tolerance)
    if stands and end and end.kept != node.kept:
        word = "kept" if end.kept else "not kept"
        return Replay(False, f"{why}, but it would be {word} now: {end.why}{where}", new, kept)
    return Replay(stands, f"{why}{where}", new, kept)


def decided_again(state: State, node: Node, rules: Rules, again: Rehearsal) -> End | None:
    """What the rule says of a node with one more run, against whom it had to beat. Pure; None where that cannot be
    said, since something would have to be run or asked first.
    """
    submitted = state.trials.get(node.submitted or "")
    if submitted is None or submitted.ending or not submitted.judged:
        return End(node.ending, False, node.why) if node.ending else None
    then, trial = state.copy(), _trial_of(node, rules, again)
    run = state.runs[str(run_of(node.id))]
    then.set_campaign(run=run.number)
    if submitted.verdict and (champion := beaten(state, node, submitted.verdict.cohort)):
        then.set_run(run.number, champions={**run.champions, submitted.verdict.cohort: champion})
    failed = trial.ending is not None or trial.fault is not None or not (trial.verdict and trial.verdict.valid)
    # One more noisy score has no part in a test that is over; one that fails shows that it does not run again.
    if failed or not rules.certify.noisy:
        then.new("trial", trial.id, trial)
        then.set_node(node.id, trials=node.trials + 1)
    if not rules.certify.noisy and not rules.certify.replay and not failed:
        submitted = trial
    found = may_be_kept(then, then.nodes[node.id], submitted, rules)
    return found if isinstance(found, End) else None


def beaten(state: State, node: Node, cohort: str) -> str | None:
    """The champion that a node was held against: the one before it, or where it was not kept, that of the time."""
    if node.certification and node.certification.cohort == cohort:
        return node.certification.champion
    run, mine = run_of(node.id), node.references.get(cohort)
    holders = [it for it in state.nodes.values() if cohort in it.references and run_of(it.id) == run and it != node]
    before = [it for it in holders if (it.references[cohort] < mine if mine else it.ended_place <= node.ended_place)]
    return max(before, key=lambda it: it.references[cohort]).id if before else None


def _trial_of(node: Node, rules: Rules, again: Rehearsal) -> Trial:
    """The run, as a campaign would have it on record."""
    fault = again.judgement.fault if again.judgement else None
    if again.verdict and again.verdict.valid and again.missing:
        fault = f"metric missing: {again.missing[0]}"
    return Trial(
        id=f"{node.id}-{node.trials + 1}",
        node=node.id,
        purpose=Purpose.REPEAT if rules.certify.noisy else Purpose.REPLAY,
        draft=node.promoted or 0,
        started_at=node.ended_at,
        ended=True,
        ending=again.ending,
        reason=again.reason,
        judged=again.ending is None,
        verdict=None if fault else again.verdict,
        fault=fault,
    )


def _the_same(_: State, node: Node, new: Verdict, ranking: Ranking, tolerance: float) -> tuple[bool, str]:
    """Every ranked metric must come out within the relative tolerance."""
    old = node.verdict.metrics if node.verdict else {}
    changed = [it.name for it in ranking.metrics if not _close(old.get(it.name), new.metrics.get(it.name), tolerance)]
    return (False, f"differs in {', '.join(changed)}") if changed else (True, "the same metrics again")


def _in_range(state: State, node: Node, new: Verdict, ranking: Ranking, tolerance: float) -> tuple[bool, str]:
    known = repeats_of(state, node, new.cohort)
    if not known:
        return True, "it has a score again; without repeats, nothing says how far its scores spread"
    worst = min(known, key=lambda it: ranking.standing(it.metrics))
    first = ranking.metrics[0].name
    near = all(_close(worst.metrics[it.name], new.metrics[it.name], tolerance) for it in ranking.metrics)
    told = f"the worst of its {len(known)} repeats ({first} {worst.metrics[first]:.6g})"
    if near or ranking.standing(new.metrics) >= ranking.standing(worst.metrics):
        return True, f"no worse than {told}"
    return False, f"worse than {told}, which by chance alone happens once in {len(known) + 1} times"


def _ending(again: Rehearsal) -> str:
    if again.ending is not None:
        return f"{again.ending} ({again.reason})"
    fault = again.judgement.fault if again.judgement else None
    return f"invalid (the judge cannot score it: {fault})" if fault else "judged"


def _close(old: float | None, new: float | None, tolerance: float) -> bool:
    if old is None or new is None:
        return old is new
    return abs(old - new) <= tolerance * max(abs(old), abs(new))
