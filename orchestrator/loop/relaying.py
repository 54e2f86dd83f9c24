"""A trial in which the judge calls the candidate: both chambers at once, and whose fault it is if nothing comes."""

from dataclasses import dataclass, replace

from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import Fingerprint
from orchestrator.domain.records import Calibration, Purpose, Role, Spent
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.door import BrokeOff, NotStarted, TooLarge
from orchestrator.judge.data import SOURCE, Judgement, contract_variables
from orchestrator.judge.helpers import CANDIDATE_HELPERS, HELPERS_FOLDER, helpers, profiler
from orchestrator.judge.relay import Met, Seat, Side, judgement_of, meet
from orchestrator.judge.tape import Tape
from orchestrator.loop.endings import ENDINGS
from orchestrator.loop.jobs import bundle_of, together
from orchestrator.loop.judging import verdict_of
from orchestrator.loop.steps import tune_trial
from orchestrator.loop.workbench import Free, Parts, Workbench
from orchestrator.offload import offload_disk
from sandbox import Bundle, Listener, Refused
from sandbox import Ending as ChamberEnding

# Of one file; what reads it has the same number.
LOOKED_BYTES = 1 << 20


@dataclass(frozen=True)
class Ended:
    """The candidate's own ending: no result is looked for then."""

    ending: Ending
    reason: str


@dataclass(frozen=True)
class Scored:
    """A verdict, or the code of what was wrong; `judgement` has the words for the judge's author."""

    verdict: Verdict | None
    fault: str | None
    judgement: Judgement
    judge_broke: bool


@dataclass(frozen=True)
class StandIn:
    """One of our cheats in the place of the task's own command, with files of its own; `builds` where that command is
    started by it.
    """

    command: tuple[str, ...]
    files: Tree
    builds: bool


def candidate_bundle(tree: Tree, more: Tree | None = None) -> Bundle:
    """The candidate's files, and our modules in a folder that no change can touch."""
    ours = Tree({**helpers(CANDIDATE_HELPERS), **(more or {})})
    return together(bundle_of(tree), bundle_of(ours, HELPERS_FOLDER))


def _looked_at(parts: Parts, tree: Tree) -> Tree:
    """What the judge reads of the candidate, cut off where it is told to be too long: it must not make the judge's job
    one that cannot run.
    """
    return Tree.of({name: tree[name].data[: LOOKED_BYTES + 1] for name in parts.task.judge.looks if name in tree})


async def relayed(
    parts: Parts,
    node: str,
    mode: Mode,
    tree: Tree,
    listener: Listener | None = None,
    stand_in: StandIn | None = None,
    tape: Tape | None = None,
    *,
    profiled_s: float | None = None,
) -> Met:
    """One meeting of this tree with the judge. Raises Refused for a job that cannot run at all.

    `profiled_s`: our own module looks on at the candidate's, which has no more time than that.
    """
    job = parts.judge.jobs[mode]
    looks = {"BLASTDOOR_CANDIDATE": f"{SOURCE}/candidate"} if parts.task.judge.looks else {}
    job = job.model_copy(update={"env": {**job.env, **contract_variables(mode, node), **looks}})
    wall = parts.task.target(mode).limits.wall
    own = parts.jobs.trial(mode)
    if stand_in:
        own = own.model_copy(update={"command": stand_in.command, "build": own.build if stand_in.builds else ()})
    bundle = candidate_bundle(tree, stand_in.files if stand_in else None)
    if profiled_s is not None:
        less_s = max(0.0, wall - profiled_s)
        limits = own.limits.model_copy(update={"wall": own.limits.wall - less_s})
        own = own.model_copy(update={"env": {**own.env, "BLASTDOOR_PROFILE_ROOT": SOURCE}, "limits": limits})
        wall -= less_s
        bundle = together(bundle, bundle_of(profiler(), HELPERS_FOLDER))
    candidate = Seat(parts.door, own, bundle, wall)
    files = together(bundle_of(parts.judge.files), bundle_of(_looked_at(parts, tree), "candidate"))
    judge = Seat(parts.judge.door, job, files, parts.task.judge.limits.wall)
    async with parts.door.turn(own):
        awake = parts.door.awake
        slept = awake.slept
        met = await meet(candidate, judge, listener, tape, profiled=profiled_s is not None)
        met.slept_s = awake.slept - slept
    for part in (met.judge, met.candidate):
        if isinstance(part.error, Refused):
            raise part.error
    return met


