"""From a trial's outputs to a verdict. A judge that breaks is asked about the baseline before anybody pays."""

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import Fingerprint, cohort_of
from orchestrator.domain.records import Role, Spent, Trial
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.door import BrokeOff, NotStarted
from orchestrator.judge.contract import Result
from orchestrator.loop.steps import tune_trial
from orchestrator.loop.workbench import Free, Parts, Workbench
from orchestrator.offload import offload_disk


async def judge_trial(bench: Workbench, name: str) -> None:
    """Record a verdict or a fault for a trial. Raises Free when the judge is broken, not the candidate."""
    trial = bench.state.trials[name]
    if trial.judged:  # as in relay mode, where the judge was there while it ran
        return
    judging, mode = f"{name}/judge", trial.purpose.mode
    bench.book.record(e.JudgingIntended(trial=name, judging=judging))
    with _closing(bench, name, judging):
        outputs = await bench.shelf.take(trial)
        judgement = await bench.judge_mode.judge(bench, outputs, mode, trial.node)
    verdict = verdict_of(bench, judgement.result, trial.fingerprint, mode) if judgement.result else None
    fault, spent = judgement.fault, judgement.spent
    if verdict and verdict.valid and (missing := bench.ranking.missing(verdict.metrics)):
        verdict, fault = None, f"metric missing: {missing[0]}"
    if fault is not None:
        bench.complaints[trial.node] = judgement.detail
        spent = await _check_on_baseline(bench, trial, judging, spent)
    with bench.shelf.storing():
        traces = await offload_disk(bench.artifacts.keep_files, judgement.traces) if judgement.traces else None
        bench.book.record(
            e.JudgingEnded(
                trial=name,
                judging=judging,
                verdict=verdict,
                fault=fault,
                traces=traces.digest if traces else None,
                traces_bytes=traces.bytes if traces else 0,
                spent=spent,
            )
        )


@contextmanager
def _closing(bench: Workbench, trial: str, judging: str) -> Iterator[None]:
    """Where the provider failed, a judging is over in the ledger too: it must not seem to go on until the next one."""
    try:
        yield
    except BrokeOff as error:
        bench.book.record(e.JudgingEnded(trial=trial, judging=judging, interrupted=True, spent=error.spent))
        raise Free.of(error, "the provider failed while judging") from error
    except NotStarted as error:
        bench.book.record(e.JudgingEnded(trial=trial, judging=judging, interrupted=True, spent=error.spent))
        raise Free.of(error, "no chamber for the judge") from error


def verdict_of(parts: Parts, result: Result, fingerprint: Fingerprint, mode: Mode) -> Verdict:
    """The judge's result, with what it may be compared with."""
    metrics = result.values
    complete = not parts.ranking.missing(metrics)
    return Verdict(
        metrics=metrics,
        tasks=dict(result.tasks),
        directions=dict(result.directions),
        tier=parts.tier,
        mode=mode,
        cohort=cohort_of(fingerprint, parts.ranking.binds),
        valid=result.valid,
        notes=result.notes,
        suspect=tuple(parts.ranking.too_good(metrics)) if complete else (),
    )


async def _check_on_baseline(bench: Workbench, trial: Trial, first: str, spent: Spent) -> Spent:
    """What of `spent` is still to be booked. Raises Free where the judge breaks on the baseline too: then it is the
    judge that is broken.
    """
    mode = trial.purpose.mode
    if bench.state.nodes[trial.node].role is Role.BASELINE or not bench.judge_mode.walls_of_doubt(bench.task, mode):
        return spent
    known_good = _baseline_outputs(bench, mode)
    if known_good is None:
        return spent
    judging = f"{trial.id}/control"
    bench.book.record(
        e.JudgingEnded(trial=trial.id, judging=first, spent=spent, interrupted=True),
        e.JudgingIntended(trial=trial.id, judging=judging, on_baseline=True),
    )
    with _closing(bench, trial.id, judging):
        outputs = await offload_disk(bench.artifacts.get_files, known_good)
        control = await bench.judge_mode.judge(bench, outputs, mode, bench.state.run.root)
    bench.book.record(
        e.JudgingEnded(trial=trial.id, judging=judging, on_baseline=True, fault=control.fault, spent=control.spent)
    )
    if control.fault:
        raise Free(Ending.INFRASTRUCTURE, f"the judge breaks on the baseline too: {control.fault}")
    return Spent()


def _baseline_outputs(bench: Workbench, mode: Mode) -> str | None:
    root = bench.state.nodes[bench.state.run.root]
    if mode is Mode.TUNE:
        tuned = tune_trial(bench.state, root, 0)
        return tuned.outputs if tuned and tuned.verdict else None
    return bench.state.trials[root.submitted].outputs if root.submitted else None
