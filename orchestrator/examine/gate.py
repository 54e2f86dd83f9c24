"""`gate`: one untrusted change in, a decision out. The change is judged by a campaign of two nodes, and the campaign
decides: a change is accepted exactly where its node is kept.

Whatever is said here reaches the author of the change: codes and words of our own, never the judge's.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.change import Policy, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.forms import parse
from orchestrator.change.names import check_name
from orchestrator.domain import events as e
from orchestrator.domain.certify import CertifyRule
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Node, Phase, Purpose, Role
from orchestrator.domain.verdict import Verdict
from orchestrator.door import BrokeOff, NotStarted
from orchestrator.examine.gate_steps import Step, StepState, Watch, is_sound, steps_of
from orchestrator.ledger import LedgerError
from orchestrator.loop.campaign import Campaign
from orchestrator.loop.guards import check_guard
from orchestrator.loop.money import usage
from orchestrator.loop.workbench import BaselineFailed, Free, Workbench
from orchestrator.units import stamp
from sandbox import SandboxError

# A stage of somebody's pipeline does not wait for a provider as long as a campaign does.
PATIENCE_S = 120.0


class Decision(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNJUDGED = "could not judge"


@dataclass(frozen=True)
class Changed:
    """A path that the change touches, and the first line there, counted from 1."""

    path: str
    line: int = 1


@dataclass(frozen=True)
class Gated:
    """`why` is one line with the ending; trees are digests. What was not reached is None or empty.

    Of a noisy task, `baseline` and `candidate` have the medians of `runs` repeats each, where there are any.
    """

    decision: Decision
    why: str
    steps: tuple[Step, ...]
    ending: Ending | None = None
    rule: CertifyRule | None = None
    baseline: Verdict | None = None
    candidate: Verdict | None = None
    replay: Verdict | None = None
    runs: int = 0
    tree: str | None = None
    fingerprint: Mapping[str, str] = field(default_factory=dict)


class CannotJudge(Exception):
    """Nothing was learnt about the change; the message is one line for a person."""


@contextmanager
def failures_are_no_verdict(*, decided: bool = False) -> Iterator[None]:
    """An engine or a ledger that fails says nothing about the change, for or against it; nor does it take back what was
    `decided` before.
    """
    try:
        yield
    except (SandboxError, NotStarted, BrokeOff, Free, LedgerError) as error:
        if not decided:
            raise CannotJudge(str(error)) from error


def refused(tree: Tree, text: bytes, policy: Policy) -> Gated | None:
    """The rejection of a change that the policy or the tree does not take; nothing has to run for it."""
    try:
        apply_text(tree, text, policy, exact=True)
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


async def judge_change(campaign: Campaign, bench: Workbench, text: str) -> Gated:
    """Run the campaign with the change as its only injection, then say what it decided. Raises CannotJudge."""
    watch = Watch()
    campaign.patience_s = PATIENCE_S
    # A guard may still ask for the outputs of what was not kept.
    bench.shelf.keep_all()
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
    with failures_are_no_verdict(decided=not node.kept and not node.undecided):
        await _run_guards(bench, node, watch)
        await bench.book.durable()
    return _decided(bench, bench.state.nodes[node.id], watch)


async def _run_guards(bench: Workbench, node: Node, watch: Watch) -> None:
    """Those that the campaign did not need to run: it asks them only of what it would keep."""
    trial = bench.state.trials.get(node.submitted or "")
    if trial is None or not is_sound(trial.verdict):
        return
    for guard in bench.state.guards_of(node.id):
        if guard.name in node.guarded:
            continue
        checked = await check_guard(bench, node.id, guard)
        bench.book.record(e.Charged(what=f"guard {guard.name} of {node.id}", spent=usage(checked.spent).as_row()))
        # What runs beside the judge may print gold.
        hidden = guard.place == "judge" or not bench.tier.terms.hides_gold
        watch.logs[guard.name] = b"" if hidden else checked.log


def _decided(bench: Workbench, node: Node, watch: Watch) -> Gated:
    steps = tuple(steps_of(bench, node, watch))
    decision = decision_of(node, steps)
    if decision is Decision.REJECTED and not any(step.state is StepState.FAILED for step in steps):
        # A reader of JUnit or SARIF sees steps alone: no rejection is without one that failed.
        steps += (Step("gate", StepState.FAILED, node.why),)
    trial = bench.state.trials.get(node.submitted or "")
    candidate = trial.verdict if trial else None
    replays = [it for it in bench.state.trials_of(node.id) if it.purpose is Purpose.REPLAY]
    root = bench.state.nodes[bench.state.run.root]
    baseline = root.verdicts.get(candidate.cohort) if candidate else root.verdict
    mine, theirs = (headline(bench.state, it, candidate.cohort if candidate else None) for it in (node, root))
    return Gated(
        decision=decision,
        why=_why(node, steps),
        steps=steps,
        ending=node.ending,
        rule=bench.certify.rule,
        baseline=baseline and baseline.model_copy(update={"metrics": theirs.metrics} if theirs else {}),
        candidate=candidate and candidate.model_copy(update={"metrics": mine.metrics} if mine else {}),
        replay=replays[-1].verdict if replays else None,
        runs=mine.runs if mine else 0,
        tree=bench.state.drafts(node.id)[0].tree if node.drafts else None,
        fingerprint=dict(trial.fingerprint) if trial else {},
    )


def decision_of(node: Node, steps: Sequence[Step]) -> Decision:
    """A guard that fails is the change's own doing, also where nothing could be compared."""
    if node.kept:
        return Decision.ACCEPTED
    at_fault = any(step.state is StepState.FAILED for step in steps)
    return Decision.REJECTED if at_fault or not node.undecided else Decision.UNJUDGED


def _why(node: Node, steps: Sequence[Step]) -> str:
    """Why it is not accepted, or what speaks for it: the last word on its score."""
    bad = [step for state in (StepState.FAILED, StepState.BROKEN) for step in steps if step.state is state]
    said = {step.name: step.why for step in steps if step.state is StepState.PASSED and step.why}
    good = said.get("repeats") or said.get("score") or node.why
    return f"{node.ending}: {bad[0].why if bad and not node.kept else good}"
