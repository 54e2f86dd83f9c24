"""Pruning in a campaign: who is watched, among which peers, and what is heard while a trial runs, its heartbeat too.

Watched are the trials that count, of the search and of its control; both by the same rule, each among its own earlier
trials, as if the other were not there. Baseline, tuning, re-runs and changes by hand are never ended early.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.choices import PRUNERS
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import cohort_of
from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Purpose, Role, Trial
from orchestrator.domain.reports import BadReport, Curve, Look, Reports
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict
from orchestrator.loop.heartbeat import Heartbeat
from orchestrator.pruning import Crowd, Peer, Peers, Rule, Watch
from orchestrator.pruning.watch import is_spared
from orchestrator.task import PruningSpec
from sandbox import Report

# Which earlier trials a watched one is compared with. The baseline is what all are compared with, and no peer.
_ARMS = {Role.SEARCH: Role.SEARCH, Role.INJECTED: Role.SEARCH, Role.CONTROL: Role.CONTROL}
_WATCHED = (Role.SEARCH, Role.CONTROL)

Place = tuple[int, str, Role]


@dataclass
class Pruning:
    """The rule, and the curves of trials that are over: by run, cohort and arm; a baseline's by run and cohort."""

    spec: PruningSpec
    rule: Rule
    ranking: Ranking
    state: State
    _crowds: dict[Place, Crowd] = field(default_factory=dict)
    _baselines: dict[tuple[int, str], Peer] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for trial in self.state.trials.values():
            self._learn(trial)

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.TrialEnded | e.JudgingEnded):
            self._learn(self.state.trials[event.trial])

    def watch(self, trial: str, cohort: str) -> Watch | None:
        """None for a trial that is never ended early."""
        record = self.state.trials[trial]
        role = self.state.nodes[record.node].role
        if record.purpose is not Purpose.SUBMIT or role not in _WATCHED:
            return None
        run = run_of(record.node)
        spared = is_spared(self.state.run.seed, trial, self.spec.spare)
        # One that has rungs has no warm-up beside them.
        known = PRUNERS.built_in.get(self.spec.rule)
        warmup = 0 if known and "warmup" not in known.traits else 1
        return Watch(
            self.rule,
            lambda: self._peers((run, cohort, role)),
            warmup=warmup if self.spec.warmup is None else self.spec.warmup,
            every=self.spec.every or 1,
            spared=spared,
        )

    def _peers(self, place: Place) -> Peers:
        """Nobody before the baseline has a verdict there: what another's curve is worth is not known then."""
        baseline = self._baselines.get(place[:2])
        return self._crowd(place).peers(baseline) if baseline else Peers()

    def _crowd(self, place: Place) -> Crowd:
        return self._crowds.setdefault(place, Crowd())

    def _learn(self, trial: Trial) -> None:
        """Only what the judge found valid is one: a curve is a candidate's own word, and measures others."""
        role, verdict, run = self.state.nodes[trial.node].role, trial.verdict, run_of(trial.node)
        is_valid = verdict and verdict.valid and not verdict.suspect
        if role is Role.BASELINE and is_valid and verdict and trial.purpose in (Purpose.SUBMIT, Purpose.RERUN):
            points = trial.reports.points if trial.reports else ()
            self._baselines.setdefault((run, verdict.cohort), Peer(trial.id, points, self._merit(verdict)))
        arm = _ARMS.get(role)
        if arm is None or trial.purpose is not Purpose.SUBMIT or trial.reports is None or trial.id in self._known:
            return
        if trial.ending is Ending.PRUNED:
            cohort = cohort_of(trial.fingerprint, self.ranking.binds)
            self._crowd((run, cohort, arm)).pruned(trial.id, trial.reports.points)
            self._known.add(trial.id)
        elif is_valid and verdict:
            self._crowd((run, verdict.cohort, arm)).scored(trial.id, trial.reports.points, self._merit(verdict))
            self._known.add(trial.id)

    def _merit(self, verdict: Verdict) -> float:
        first = self.ranking.metrics[0]
        return first.merit(verdict.metrics[first.name])


class Hearing:
    """What is heard of one trial: lines go to its log, reports make its curve and are its heartbeat. The rule may have
    enough of it, the heartbeat may stop, or it may tell of more steps than it has: whichever comes first ends it.
    """

    def __init__(
        self,
        line: Callable[[str], None],
        watch: Callable[[Mapping[str, str]], Watch | None] | None = None,
        heartbeat: Heartbeat | None = None,
        steps: int | None = None,
    ) -> None:
        self.line = line
        self._steps = steps
        self._over_steps = False
        self._choose = watch
        self._heartbeat = heartbeat
        self._silent = False
        self._watch: Watch | None = None
        self._curve = Curve()
        self._enough = asyncio.Event()

    @property
    def may_have_enough(self) -> bool:
        """Whether there is anything by which it could end the trial."""
        return self._choose is not None or self._heartbeat is not None or self._steps is not None

    def opened(self, facts: Mapping[str, str]) -> None:
        self._watch = self._choose(facts) if self._choose else None

    def report(self, report: Report) -> None:
        before = self._curve.count
        kept = self._curve.add(report.step, report.value)
        if self._heartbeat and self._curve.count > before:
            self._heartbeat.beat()
        if self._steps is not None and report.step > self._steps:
            self._over_steps = True
            self._enough.set()
        elif kept and self._watch and self._watch.enough(self._curve):
            self._enough.set()

    async def enough(self) -> None:
        if self._heartbeat is None:
            await self._enough.wait()
            return
        waits = [asyncio.create_task(it) for it in (self._enough.wait(), self._heartbeat.stopped())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
        self._silent = not self._enough.is_set()

    @property
    def order(self) -> tuple[Ending, str] | None:
        """What a trial that was told to stop ends as, and why; None for one that was not."""
        if self._over_steps:
            return Ending.TIMED_OUT, f"more than {self._steps:,} steps"
        if self._enough.is_set():
            return Ending.PRUNED, self._watch.look.why if self._watch else ""
        return (Ending.TIMED_OUT, self._heartbeat.words) if self._silent and self._heartbeat else None

    @property
    def look(self) -> Look | None:
        return self._watch.look if self._watch else None

    def reports(self, unreadable: int = 0) -> Reports | None:
        """`unreadable` lines are those that never came here."""
        self._curve.refuse(BadReport.UNREADABLE, unreadable)
        return self._curve.record()
