"""What events of trials, judges and guards change."""

from typing import Any

from orchestrator.domain import events as e
from orchestrator.domain.folding.base import Handlers, fields_of
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Certification, HeldOut, Purpose, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict


def _trial_intended(state: State, event: e.TrialIntended, at: str) -> None:
    record = Trial(id=event.trial, started_at=at, **fields_of(event, "kind", "trial"))
    state.new("trial", event.trial, record)
    more: dict[str, Any] = {"trials": state.nodes[event.node].trials + 1}
    if event.purpose is Purpose.SUBMIT:
        more["submitted"] = event.trial
    state.set_node(event.node, **more)


def _trial_ended(state: State, event: e.TrialEnded, _: str) -> None:
    state.put("trial", event.trial, ended=True, **fields_of(event, "kind", "trial"))
    trial = state.trials[event.trial]
    state.set_node(trial.node, spent=state.nodes[trial.node].spent + event.spent)


def _judging_intended(state: State, event: e.JudgingIntended, at: str) -> None:
    state.put("trial", event.trial, judging=event.judging, judging_since=at)


def _judging_ended(state: State, event: e.JudgingEnded, _: str) -> None:
    trial = state.trials[event.trial]
    node = state.nodes[trial.node]
    state.set_node(trial.node, spent=node.spent + event.spent)
    if event.on_baseline or event.interrupted:
        state.put("trial", event.trial, judging=None)
        return
    told: dict[str, Any] = {
        "verdict": event.verdict,
        "fault": event.fault,
        "traces": event.traces,
        "calibration": event.calibration,
    }
    told["traces_bytes"] = event.traces_bytes
    state.put("trial", event.trial, judging=None, judged=True, **told)
    if event.verdict:
        _take_verdict(state, state.trials[event.trial], event.verdict)


def _outputs_let_go(state: State, event: e.OutputsLetGo, _: str) -> None:
    for name in event.trials:
        state.put("trial", name, let_go=True)
    now = state.campaign
    state.set_campaign(let_go=now.let_go + len(event.trials), let_go_bytes=now.let_go_bytes + event.bytes)


def _artifacts_over_budget(state: State, event: e.ArtifactsOverBudget, _: str) -> None:
    state.set_campaign(over_budget=event.kept)


def _take_verdict(state: State, trial: Trial, verdict: Verdict) -> None:
    node = state.nodes[trial.node]
    if trial.purpose is Purpose.TUNE:
        state.put("draft", f"{node.id}#{trial.draft}", verdict=verdict)
    elif trial.purpose is Purpose.MINIMISE:
        draft = state.draft(f"{node.id}#{trial.draft}")
        if draft and draft.verdict is None:  # of several runs of what is noisy, the first
            state.put("draft", f"{node.id}#{trial.draft}", verdict=verdict)
    elif trial.purpose is Purpose.REFERENCE:
        subject = state.nodes[trial.subject]
        state.set_node(subject.id, measured=(*subject.measured, trial.id))
    else:
        first = {"verdict": verdict} if trial.purpose is Purpose.SUBMIT else {}
        # The first one of a cohort stands: a re-run that lands there again must not move the bar.
        of_cohort = {verdict.cohort: verdict} if verdict.valid else {}
        state.set_node(node.id, verdicts={**of_cohort, **node.verdicts}, **first)


def _certification_opened(state: State, event: e.CertificationOpened, _: str) -> None:
    test = Certification(since=state.nodes[event.node].trials, **event.model_dump(exclude={"kind", "node"}))
    state.set_node(event.node, certification=test)
    champion = state.nodes[event.champion]
    state.set_node(champion.id, challenged={**champion.challenged, event.cohort: event.against})
    state.set_campaign(tests=event.number)


def _guard_intended(state: State, event: e.GuardIntended, at: str) -> None:
    state.set_node(event.node, guarding=event.guard, guarding_since=at)


def _guard_ended(state: State, event: e.GuardEnded, _: str) -> None:
    node = state.nodes[event.node]
    learnt = {} if event.interrupted else {event.guard: event.passed}
    if draft := state.draft(f"{event.node}#{event.draft}") if event.draft else None:
        state.put("draft", f"{event.node}#{event.draft}", guarded={**draft.guarded, **learnt})
        learnt = {}
    state.set_node(event.node, guarding=None, guarded={**node.guarded, **learnt}, spent=node.spent + event.spent)


def _guard_added(state: State, event: e.GuardAdded, _: str) -> None:
    others = tuple(guard for guard in state.nodes[event.node].guards if guard.name != event.guard.name)
    state.set_node(event.node, guards=(*others, event.guard))
    for name in state.unfinished:
        # One of the same name that passed before was another one.
        if event.guard.name in state.nodes[name].guarded:
            left = {guard: passed for guard, passed in state.nodes[name].guarded.items() if guard != event.guard.name}
            state.put("node", name, guarded=left)


def _held_out_intended(state: State, event: e.HeldOutIntended, at: str) -> None:
    state.set_node(event.node, asking=event.query, asking_since=at)
    state.set_campaign(asked=state.campaign.asked + 1, askable=event.queries)


def _held_out_asked(state: State, event: e.HeldOutAsked, _: str) -> None:
    node = state.nodes[event.node]
    spent = node.spent + event.spent
    if event.interrupted:
        state.set_node(event.node, asking=None, spent=spent)
        return
    answer = HeldOut(**{name: getattr(event, name) for name in HeldOut.model_fields})
    # The first one of a cohort stands, as with verdicts: where the baseline began is what drift is measured from.
    state.set_node(event.node, asking=None, heldout={event.cohort: answer, **node.heldout}, spent=spent)
    run = state.runs[str(run_of(event.node))]
    if event.released is not None:
        state.put("run", str(run.number), ladders={**run.ladders, event.cohort: event.released})


HANDLERS: Handlers = {
    e.TrialIntended: _trial_intended,
    e.TrialEnded: _trial_ended,
    e.JudgingIntended: _judging_intended,
    e.JudgingEnded: _judging_ended,
    e.OutputsLetGo: _outputs_let_go,
    e.ArtifactsOverBudget: _artifacts_over_budget,
    e.CertificationOpened: _certification_opened,
    e.GuardIntended: _guard_intended,
    e.GuardEnded: _guard_ended,
    e.GuardAdded: _guard_added,
    e.HeldOutIntended: _held_out_intended,
    e.HeldOutAsked: _held_out_asked,
}