def freed_by(met: Met) -> Free | None:
    """Why nobody pays: no hostile byte was delivered, a control job failed as well, or we were not there."""
    judge, candidate = met.judge.error, met.candidate.error
    if met.slept_s:  # every time that was taken is wrong
        return Free(Ending.INTERRUPTED, f"the orchestrator stood still for {met.slept_s:.0f} s while it ran")
    if isinstance(judge, NotStarted):
        return Free.of(judge, "no chamber for the judge")
    if isinstance(candidate, NotStarted) or (isinstance(candidate, BrokeOff) and candidate.proven):
        return Free.of(candidate)
    if isinstance(judge, BrokeOff) and judge.proven and met.files is None:
        return Free.of(judge, "the provider failed while judging")
    return None


def ended_by(met: Met, wall_s: float) -> Ended | None:
    """How the candidate ended it; None where it did not."""
    error, outcome = met.candidate.error, met.candidate.outcome
    if isinstance(error, TooLarge):
        return Ended(Ending.INVALID, str(error))
    if isinstance(error, BrokeOff):
        return Ended(Ending.FAILED, f"{error}; a control job passed, so the candidate pays")
    if met.late is Side.CANDIDATE:
        return Ended(Ending.TIMED_OUT, f"loading and all calls together took more than {wall_s:g} s")
    if met.unloaded:
        return Ended(Ending.FAILED, met.unloaded)
    # Ended while nobody waited for it: the time was the judge's, or nobody's.
    if outcome is None or outcome.ending is ChamberEnding.KILLED:
        return None
    ending = ENDINGS[outcome.ending]
    return Ended(ending, outcome.why or outcome.ending) if ending else None


def scored(parts: Parts, met: Met, fingerprint: Fingerprint, mode: Mode) -> Scored:
    """What the judge made of it."""
    judgement = met.judgement or judgement_of(met)
    if judgement.result is None:
        return Scored(None, judgement.fault, judgement, judge_broke=True)
    verdict = verdict_of(parts, judgement.result, fingerprint, mode)
    if not verdict.valid:
        return Scored(verdict, None, judgement, judge_broke=False)
    if missing := parts.ranking.missing(verdict.metrics):
        return Scored(None, f"metric missing: {missing[0]}", judgement, judge_broke=True)
    return Scored(_as_far_as_told(parts, verdict, met), None, judgement, judge_broke=False)


def _as_far_as_told(parts: Parts, verdict: Verdict, met: Met) -> Verdict:
    """A time that the channel cannot tell from none counts as the least that it can, and never as no solution: being
    fast is no fault. A candidate that makes its own channel worse makes that larger, so it gains nothing.
    """
    drowned = parts.ranking.drowned(verdict.metrics, met.resolution_s)
    if not drowned and not met.at_most:
        return verdict
    metrics = {**verdict.metrics, **dict.fromkeys(drowned, met.resolution_s)}
    at_most = tuple(parts.ranking.times if met.at_most else drowned)
    suspect = tuple(parts.ranking.too_good(metrics))
    return verdict.model_copy(update={"metrics": metrics, "suspect": suspect, "at_most": at_most})


def untold(verdict: Verdict | None, calibration: Calibration | None) -> str | None:
    """Why a verdict is no measure for others: nothing that is faster could be told from it."""
    if verdict is None or calibration is None or not verdict.at_most:
        return None
    name = verdict.at_most[0]
    found = (
        f"{verdict.metrics[name]:.3g} s after {calibration.calls} calls, at a jitter of {calibration.jitter_s:.3g} s"
    )
    mend = "let the judge time more work, or try again when the machine is less busy"
    return f"{name} is below what the channel can tell ({found}); {mend}"


async def run_relay(bench: Workbench, intent: e.TrialIntended, tree: Tree, listener: Listener) -> None:
    """Run and judge at once, and record both. Raises Free when the ending is not the candidate's to pay."""
    trial, mode = intent.trial, intent.purpose.mode
    judging = f"{trial}/judge"
    bench.book.record(intent, e.JudgingIntended(trial=trial, judging=judging))
    met = await relayed(bench, intent.node, mode, tree, listener)
    over = _Over(bench, trial, judging, met, mode)
    if free := freed_by(met):
        over.without_result(free.ending, str(free))
        raise free
    if ended := ended_by(met, bench.task.target(mode).limits.wall):
        over.without_result(ended.ending, ended.reason)
        return
    found = scored(bench, met, over.fingerprint, mode)
    if _is_a_measure_for_others(bench, intent) and (why := untold(found.verdict, met.calibration)):
        found = replace(found, verdict=None, fault=why)
    if found.fault is not None:
        bench.complaints[intent.node] = found.judgement.detail
    if found.judge_broke and _baseline_is_known(bench, intent.node, mode):
        await _check_on_baseline(bench, over)
    await over.with_result(found)


