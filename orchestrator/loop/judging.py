"""From a trial's outputs to a verdict. A judge that breaks is asked about the baseline before anybody pays."""

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import Fingerprint, cohort_of
from orchestrator.domain.records import Role, Spent, Trial
from orchestrator.domain.verdict import Mode, Tier, Verdict
from orchestrator.door import NotStarted
from orchestrator.judge.contract import Result
from orchestrator.judge.data import Judgement, read_result
from orchestrator.loop.steps import tune_trial
from orchestrator.loop.workbench import Free, Parts, Workbench


async def judge_trial(bench: Workbench, name: str) -> None:
    """Record a verdict or a fault for a trial. Raises Free when the judge is broken, not the candidate."""
    trial = bench.state.trials[name]
    bench.book.record(e.JudgingIntended(trial=name, judging=f"{name}/judge"))
    judgement = await _ask(bench, trial)
    mode = trial.purpose.mode
    verdict = verdict_of(bench, judgement.result, trial.fingerprint, mode) if judgement.result else None
    fault = judgement.fault
    if verdict and verdict.valid and (missing := bench.ranking.missing(verdict.metrics)):
        verdict, fault = None, f"metric missing: {missing[0]}"
    if fault is not None:
        bench.complaints[trial.node] = judgement.detail
        await _check_on_baseline(bench, trial, judgement.spent)
    traces = bench.artifacts.put_files(judgement.traces) if judgement.traces else None
    bench.book.record(
        e.JudgingEnded(
            trial=name,
            judging=f"{name}/judge",
            verdict=verdict,
            fault=fault,
            traces=traces,
            spent=judgement.spent,
        )
    )


async def _ask(bench: Workbench, trial: Trial) -> Judgement:
    outputs = bench.artifacts.get_files(trial.outputs) if trial.outputs else {}
    if bench.tier is Tier.SHARED:
        return read_result(outputs, Spent())
    try:
        return await bench.judge.judge(outputs, trial.purpose.mode, trial.node)
    except NotStarted as error:
        raise Free(error.ending, f"no chamber for the judge: {error}") from error


def verdict_of(parts: Parts, result: Result, fingerprint: Fingerprint, mode: Mode) -> Verdict:
    """The judge's result, with what it may be compared with."""
    metrics = result.values
    complete = not parts.ranking.missing(metrics)
    return Verdict(
        metrics=metrics,
        tasks=dict(result.tasks),
        tier=parts.tier,
        mode=mode,
        cohort=cohort_of(fingerprint, parts.ranking.binds),
        valid=result.valid,
        notes=result.notes,
        suspect=tuple(parts.ranking.too_good(metrics)) if complete else (),
    )


async def _check_on_baseline(bench: Workbench, trial: Trial, spent: Spent) -> None:
    """Raises Free where the judge breaks on the baseline too: then it is the judge that is broken."""
    if bench.state.nodes[trial.node].role is Role.BASELINE or bench.tier is Tier.SHARED:
        return
    known_good = _baseline_outputs(bench, trial.purpose.mode)
    if known_good is None:
        return
    judging = f"{trial.id}/control"
    bench.book.record(e.JudgingIntended(trial=trial.id, judging=judging, on_baseline=True))
    try:
        control = await bench.judge.judge(
            bench.artifacts.get_files(known_good), trial.purpose.mode, bench.state.run.root
        )
    except NotStarted as error:
        raise Free(error.ending, f"no chamber for the judge: {error}") from error
    spent_in_all = spent + control.spent if control.fault else control.spent
    bench.book.record(
        e.JudgingEnded(trial=trial.id, judging=judging, on_baseline=True, fault=control.fault, spent=spent_in_all)
    )
    if control.fault:
        raise Free(Ending.INFRASTRUCTURE, f"the judge breaks on the baseline too: {control.fault}")


def _baseline_outputs(bench: Workbench, mode: Mode) -> str | None:
    root = bench.state.nodes[bench.state.run.root]
    if mode is Mode.TUNE:
        tuned = tune_trial(bench.state, root, 0)
        return tuned.outputs if tuned and tuned.verdict else None
    return bench.state.trials[root.submitted].outputs if root.submitted else None
