"""The held-out split: asked about a candidate that is about to be kept, and answered by the ladder alone.

The exact score lives in this module's variables and nowhere else. Nothing that the trial or its judge left is kept,
since a candidate could print its inputs; and no score, whatever the cause, is answered like a score that is no better,
since a candidate could choose between the two.
"""

from dataclasses import dataclass

from orchestrator.domain import events as e
from orchestrator.domain import ladder
from orchestrator.domain.fingerprint import Fingerprint, cohort_of
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Role, Spent
from orchestrator.domain.verdict import Aim, Mode, Verdict
from orchestrator.door import BrokeOff, NotStarted, TooLarge
from orchestrator.judge.data import Judgement
from orchestrator.loop import relaying
from orchestrator.loop.again import for_another
from orchestrator.loop.endings import ENDINGS
from orchestrator.loop.judging import verdict_of
from orchestrator.loop.keeping import rules_for
from orchestrator.loop.money import unbooked, worst_of_asking
from orchestrator.loop.workbench import Free, Workbench
from orchestrator.task import HeldOutSpec

_TRIES = 3


@dataclass(frozen=True)
class HeldOutScore:
    """`merit` is None where there is no score that counts; `fault` says why in a fixed code."""

    spent: Spent
    cohort: str = ""
    merit: float | None = None
    fault: str = ""


async def ask_heldout(bench: Workbench, name: str) -> None:
    """Record what the ladder says of a node. Raises Free when a chamber could not be had; it counts all the same."""
    if bench.state.nodes[name].role is Role.BASELINE:
        await _ask_baseline(bench, name)
        return
    query = _intend(bench, name)
    scored = await _scored(bench, name, query)
    cohort = scored.cohort or next(reversed(bench.state.run.ladders), "")
    try:
        await _have_ladder(bench, cohort)
    except Free:
        bench.book.record(e.HeldOutAsked(node=name, query=query, spent=scored.spent, interrupted=True))
        raise
    asked = e.HeldOutAsked(node=name, query=query, cohort=cohort, step=_spec(bench).step, spent=scored.spent)
    aim = rules_for(bench.state.nodes[name], bench.rules).aim
    bench.book.record(asked.model_copy(update=_answer(bench, cohort, scored.merit, aim)))


def _answer(bench: Workbench, cohort: str, merit: float | None, aim: Aim) -> dict[str, bool | float]:
    """One bit, to the one question that is asked here; nothing where the baseline has no value to compare with."""
    released = bench.state.run.ladders.get(cohort)
    if released is None:
        return {}
    metric, step = _first_metric(bench), _spec(bench).step
    if aim is Aim.NOT_WORSE:
        return {"worse": ladder.is_worse(merit, metric.merit(released), step), "released": released}
    found = ladder.answer(merit, metric.merit(released), step)
    return {"better": found.better, "released": metric.merit(found.released)}


async def _ask_baseline(bench: Workbench, root: str) -> None:
    """Its rounded score is where a ladder starts. One that has been started stays as it is, wherever this lands."""
    query = _intend(bench, root)
    scored = await _scored(bench, root, query)
    step, metric = _spec(bench).step, _first_metric(bench)
    released, fault = bench.state.run.ladders.get(scored.cohort), scored.fault
    if released is None and scored.merit is not None:
        value = ladder.rounded(scored.merit, step)
        released = None if value is None else metric.merit(value)
        fault = "more steps than can be counted" if value is None else ""
    bench.book.record(
        e.HeldOutAsked(
            node=root,
            query=query,
            cohort=scored.cohort,
            released=released,
            step=step,
            fault=fault,
            spent=scored.spent,
        )
    )


async def _have_ladder(bench: Workbench, cohort: str) -> None:
    """On other machines, or after a new cohort, the baseline is asked there first, as often as the counts allow."""
    async with bench.cohort_lock:
        for _ in range(_TRIES):
            state = bench.state
            if cohort in state.run.ladders or state.campaign.asked >= _spec(bench).queries:
                return
            if not await _ask_baseline_again(bench, state.run.root):
                return


async def _ask_baseline_again(bench: Workbench, root: str) -> bool:
    """With a hold of its own, as a re-run for a new cohort has; False where the caps leave no room for it."""
    amounts = worst_of_asking(bench)
    if bench.book.accounts.shortage(amounts):
        return False
    hold = f"{root}#heldout-{bench.state.campaign.asked + 1}"
    bench.book.record(e.Reserved(hold=hold, amounts=amounts.as_row()))
    async with for_another(bench, root, hold):
        await _ask_baseline(bench, root)
    spent = unbooked(bench.state.nodes[root])
    bench.book.record(e.Settled(hold=hold, node=root, spent=spent.as_row()))
    return True


