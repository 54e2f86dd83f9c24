"""What each kind of event changes. Nothing here looks at anything but the event and the records that it names."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import count_key, dropped_key, path_to, run_of
from orchestrator.domain.records import (
    EVOLVING,
    Asked,
    Campaign,
    Certification,
    Draft,
    HeldOut,
    Injection,
    Node,
    OpenCall,
    Phase,
    PlaybookVersion,
    Purpose,
    Role,
    Round,
    Run,
    Spent,
    Trial,
)
from orchestrator.domain.verdict import Verdict

if TYPE_CHECKING:
    from orchestrator.domain.state import State


def _campaign_opened(state: "State", event: e.CampaignOpened, at: str) -> None:
    record = Campaign(id=event.campaign, name=event.name, version=event.version, last_at=at)
    state.new("campaign", "campaign", record)


def _run_started(state: "State", event: e.RunStarted, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "run"})
    state.new("run", str(event.run), Run(number=event.run, root=str(event.run), **fields))
    state.set_campaign(run=event.run, since_improvement=0, stopped="")
    state.branches.clear()


def _limits_set(state: "State", event: e.LimitsSet, _: str) -> None:
    if state.runs:
        state.put("run", str(state.campaign.run), options=event.options)


def _session_started(state: "State", event: e.SessionStarted, at: str) -> None:
    state.set_campaign(epoch=event.epoch, session_open=True, last_at=at, stopped="", paused=False, pause_why="")


def _session_ended(state: "State", _: e.SessionEnded, __: str) -> None:
    state.set_campaign(session_open=False)


def _attempt_opened(state: "State", event: e.AttemptOpened, at: str) -> None:
    fields = event.model_dump(exclude={"kind", "node"})
    state.new("node", event.node, Node(id=event.node, opened_at=at, **fields))
    state.index(state.nodes[event.node], new=True)
    now = state.campaign
    role = count_key(event.node, event.role)
    counts = {**now.counts, role: now.counts.get(role, 0) + 1}
    waiting = tuple(number for number in now.waiting if number != event.injection)
    state.set_campaign(counts=counts, branches=max(now.branches, event.branch), waiting=waiting)


def _injection_queued(state: "State", event: e.InjectionQueued, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "injection"})
    state.new("injection", str(event.injection), Injection(id=event.injection, **fields))
    state.set_campaign(waiting=(*state.campaign.waiting, event.injection))


def _proposed(state: "State", event: e.Proposed, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "draft"})
    state.new("draft", f"{event.node}#{event.draft}", Draft(number=event.draft, **fields))
    told: dict[str, Any] = {"operator": event.operator, "description": event.description, "params": event.params}
    made_with = {} if event.playbook is None else {"playbook": event.playbook}
    state.set_node(event.node, drafts=event.draft, **told, **made_with)


def _offers_counted(state: "State", event: e.OffersCounted, _: str) -> None:
    now = state.campaign
    state.set_campaign(
        offered=now.offered + event.offered, distinct=now.distinct + event.distinct, unfit=now.unfit + event.refused
    )


def _model_call_intended(state: "State", event: e.ModelCallIntended, _: str) -> None:
    call = OpenCall(node=event.node, role=event.role, model=event.model, worst=event.worst)
    state.new("call", event.call, call)
    state.set_campaign(calls=state.campaign.calls + 1)


def _model_call_ended(state: "State", event: e.ModelCallEnded, _: str) -> None:
    state.drop("call", event.call)
    _count_call(state, event)
    if not event.node:
        state.set_campaign(unbooked=state.campaign.unbooked + event.spent)
    else:
        node = state.nodes[event.node]
        paid = {**node.paid, event.role: node.paid.get(event.role, 0) + event.spent.microdollars}
        state.set_node(event.node, spent=node.spent + event.spent, tokens=node.tokens + event.tokens, paid=paid)


def _count_call(state: "State", event: e.ModelCallEnded) -> None:
    known, key = state.campaign.asked_models, f"{event.role} {event.model}"
    old = known.get(key, Asked())
    now = Asked(calls=old.calls + 1, spent=old.spent + event.spent, tokens=old.tokens + event.tokens)
    state.set_campaign(asked_models={**known, key: now})


def _agent_intended(state: "State", event: e.AgentIntended, at: str) -> None:
    state.set_node(event.node, agent=event.agent, agent_since=at)


def _agent_ended(state: "State", event: e.AgentEnded, _: str) -> None:
    state.set_node(event.node, agent=None, spent=state.nodes[event.node].spent + event.spent)


def _reviewed(state: "State", event: e.Reviewed, _: str) -> None:
    state.put("draft", f"{event.node}#{event.draft}", finding=event.finding, reasons=event.reasons)
    found = [draft.finding for draft in state.drafts(event.node) if draft.finding]
    state.set_node(event.node, finding=max(found, key=_FINDINGS.index))


def _steered(state: "State", event: e.Steered, _: str) -> None:
    state.set_campaign(steering=(*state.campaign.steering, event.text))


def _round_started(state: "State", event: e.RoundStarted, at: str) -> None:
    opened, paid = state.count(Role.SEARCH), state.count_paid(Role.SEARCH)
    state.set_campaign(round=Round(opened=opened, paid=paid, at=at, **_fields(event, "kind")))


def _playbook_changed(state: "State", event: e.PlaybookChanged, at: str) -> None:
    fields = _fields(event, "kind", "version", "used")
    state.new("playbook", str(event.version), PlaybookVersion(number=event.version, at=at, **fields))
    if event.used:
        _use_playbook(state, event.version, event.by)
    else:
        state.set_campaign(challenger=event.version, challengers=state.campaign.challengers + 1)


def _playbook_given(state: "State", event: e.PlaybookGiven, _: str) -> None:
    state.set_node(event.node, playbook=event.version)
    if event.challenger is not None:
        given = state.playbooks[event.challenger].given
        state.put("playbook", str(event.challenger), given=(*given, event.node))


def _playbook_used(state: "State", event: e.PlaybookUsed, _: str) -> None:
    if event.version == state.campaign.challenger:
        state.put("playbook", str(event.version), fate=f"used: {event.why}")
        state.set_campaign(challenger=None)
    _use_playbook(state, event.version, event.by)


def _playbook_discarded(state: "State", event: e.PlaybookDiscarded, _: str) -> None:
    state.put("playbook", str(event.version), fate=f"not used: {event.why}")
    state.set_campaign(challenger=None)


def _use_playbook(state: "State", version: int, by: str) -> None:
    """What was being tried was tried beside the version of before: there is nothing left to compare it with."""
    if (challenger := state.campaign.challenger) is not None:
        fate = f"not used: set aside for version {version}, by {by}"
        state.put("playbook", str(challenger), fate=fate)
    state.set_campaign(playbook=version, challenger=None)


def _promotion_asked(state: "State", event: e.PromotionAsked, at: str) -> None:
    state.set_node(event.node, promotion_asked=True, promotion_since=at, promotion=None)


def _promotion_answered(state: "State", event: e.PromotionAnswered, _: str) -> None:
    state.set_node(event.node, promotion_asked=False, promotion=event.accepted, promotion_why=event.why)


def _promoted(state: "State", event: e.Promoted, _: str) -> None:
    draft = state.draft(f"{event.node}#{event.draft}")
    told: dict[str, Any] = {}
    if draft:
        told = {"operator": draft.operator, "description": draft.description, "params": draft.params}
    told |= {"finding": draft.finding} if draft and draft.finding else {}
    state.set_node(event.node, promoted=event.draft, commit=event.commit, diff=event.diff, size=event.size, **told)


def _trial_intended(state: "State", event: e.TrialIntended, at: str) -> None:
    record = Trial(id=event.trial, node=event.node, purpose=event.purpose, draft=event.draft, started_at=at)
    state.new("trial", event.trial, record)
    more: dict[str, Any] = {"trials": state.nodes[event.node].trials + 1}
    if event.purpose is Purpose.SUBMIT:
        more["submitted"] = event.trial
    state.set_node(event.node, **more)


def _trial_ended(state: "State", event: e.TrialEnded, _: str) -> None:
    state.put("trial", event.trial, ended=True, **_fields(event, "kind", "trial"))
    trial = state.trials[event.trial]
    state.set_node(trial.node, spent=state.nodes[trial.node].spent + event.spent)


def _judging_intended(state: "State", event: e.JudgingIntended, at: str) -> None:
    state.put("trial", event.trial, judging=event.judging, judging_since=at)


def _judging_ended(state: "State", event: e.JudgingEnded, _: str) -> None:
    trial = state.trials[event.trial]
    node = state.nodes[trial.node]
    state.set_node(trial.node, spent=node.spent + event.spent)
    if event.on_baseline or event.interrupted:
        state.put("trial", event.trial, judging=None)
        return
    told = {"verdict": event.verdict, "fault": event.fault, "traces": event.traces, "calibration": event.calibration}
    state.put("trial", event.trial, judging=None, judged=True, **told)
    if event.verdict:
        _take_verdict(state, state.trials[event.trial], event.verdict)


def _take_verdict(state: "State", trial: Trial, verdict: Verdict) -> None:
    node = state.nodes[trial.node]
    if trial.purpose is Purpose.TUNE:
        state.put("draft", f"{node.id}#{trial.draft}", verdict=verdict)
    else:
        first = {"verdict": verdict} if trial.purpose is Purpose.SUBMIT else {}
        # The first one of a cohort stands: a re-run that lands there again must not move the bar.
        of_cohort = {verdict.cohort: verdict} if verdict.valid else {}
        state.set_node(node.id, verdicts={**of_cohort, **node.verdicts}, **first)


def _certification_opened(state: "State", event: e.CertificationOpened, _: str) -> None:
    test = Certification(since=state.nodes[event.node].trials, **event.model_dump(exclude={"kind", "node"}))
    state.set_node(event.node, certification=test)
    champion = state.nodes[event.champion]
    state.set_node(champion.id, challenged={**champion.challenged, event.cohort: event.against})
    state.set_campaign(tests=event.number)


def _guard_intended(state: "State", event: e.GuardIntended, at: str) -> None:
    state.set_node(event.node, guarding=event.guard, guarding_since=at)


def _guard_ended(state: "State", event: e.GuardEnded, _: str) -> None:
    node = state.nodes[event.node]
    learnt = {} if event.interrupted else {event.guard: event.passed}
    state.set_node(event.node, guarding=None, guarded={**node.guarded, **learnt}, spent=node.spent + event.spent)


def _guard_added(state: "State", event: e.GuardAdded, _: str) -> None:
    others = tuple(guard for guard in state.nodes[event.node].guards if guard.name != event.guard.name)
    state.set_node(event.node, guards=(*others, event.guard))
    for name in state.unfinished:
        # One of the same name that passed before was another one.
        if event.guard.name in state.nodes[name].guarded:
            left = {guard: passed for guard, passed in state.nodes[name].guarded.items() if guard != event.guard.name}
            state.put("node", name, guarded=left)


def _held_out_intended(state: "State", event: e.HeldOutIntended, at: str) -> None:
    state.set_node(event.node, asking=event.query, asking_since=at)
    state.set_campaign(asked=state.campaign.asked + 1, askable=event.queries)


def _held_out_asked(state: "State", event: e.HeldOutAsked, _: str) -> None:
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


def _attempt_ended(state: "State", event: e.AttemptEnded, at: str) -> None:
    node = state.nodes[event.node]
    told = _fields(event, "kind", "node")
    state.set_node(event.node, phase=Phase.ENDED, ended_at=at, **told)
    if event.ending.charged and node.role in ("search", "injected"):
        kept_none = 0 if event.kept else state.campaign.since_improvement + 1
        state.set_campaign(since_improvement=kept_none)
    if event.ending is Ending.CANCELLED:
        counts, dropped = state.campaign.counts, dropped_key(event.node, node.role)
        state.set_campaign(counts={**counts, dropped: counts.get(dropped, 0) + 1})


def _attempt_requeued(state: "State", event: e.AttemptRequeued, _: str) -> None:
    node = state.nodes[event.node]
    stalls = node.stalls + (event.ending is Ending.STALLED)
    state.set_node(
        event.node, phase=Phase.QUEUED, stalls=stalls, not_before=event.not_before, ending=event.ending, why=event.why
    )
    _count_refund(state, event.node, event.ending)


def _attempt_quarantined(state: "State", event: e.AttemptQuarantined, _: str) -> None:
    stalls = state.nodes[event.node].stalls + (event.ending is Ending.STALLED)
    state.set_node(event.node, phase=Phase.QUARANTINED, stalls=stalls, ending=event.ending, why=event.why)
    _count_refund(state, event.node, event.ending)


def _count_refund(state: "State", node: str, ending: Ending) -> None:
    """An interruption is our own doing, and what is held is not run again: neither can be farmed, so none counts."""
    if ending not in (Ending.INTERRUPTED, Ending.HELD):
        refunds = state.campaign.refunds
        state.set_campaign(refunds={**refunds, node: refunds.get(node, 0) + 1})


def _attempt_released(state: "State", event: e.AttemptReleased, _: str) -> None:
    lineage = path_to(event.node)
    refunds = {name: count for name, count in state.campaign.refunds.items() if name not in lineage}
    state.set_campaign(refunds=refunds)
    state.set_node(event.node, phase=Phase.QUEUED, stalls=0, not_before="", ending=None, kept=False, why=event.by)
    _let_go(state, event.node)


def _let_go(state: "State", node: str) -> None:
    """A person has looked at what the verifier held; it is not asked about these drafts again."""
    held = [draft for draft in state.drafts(node) if draft.finding == "hold"]
    for draft in held:
        state.put("draft", f"{node}#{draft.number}", finding="released")
    if held:
        state.set_node(node, finding="released")


def _attempt_resumed(state: "State", event: e.AttemptResumed, _: str) -> None:
    take = state.nodes[event.node].take + 1
    state.set_node(event.node, phase=Phase.OPEN, take=take, ending=None, why="")


def _booked(state: "State", event: e.Settled | e.Refunded, _: str) -> None:
    units = event.spent
    spent = Spent(microdollars=units.get("usd", 0), milliseconds=units.get("seconds", 0), tokens=units.get("tokens", 0))
    if event.node:
        state.set_node(event.node, booked=state.nodes[event.node].booked + spent)
        return
    state.set_campaign(unbooked=state.campaign.unbooked - spent)
    if event.hold.startswith(EVOLVING):
        evolutions = state.campaign.evolutions + 1
        state.set_campaign(evolutions=evolutions, evolved_after=state.count_all(Role.SEARCH))


def _cohort_opened(state: "State", event: e.CohortOpened, _: str) -> None:
    state.put("run", str(event.run), cohort=event.cohort)


def _champion_changed(state: "State", event: e.ChampionChanged, _: str) -> None:
    run = state.runs[str(event.run)]
    champions = {**run.champions, event.cohort: event.node}
    state.put("run", str(event.run), champions=champions, cohort=event.cohort)
    number = state.campaign.references + 1
    state.set_node(event.node, references={**state.nodes[event.node].references, event.cohort: number})
    state.set_campaign(references=number)


def _request_taken(state: "State", event: e.RequestTaken, _: str) -> None:
    state.set_campaign(request=event.request)


def _pause_set(state: "State", event: e.PauseSet, _: str) -> None:
    state.set_campaign(paused=event.paused, pause_why=event.why)


def _campaign_stopped(state: "State", event: e.CampaignStopped, _: str) -> None:
    state.set_campaign(stopped=event.reason)


def _fields(event: BaseModel, *without: str) -> dict[str, Any]:
    return {name: getattr(event, name) for name in type(event).model_fields if name not in without}


# From the best to the worst.
_FINDINGS = ("pass", "unreviewed", "released", "flag", "hold")

HANDLERS: dict[type[BaseModel], Callable[["State", Any, str], None]] = {
    e.CampaignOpened: _campaign_opened,
    e.RunStarted: _run_started,
    e.LimitsSet: _limits_set,
    e.SessionStarted: _session_started,
    e.SessionEnded: _session_ended,
    e.AttemptOpened: _attempt_opened,
    e.InjectionQueued: _injection_queued,
    e.Proposed: _proposed,
    e.OffersCounted: _offers_counted,
    e.ModelCallIntended: _model_call_intended,
    e.ModelCallEnded: _model_call_ended,
    e.AgentIntended: _agent_intended,
    e.AgentEnded: _agent_ended,
    e.Reviewed: _reviewed,
    e.Steered: _steered,
    e.RoundStarted: _round_started,
    e.PlaybookChanged: _playbook_changed,
    e.PlaybookGiven: _playbook_given,
    e.PlaybookUsed: _playbook_used,
    e.PlaybookDiscarded: _playbook_discarded,
    e.PromotionAsked: _promotion_asked,
    e.PromotionAnswered: _promotion_answered,
    e.Promoted: _promoted,
    e.TrialIntended: _trial_intended,
    e.TrialEnded: _trial_ended,
    e.JudgingIntended: _judging_intended,
    e.JudgingEnded: _judging_ended,
    e.CertificationOpened: _certification_opened,
    e.GuardIntended: _guard_intended,
    e.GuardEnded: _guard_ended,
    e.GuardAdded: _guard_added,
    e.HeldOutIntended: _held_out_intended,
    e.HeldOutAsked: _held_out_asked,
    e.AttemptEnded: _attempt_ended,
    e.AttemptRequeued: _attempt_requeued,
    e.AttemptQuarantined: _attempt_quarantined,
    e.AttemptReleased: _attempt_released,
    e.AttemptResumed: _attempt_resumed,
    e.Settled: _booked,
    e.Refunded: _booked,
    e.CohortOpened: _cohort_opened,
    e.ChampionChanged: _champion_changed,
    e.RequestTaken: _request_taken,
    e.PauseSet: _pause_set,
    e.CampaignStopped: _campaign_stopped,
}
