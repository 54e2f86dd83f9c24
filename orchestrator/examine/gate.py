"""`gate`: one untrusted change in, a decision out. The change is judged by a campaign of two nodes that nobody keeps.

Whatever is said here reaches the author of the change: codes and words of our own, never the judge's.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.change import Policy, Refusal, Tree, apply_text, parse
from orchestrator.change.names import check_name
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Guard, Node, Phase, Role, Spent, Trial
from orchestrator.domain.verdict import Mode, Tier, Verdict, better
from orchestrator.door import BrokeOff, NotStarted
from orchestrator.ledger import LedgerError
from orchestrator.loop.book import stamp
from orchestrator.loop.campaign import Campaign
from orchestrator.loop.guards import run_guard
from orchestrator.loop.money import usage
from orchestrator.loop.workbench import BaselineFailed, Free, Workbench
from sandbox import SandboxError


class Decision(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNJUDGED = "could not judge"


class StepState(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"


@dataclass(frozen=True)
class Step:
    """One thing that was asked of the change. `log` is what the candidate printed, raw and its own words."""

    name: str
    state: StepState
    why: str = ""
    seconds: float = 0.0
    log: bytes = b""


@dataclass(frozen=True)
class Changed:
    """A path that the change touches, and the first line there, counted from 1."""

    path: str
    line: int = 1


@dataclass(frozen=True)
class Gated:
    """`why` is one line with the ending; trees are digests. What was not reached is None or empty."""

    decision: Decision
    why: str
    steps: tuple[Step, ...]
    ending: Ending | None = None
    baseline: Verdict | None = None
    candidate: Verdict | None = None
    tree: str | None = None
    fingerprint: Mapping[str, str] = field(default_factory=dict)


class CannotJudge(Exception):
    """Nothing was learnt about the change; the message is one line for a person."""


@contextmanager
def failures_are_no_verdict() -> Iterator[None]:
    """An engine or a ledger that fails says nothing about the change, for or against it."""
    try:
        yield
    except (SandboxError, NotStarted, BrokeOff, Free, LedgerError) as error:
        raise CannotJudge(str(error)) from error


def refused(tree: Tree, text: bytes, policy: Policy) -> Gated | None:
    """The rejection of a change that the policy or the tree does not take; nothing has to run for it."""
    try:
        apply_text(tree, text, policy)
    except Refusal as refusal:
        step = Step("change-applies", StepState.FAILED, str(refusal))
        return Gated(Decision.REJECTED, f"{Ending.INVALID}: the change is refused: {refusal}", (step,), Ending.INVALID)
    return None


def changed_paths(text: bytes, policy: Policy) -> tuple[Changed, ...]:
    """What the change says that it touches; names that could mislead are left out."""
    try:
        edits = parse(text, caps=policy.caps, only=policy.only).edits
    except Refusal:
        return ()
    found = []
    for edit in edits:
        try:
            check_name(edit.path)
        except Refusal:
            continue
        claim = next((hunk.claim for hunk in edit.hunks if hunk.claim is not None), 0)
        found.append(Changed(edit.path, max(0, claim) + 1))
    return tuple(found)


async def judge_change(campaign: Campaign, bench: Workbench, text: str, *, must_improve: bool) -> Gated:
    """Run the campaign with the change as its only injection, then decide. Raises CannotJudge."""
    watch = _Watch()
    bench.book.observers.append(watch.on_event)
    body = json.dumps({"text": text, "description": "the change that the gate was given"})
    try:
        with failures_are_no_verdict():
            bench.book.ledger.ask("inject", body, stamp(bench.book.now()))
            finished = await campaign.run()
    except BaselineFailed as error:
        raise CannotJudge(f"{error}; blastdoor check tells more") from error
    node = next((node for node in bench.state.nodes.values() if node.role is Role.INJECTED), None)
    if node is None or node.phase is not Phase.ENDED or node.ending is None or node.ending is Ending.CANCELLED:
        raise CannotJudge(f"the change was not run to its end: {node.why if node and node.why else finished.reason}")
    with failures_are_no_verdict():
        logs = await _run_guards(bench, node)
    return _decided(bench, bench.state.nodes[node.id], watch, logs, must_improve)


async def _run_guards(bench: Workbench, node: Node) -> dict[str, bytes]:
    """Those that the campaign did not need to run: it asks them only of a champion. Returns what they printed."""
    trial = bench.state.trials.get(node.submitted or "")
    if trial is None or not _is_sound(trial.verdict):
        return {}
    logs = {}
    outputs = bench.artifacts.get_files(trial.outputs) if trial.outputs else {}
    for guard in bench.state.guards_of(node.id):
        if guard.name in node.guarded:
            continue
        bench.book.record(e.GuardIntended(node=node.id, guard=guard.name))
        checked = await run_guard(bench, guard, bench.tree(node.id), outputs)
        ended = {"passed": checked.passed, "reason": checked.reason, "spent": checked.spent}
        bench.book.record(
            e.GuardEnded(node=node.id, guard=guard.name, **ended),
            e.Charged(what=f"guard {guard.name} of {node.id}", spent=usage(checked.spent).as_row()),
        )
        logs[guard.name] = _shown_log(bench, guard, checked.log)
    return logs


def _shown_log(bench: Workbench, guard: Guard, log: bytes) -> bytes:
    """What runs beside the judge may print gold."""
    return b"" if guard.place == "judge" or bench.tier is Tier.SHARED else log


class _Watch:
    """What took how long, and why a guard did not pass, from the events."""

    def __init__(self) -> None:
        self.spent: dict[str, Spent] = {}
        self.guards: dict[str, e.GuardEnded] = {}

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.TrialEnded):
            self.spent[event.trial] = event.spent
        elif isinstance(event, e.JudgingEnded) and not event.on_baseline:
            self.spent[event.judging] = event.spent
        elif isinstance(event, e.GuardEnded):
            self.guards[event.guard] = event

    def seconds(self, name: str) -> float:
        return self.spent.get(name, Spent()).milliseconds / 1000


def _is_sound(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.valid and not verdict.suspect


def _decided(bench: Workbench, node: Node, watch: _Watch, logs: Mapping[str, bytes], must_improve: bool) -> Gated:
    applied = _change_step(bench, node)
    steps = [applied, *_run_steps(bench, node, watch)]
    candidate = bench.state.trials[node.submitted].verdict if node.submitted else None
    baseline = _baseline_of(bench, candidate)
    sound = _is_sound(candidate)
    guards = bench.state.guards_of(node.id)
    steps += [_guard_step(it, watch, logs) if sound else Step(f"guards:{it.name}", StepState.SKIPPED) for it in guards]
    if sound and candidate:
        steps.append(_score_step(bench, candidate, baseline, must_improve))
    else:
        steps.append(Step("score", StepState.SKIPPED))
    failed = next((step for step in steps if step.state in (StepState.FAILED, StepState.BROKEN)), None)
    decision = Decision.ACCEPTED
    if failed:
        decision = Decision.UNJUDGED if failed.state is StepState.BROKEN else Decision.REJECTED
    why = f"{node.ending}: {failed.why if failed else steps[-1].why}"
    trial = bench.state.trials.get(node.submitted or "")
    return Gated(
        decision=decision,
        why=why,
        steps=tuple(steps),
        ending=node.ending,
        baseline=baseline,
        candidate=candidate,
        tree=bench.state.drafts(node.id)[0].tree if node.drafts else None,
        fingerprint=dict(trial.fingerprint) if trial else {},
    )


def _change_step(bench: Workbench, node: Node) -> Step:
    drafts = bench.state.drafts(node.id)
    why = drafts[0].refused if drafts else "nothing was made of it"
    return Step("change-applies", StepState.FAILED if why else StepState.PASSED, why or "")


def _run_steps(bench: Workbench, node: Node, watch: _Watch) -> Iterator[Step]:
    """Trial, then judge."""
    trial = bench.state.trials.get(node.submitted or "")
    if trial is None:
        yield from (Step("trial", StepState.SKIPPED), Step("judge", StepState.SKIPPED))
        return
    # In tier shared the judge's words are in the same log.
    log = bench.artifacts.get(trial.log) if trial.log and bench.tier is not Tier.SHARED else b""
    state = StepState.FAILED if trial.ending else StepState.PASSED
    yield Step("trial", state, _why_ended(trial), watch.seconds(trial.id), log)
    if trial.ending:
        yield Step("judge", StepState.SKIPPED)
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
        return f"the judge can not score it: {fault}"
    if not verdict.valid:
        return "the judge says that it is no solution"
    if verdict.suspect:
        return f"too good to be believed: {', '.join(verdict.suspect)} beyond the ceiling"
    return ""


def _guard_step(guard: Guard, watch: _Watch, logs: Mapping[str, bytes]) -> Step:
    name = f"guards:{guard.name}"
    ended = watch.guards.get(guard.name)
    if ended is None:
        return Step(name, StepState.BROKEN, f"the guard {guard.name} was not run")
    why = "" if ended.passed else f"the guard {guard.name} does not pass: {ended.reason}"
    state = StepState.PASSED if ended.passed else StepState.FAILED
    return Step(name, state, why, ended.spent.milliseconds / 1000, logs.get(guard.name, b""))


def _baseline_of(bench: Workbench, candidate: Verdict | None) -> Verdict | None:
    root = bench.state.nodes[bench.state.run.root]
    return root.verdicts.get(candidate.cohort) if candidate else root.verdict


def _score_step(bench: Workbench, new: Verdict, old: Verdict | None, must_improve: bool) -> Step:
    if old is None or old.mode is not Mode.SUBMIT:
        return Step("score", StepState.BROKEN, "the baseline was not measured on the same terms, so nothing compares")
    first = bench.ranking.metrics[0]
    figures = f"{first.name} {new.metrics[first.name]:.6g}, baseline {old.metrics[first.name]:.6g}"
    if better(new, old, bench.ranking):
        return Step("score", StepState.PASSED, f"better than the baseline ({figures})")
    if better(old, new, bench.ranking):
        return Step("score", StepState.FAILED, f"worse than the baseline ({figures})")
    if must_improve:
        return Step("score", StepState.FAILED, f"no better than the baseline ({figures}), and it must be")
    return Step("score", StepState.PASSED, f"not worse than the baseline ({figures})")
