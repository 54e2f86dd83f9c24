"""One candidate in one chamber: intent, run, and what came of it as one event."""

from collections.abc import Mapping
from functools import partial

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import cohort_of
from orchestrator.domain.records import Purpose
from orchestrator.domain.verdict import Mode
from orchestrator.door import BrokeOff, NotStarted, Ran, TooLarge
from orchestrator.ledger import Stored
from orchestrator.loop.endings import ENDINGS
from orchestrator.loop.heartbeat import Heartbeat
from orchestrator.loop.live_log import LiveLog
from orchestrator.loop.pruning import Hearing
from orchestrator.loop.workbench import Free, Workbench
from orchestrator.offload import offload_disk
from orchestrator.pruning import Watch
from sandbox import Ending as ChamberEnding


async def run_trial(
    bench: Workbench, node: str, purpose: Purpose, draft: int, tree: Tree | None = None, *, subject: str = ""
) -> str:
    """The trial's id, its end recorded. Raises Free when the ending is not the candidate's to pay.

    Without a `tree`, it is the node's own. `subject` is the node that the files are of, where they are another's.
    """
    if tree is None:
        tree = await bench.tree(node)
    trial = f"{node}-{bench.state.nodes[node].trials + 1}"
    opened = bench.state.attempts
    intent = e.TrialIntended(trial=trial, node=node, purpose=purpose, draft=draft, subject=subject, attempts=opened)
    await bench.judge_mode.run_trial(bench, intent, tree)
    return trial


async def run_alone(bench: Workbench, intent: e.TrialIntended, tree: Tree) -> None:
    """What a trial leaves is harvested, for a judge that comes later. Raises Free like the above."""
    trial, mode = intent.trial, intent.purpose.mode
    job, bundle = bench.judge_mode.job_of(bench, intent.node, mode, tree)
    bench.book.record(intent)
    log = LiveLog(bench.live / f"{trial}.log")
    limit = bench.task.stall.heartbeat
    heartbeat = Heartbeat(limit) if limit else None
    watch = partial(_watch, bench, trial, mode) if bench.pruning else None
    hearing = Hearing(log.line, watch, heartbeat, bench.task.trial.steps)
    try:
        ran = await bench.door.run(job, bundle, hearing, hearing if hearing.may_have_enough else None)
    except NotStarted as error:
        bench.book.record(e.TrialEnded(trial=trial, ending=error.ending, reason=str(error), spent=error.spent))
        raise Free.of(error) from error
    except BrokeOff as error:
        _broke_off(bench, trial, error, hearing)
    except TooLarge as error:
        bench.book.record(e.TrialEnded(trial=trial, ending=Ending.INVALID, reason=str(error), spent=error.spent))
    else:
        with bench.shelf.storing():
            bench.book.record(await _ended(bench, trial, mode, ran, hearing))
    finally:
        log.close()
    ended = bench.state.trials[trial]
    if ended.ending and ended.ending.retryable:
        raise Free(ended.ending, ended.reason)


def _watch(bench: Workbench, trial: str, mode: Mode, facts: Mapping[str, str]) -> Watch | None:
    """Watches a trial, once its chamber told on what it runs."""
    if bench.pruning is None:
        return None
    return bench.pruning.watch(trial, cohort_of(bench.jobs.fingerprint(facts, mode), bench.ranking.binds))


def _broke_off(bench: Workbench, trial: str, error: BrokeOff, hearing: Hearing) -> None:
    """Once hostile bytes are inside, only a control job that fails as well makes the ending free."""
    heard = {"reports": hearing.reports(), "pruning": hearing.look}
    if error.proven:
        ended = e.TrialEnded(trial=trial, ending=error.ending, reason=str(error), spent=error.spent, **heard)
        bench.book.record(ended)
        raise Free.of(error) from error
    reason = f"{error}; a control job passed, so the candidate pays"
    bench.book.record(e.TrialEnded(trial=trial, ending=Ending.FAILED, reason=reason, spent=error.spent, **heard))


async def _ended(bench: Workbench, trial: str, mode: Mode, ran: Ran, hearing: Hearing) -> e.TrialEnded:
    outcome = ran.outcome
    ending = ENDINGS[outcome.ending]
    reason = (outcome.why or outcome.ending) if ending else outcome.reason
    if hearing.order and outcome.ending in (ChamberEnding.STOPPED, ChamberEnding.KILLED):
        # Who does not heed the order is killed for it, and pays like any other: else that would be a way to a refund.
        ending, why = hearing.order
        reason = f"{why}; {outcome.reason}" if outcome.reason else why
    outputs = bench.judge_mode.for_judge(bench.task, outcome.outputs)
    if ending is None and not outputs:
        ending, reason = Ending.INVALID, "it left no output"
    kept, log = await offload_disk(_stored, bench, outputs, outcome.log_tail)
    if kept and ending is None:
        bench.shelf.hand_on(trial, outputs, kept.bytes)
    return e.TrialEnded(
        trial=trial,
        ending=ending,
        reason=reason,
        exit_code=outcome.exit_code,
        outputs=kept.digest if kept else None,
        outputs_bytes=kept.bytes if kept else 0,
        log=log,
        fingerprint=dict(bench.jobs.fingerprint(outcome.facts, mode)),
        spent=ran.spent,
        reports=hearing.reports(unreadable=outcome.usage.bad_reports),
        pruning=hearing.look,
    )


def _stored(bench: Workbench, outputs: Mapping[str, bytes], log: bytes) -> tuple[Stored | None, str | None]:
    """In a thread: a candidate may leave a thousand files."""
    kept = bench.artifacts.keep_files(outputs) if outputs else None
    return kept, bench.artifacts.keep(log) if log else None