def _intend(bench: Workbench, name: str) -> int:
    query = bench.state.campaign.asked + 1
    bench.book.record(e.HeldOutIntended(node=name, query=query, queries=_spec(bench).queries))
    return query


async def _scored(bench: Workbench, name: str, query: int) -> HeldOutScore:
    try:
        return await bench.judge_mode.score_heldout(bench, name)
    except Free as free:
        bench.book.record(e.HeldOutAsked(node=name, query=query, spent=free.spent, interrupted=True))
        raise


async def score_outputs(bench: Workbench, name: str) -> HeldOutScore:
    """Nobody listens to the chamber, and what it leaves goes to the judge and no further."""
    job, bundle = bench.judge_mode.job_of(bench, name, Mode.HELDOUT, await bench.tree(name))
    try:
        ran = await bench.door.run(job, bundle)
    except NotStarted as error:
        raise Free.of(error, "no chamber for the held-out split", error.spent) from error
    except BrokeOff as error:
        if error.proven:
            raise Free.of(error, spent=error.spent) from error
        return HeldOutScore(error.spent, fault="broke off")
    except TooLarge as error:
        return HeldOutScore(error.spent, fault="too large")
    fingerprint = bench.jobs.fingerprint(ran.outcome.facts, Mode.HELDOUT)
    cohort = cohort_of(fingerprint, bench.ranking.binds)
    ending, outputs = ENDINGS[ran.outcome.ending], bench.judge_mode.for_judge(bench.task, ran.outcome.outputs)
    if ending and ending.retryable:
        raise Free(ending, "the chamber for the held-out split was killed", ran.spent)
    if ending or not outputs:
        return HeldOutScore(ran.spent, cohort, fault=str(ending or "no output"))
    try:
        judgement = await bench.judge_mode.judge(bench, outputs, Mode.HELDOUT, name)
    except BrokeOff as error:
        raise Free.of(error, "the provider failed while judging", ran.spent + error.spent) from error
    except NotStarted as error:
        raise Free.of(error, "no chamber for the judge", ran.spent + error.spent) from error
    merit, fault = _merit(bench, judgement, fingerprint)
    return HeldOutScore(ran.spent + judgement.spent, cohort, merit, fault)


async def score_calls(bench: Workbench, name: str) -> HeldOutScore:
    """The same where the judge calls the candidate."""
    met = await relaying.relayed(bench, name, Mode.HELDOUT, await bench.tree(name))
    spent = met.candidate.spent + met.judge.spent
    if free := relaying.freed_by(met):
        free.spent = spent
        raise free
    outcome = met.candidate.outcome
    fingerprint = bench.jobs.fingerprint(outcome.facts if outcome else {}, Mode.HELDOUT)
    cohort = cohort_of(fingerprint, bench.ranking.binds)
    if ended := relaying.ended_by(met, bench.task.target(Mode.HELDOUT).limits.wall):
        return HeldOutScore(spent, cohort, fault=str(ended.ending))
    found = relaying.scored(bench, met, fingerprint, Mode.HELDOUT)
    if found.verdict is None:
        return HeldOutScore(spent, cohort, fault="judge broke")
    if bench.state.nodes[name].role is Role.BASELINE and found.verdict.at_most:
        return HeldOutScore(spent, cohort, fault="below what the channel can tell")
    merit, fault = _merit_of(bench, found.verdict)
    return HeldOutScore(spent, cohort, merit, fault)


def _merit(bench: Workbench, judgement: Judgement, fingerprint: Fingerprint) -> tuple[float | None, str]:
    """The first metric of a score that counts, or the fixed code of why there is none."""
    if judgement.result is None:
        return None, judgement.fault or "no result"
    return _merit_of(bench, verdict_of(bench, judgement.result, fingerprint, Mode.HELDOUT))


def _merit_of(bench: Workbench, verdict: Verdict) -> tuple[float | None, str]:
    if not verdict.valid:
        return None, "no solution"
    if missing := bench.ranking.missing(verdict.metrics):
        return None, f"metric missing: {missing[0]}"
    if verdict.suspect:
        return None, "beyond the ceiling"
    metric = _first_metric(bench)
    return metric.merit(verdict.metrics[metric.name]), ""


def _spec(bench: Workbench) -> HeldOutSpec:
    if bench.task.heldout is None:
        raise AssertionError("the task has no held-out split")
    return bench.task.heldout


def _first_metric(bench: Workbench) -> Metric:
    return bench.ranking.metrics[0]