class _Over:
    """What is recorded when a meeting is over; what was booked once is not booked again."""

    def __init__(self, bench: Workbench, trial: str, judging: str, met: Met, mode: Mode) -> None:
        self._bench = bench
        self._met = met
        self.trial, self.judging, self.mode = trial, judging, mode
        outcome = met.candidate.outcome
        self.fingerprint = dict(bench.jobs.fingerprint(outcome.facts, mode)) if outcome else {}
        self._spent, self._judge_spent = met.candidate.spent, met.judge.spent

    @property
    def all_spent(self) -> Spent:
        return self._spent + self._judge_spent

    def book_now(self, then: e.JudgingIntended) -> None:
        """Before more is spent on the same trial."""
        first = e.JudgingEnded(trial=self.trial, judging=self.judging, spent=self.all_spent, interrupted=True)
        self._bench.book.record(first, then)
        self._spent = self._judge_spent = Spent()

    def without_result(self, ending: Ending, reason: str) -> None:
        judged = e.JudgingEnded(
            trial=self.trial,
            judging=self.judging,
            spent=self._judge_spent,
            interrupted=True,
            calibration=self._met.calibration,
        )
        self._bench.book.record(judged, self._trial_ended(ending, reason))

    async def with_result(self, found: Scored) -> None:
        traces = found.judgement.traces
        with self._bench.shelf.storing():
            kept = await offload_disk(self._bench.artifacts.keep_files, traces) if traces else None
            judged = e.JudgingEnded(
                trial=self.trial,
                judging=self.judging,
                verdict=found.verdict,
                fault=found.fault,
                traces=kept.digest if kept else None,
                traces_bytes=kept.bytes if kept else 0,
                spent=self._judge_spent,
                calibration=self._met.calibration,
            )
            self._bench.book.record(self._trial_ended(None, ""), judged)

    def _trial_ended(self, ending: Ending | None, reason: str) -> e.TrialEnded:
        outcome = self._met.candidate.outcome
        return e.TrialEnded(
            trial=self.trial,
            ending=ending,
            reason=reason,
            exit_code=outcome.exit_code if outcome else None,
            log=self._bench.artifacts.put(outcome.log_tail) if outcome and outcome.log_tail else None,
            fingerprint=self.fingerprint,
            spent=self._spent,
        )


def _is_a_measure_for_others(bench: Workbench, intent: e.TrialIntended) -> bool:
    """The baseline's run that opens a campaign or a cohort. Of a bound, what is as fast would be called better."""
    of_baseline = bench.state.nodes[intent.node].role is Role.BASELINE
    return of_baseline and intent.purpose in (Purpose.SUBMIT, Purpose.RERUN)


def _baseline_is_known(bench: Workbench, node: str, mode: Mode) -> bool:
    """Whether there is a baseline that this judge has scored."""
    root = bench.state.nodes[bench.state.run.root]
    if bench.state.nodes[node].role is Role.BASELINE:
        return False
    if mode is Mode.TUNE:
        tuned = tune_trial(bench.state, root, 0)
        return bool(tuned and tuned.verdict)
    return root.verdict is not None


async def _check_on_baseline(bench: Workbench, over: _Over) -> None:
    """Raises Free where the judge does not get on with the baseline either: then it is the judge that is broken."""
    root, judging = bench.state.run.root, f"{over.trial}/control"
    over.book_now(e.JudgingIntended(trial=over.trial, judging=judging, on_baseline=True))
    met = await relayed(bench, root, over.mode, await bench.tree(root))
    spent = met.candidate.spent + met.judge.spent
    free = freed_by(met)
    fault = str(free) if free else _fault_of(bench, met, over)
    bench.book.record(
        e.JudgingEnded(
            trial=over.trial,
            judging=judging,
            on_baseline=True,
            fault=fault,
            spent=spent,
            calibration=met.calibration,
        )
    )
    if fault:
        why = free or Free(Ending.INFRASTRUCTURE, f"the judge breaks on the baseline too: {fault}")
        over.without_result(why.ending, str(why))
        raise why


def _fault_of(bench: Workbench, met: Met, over: _Over) -> str | None:
    if ended := ended_by(met, bench.task.target(over.mode).limits.wall):
        return f"it ended as {ended.ending}"
    found = scored(bench, met, over.fingerprint, over.mode)
    return found.fault if found.judge_broke else None
