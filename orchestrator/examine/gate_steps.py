"""What was asked of a change at the gate, step by step, told from the ledger of its campaign."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.domain import events as e
from orchestrator.domain.certify import Stand
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Guard, Node, Purpose, Spent, Trial
from orchestrator.domain.verdict import Aim, Stage, Verdict, better
from orchestrator.loop.certifying import evidence
from orchestrator.loop.workbench import Workbench


class StepState(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


@dataclass(frozen=True)
class Step:
    """One thing that was asked of the change; of one that was skipped, `why` says why. `log` is what the candidate
    printed, raw and its own words.
    """

    name: str
    state: StepState
    why: str = ""
    seconds: float = 0.0
    log: bytes = b""


_STANDS = {
    Stand.PROVEN: "proven better than the baseline",
    Stand.WORSE: "proven worse than the baseline",
    Stand.FUTILE: "neither proven better nor worse than the baseline",
    Stand.OPEN: "not measured often enough",
}


class Watch:
    """What took how long, and what a guard said, from the events; `logs` is what a guard printed."""

    def __init__(self) -> None:
        self.spent: dict[str, Spent] = {}
        self.guards: dict[str, e.GuardEnded] = {}
        self.logs: dict[str, bytes] = {}

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.TrialEnded):
            self.spent[event.trial] = event.spent
        elif isinstance(event, e.JudgingEnded) and not event.on_baseline:
            self.spent[event.judging] = event.spent
        elif isinstance(event, e.GuardEnded) and not event.interrupted:
            self.guards[event.guard] = event

    def seconds(self, *names: str) -> float:
        return sum(self.spent.get(name, Spent()).milliseconds for name in names) / 1000


def is_sound(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.valid and not verdict.suspect


def steps_of(bench: Workbench, node: Node, watch: Watch) -> Iterator[Step]:
    """Every step, in the order in which they are asked."""
    drafts = bench.state.drafts(node.id)
    trial = bench.state.trials.get(node.submitted or "")
    why = drafts[0].refused if drafts else "nothing was made of it"
    if not why and trial is None and node.ending is Ending.INVALID:
        # It was read, but to compare it came to more than a change may cost.
        why = node.why
    yield Step("change-applies", StepState.FAILED if why else StepState.PASSED, why or "")
    yield from _run_steps(bench, trial, watch)
    asked = _Questions(bench, node, trial, watch)
    yield from (asked.step(stage) for stage in (Stage.SCORE, Stage.REPLAY, Stage.REPEATS))
    yield from (asked.guard(guard) for guard in bench.state.guards_of(node.id))
    yield asked.step(Stage.HELD_OUT)


def _run_steps(bench: Workbench, trial: Trial | None, watch: Watch) -> Iterator[Step]:
    """Trial, then judge."""
    if trial is None:
        why = "the change was not applied"
        yield from (Step("trial", StepState.SKIPPED, why), Step("judge", StepState.SKIPPED, why))
        return
    # Beside the gold, the judge's words are in the same log.
    log = bench.artifacts.get(trial.log) if trial.log and bench.tier.terms.hides_gold else b""
    state = StepState.FAILED if trial.ending else StepState.PASSED
    yield Step("trial", state, _why_ended(trial), watch.seconds(trial.id), log)
    if trial.ending:
        yield Step("judge", StepState.SKIPPED, "there is nothing to judge")
        return
    objection = _objection(trial.fault, trial.verdict)
    state = StepState.FAILED if objection else StepState.PASSED
    yield Step("judge", state, objection, watch.seconds(f"{trial.id}/judge"))


def _why_ended(trial: Trial) -> str:
    if trial.ending is None:
        return ""
    if trial.reason in ("", trial.ending):
        return f"exit code {trial.exit_code}" if trial.exit_code is not None else str(trial.ending)
    return trial.reason


def _objection(fault: str | None, verdict: Verdict | None) -> str:
    if fault is not None or verdict is None:
        return f"the judge cannot score it: {fault}"
    if not verdict.valid:
        return "the judge says that it is no solution"
    if verdict.suspect:
        return f"too good to be believed: {', '.join(verdict.suspect)} beyond the ceiling"
    return ""


class _Questions:
    """What became of each question that decides whether a sound candidate is kept."""

    def __init__(self, bench: Workbench, node: Node, trial: Trial | None, watch: Watch) -> None:
        self._bench = bench
        self._node = node
        self._trial = trial
        self._watch = watch
        self._must_improve = bench.aim is Aim.BETTER

    def step(self, stage: Stage) -> Step:
        if why := self._skipped(stage):
            return Step(stage, StepState.SKIPPED, why)
        say = {Stage.SCORE: self._score, Stage.REPLAY: self._replay, Stage.REPEATS: self._repeats}
        why = say.get(stage, self._held_out)()
        if self._node.kept or stage is not self._node.stage:
            return Step(stage, StepState.PASSED, why, self._seconds(stage))
        state = StepState.BROKEN if self._node.undecided else StepState.FAILED
        return Step(stage, state, self._node.why if self._node.undecided else why, self._seconds(stage))

    def guard(self, guard: Guard) -> Step:
        """All of them are run, also where the campaign had no need to."""
        name, ended = f"guards:{guard.name}", self._watch.guards.get(guard.name)
        if not is_sound(self._trial.verdict if self._trial else None):
            return Step(name, StepState.SKIPPED, "there is no sound result to guard")
        if ended is None:
            return Step(name, StepState.BROKEN, f"the guard {guard.name} was not run")
        why = "" if ended.passed else f"the guard {guard.name} does not pass: {ended.reason}"
        state = StepState.PASSED if ended.passed else StepState.FAILED
        seconds, log = ended.spent.milliseconds / 1000, self._watch.logs.get(guard.name, b"")
        return Step(name, state, why, seconds, log)

    def _skipped(self, stage: Stage) -> str:
        """Why a question was not asked; nothing where it was."""
        certify, last, order = self._bench.certify, self._node.stage, list(Stage)
        if stage is Stage.REPLAY and certify.noisy:
            return 'certify.rule is "noisy": the repeats decide'
        if stage is Stage.REPLAY and not certify.replay:
            return "certify.replay is off"
        if stage is Stage.REPEATS and not certify.noisy:
            return 'certify.rule is "strict": the replay decides'
        if stage is Stage.HELD_OUT and self._bench.task.heldout is None:
            return "the task has no held-out split"
        if last is None or not is_sound(self._trial.verdict if self._trial else None):
            return "there is no sound result to compare"
        if not self._node.kept and order.index(stage) > order.index(last):
            return f"not asked, since {last} did not pass"
        return ""

    def _seconds(self, stage: Stage) -> float:
        """Of the held-out split none: how long it takes there could spell out what it saw."""
        of_stage = {Stage.REPLAY: (Purpose.REPLAY,), Stage.REPEATS: (Purpose.REPEAT, Purpose.REFERENCE)}
        mine = [it for it in self._bench.state.trials.values() if it.purpose in of_stage.get(stage, ())]
        return self._watch.seconds(*(name for it in mine for name in (it.id, f"{it.id}/judge")))

    def _score(self) -> str:
        new, old = self._trial.verdict if self._trial else None, self._baseline()
        if new is None or old is None:
            return "the baseline was not measured on the same terms, so nothing compares"
        if self._bench.certify.noisy:
            return self._screened(new)
        figures = self._figures(new.metrics, old.metrics)
        if better(new, old, self._bench.ranking):
            return f"better than the baseline ({figures})"
        if better(old, new, self._bench.ranking):
            return f"worse than the baseline ({figures})"
        if self._must_improve:
            return f"no better than the baseline ({figures}), and it must be"
        return f"not worse than the baseline ({figures})"

    def _screened(self, new: Verdict) -> str:
        """Only what must improve is screened, by the median of the baseline."""
        baseline = headline(self._bench.state, self._root, new.cohort)
        figures = self._figures(new.metrics, baseline.metrics if baseline else {})
        if not self._must_improve:
            return f"its first run, which decides nothing: the repeats do ({figures})"
        if self._node.stage is Stage.SCORE and not self._node.kept:
            return f"its first run is no better than the median of the baseline ({figures}), and it must be"
        return f"its first run is better than the median of the baseline; the repeats decide ({figures})"

    def _replay(self) -> str:
        if self._node.stage is Stage.REPLAY and not self._node.kept:
            return self._node.why
        again = [it.verdict for it in self._trials(Purpose.REPLAY) if it.verdict]
        first = self._bench.ranking.metrics[0].name
        return f"it stands when it is run again ({first} {again[-1].metrics[first]:.6g})" if again else ""

    def _repeats(self) -> str:
        found = evidence(self._bench.state, self._node, self._bench.ranking)
        mine, theirs = (headline(self._bench.state, it) for it in (self._node, self._root))
        if found is None or mine is None or theirs is None:
            return self._node.why
        first = self._bench.ranking.metrics[0].name
        medians = f"{first} {mine.metrics[first]:.6g}, baseline {theirs.metrics[first]:.6g} at the median"
        return f"{_STANDS[found.stand]} ({medians}; {found.words})"

    def _held_out(self) -> str:
        spec = self._bench.task.heldout
        if spec is not None and not spec.gate and not self._node.heldout:
            return "not asked, since heldout.queries are used up; it decides nothing: heldout.gate is off"
        if spec is not None and not spec.gate:
            return "asked, and only recorded: heldout.gate is off"
        passed = self._node.kept or self._node.stage is not Stage.HELD_OUT
        if self._must_improve:
            return f"{'' if passed else 'not '}better on the held-out split"
        return f"{'not ' if passed else ''}worse on the held-out split"

    @property
    def _root(self) -> Node:
        return self._bench.state.nodes[self._bench.state.run.root]

    def _baseline(self) -> Verdict | None:
        verdict = self._trial.verdict if self._trial else None
        return self._root.verdicts.get(verdict.cohort) if verdict else None

    def _trials(self, purpose: Purpose) -> Iterator[Trial]:
        return (it for it in self._bench.state.trials_of(self._node.id) if it.purpose is purpose)

    def _figures(self, new: Mapping[str, float], old: Mapping[str, float]) -> str:
        first = self._bench.ranking.metrics[0].name
        return f"{first} {new[first]:.6g}, baseline {old[first]:.6g}" if first in old else f"{first} {new[first]:.6g}"
