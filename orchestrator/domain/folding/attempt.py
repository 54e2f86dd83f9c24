"""What events of attempts and their money change."""

from typing import Any

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.folding.base import Handlers, fields_of
from orchestrator.domain.node import count_key, dropped_key, path_to
from orchestrator.domain.records import EVOLVING, Draft, Node, Phase, Role, Spent
from orchestrator.domain.state import State


def _attempt_opened(state: State, event: e.AttemptOpened, at: str) -> None:
    fields = event.model_dump(exclude={"kind", "node"})
    state.new("node", event.node, Node(id=event.node, opened_at=at, **fields))
    state.index(state.nodes[event.node], new=True)
    now = state.campaign
    role = count_key(event.node, event.role)
    counts = {**now.counts, role: now.counts.get(role, 0) + 1}
    waiting = tuple(number for number in now.waiting if number != event.injection)
    state.set_campaign(counts=counts, branches=max(now.branches, event.branch), waiting=waiting)


def _proposed(state: State, event: e.Proposed, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "draft"})
    state.new("draft", f"{event.node}#{event.draft}", Draft(number=event.draft, **fields))
    told = _made(event)
    made_with = {} if event.playbook is None else {"playbook": event.playbook}
    state.set_node(event.node, drafts=event.draft, **told, **made_with)


def _made(of: e.Proposed | Draft) -> dict[str, Any]:
    return {"operator": of.operator, "description": of.description, "params": of.params, "drawn": of.drawn}


def _offers_counted(state: State, event: e.OffersCounted, _: str) -> None:
    now = state.campaign
    state.set_campaign(
        offered=now.offered + event.offered,
        distinct=now.distinct + event.distinct,
        unfit=now.unfit + event.refused,
        alike=now.alike + event.alike,
    )


def _promotion_asked(state: State, event: e.PromotionAsked, at: str) -> None:
    state.set_node(event.node, promotion_asked=True, promotion_since=at, promotion=None)


def _promotion_answered(state: State, event: e.PromotionAnswered, _: str) -> None:
    state.set_node(event.node, promotion_asked=False, promotion=event.accepted, promotion_why=event.why)


def _minimised(state: State, event: e.Minimised, _: str) -> None:
    state.set_node(event.node, minimal=event.minimal)


def _promoted(state: State, event: e.Promoted, _: str) -> None:
    draft = state.draft(f"{event.node}#{event.draft}")
    told = _made(draft) if draft else {}
    told |= {"finding": draft.finding} if draft and draft.finding else {}
    state.set_node(
        event.node,
        promoted=event.draft,
        commit=event.commit,
        diff=event.diff,
        size=event.size,
        size_bytes=event.size_bytes,
        **told,
    )


def _attempt_ended(state: State, event: e.AttemptEnded, at: str) -> None:
    node = state.nodes[event.node]
    told = fields_of(event, "kind", "node", *(() if event.drawn else ("drawn",)))
    state.set_node(event.node, phase=Phase.ENDED, ended_at=at, **told)
    if event.ending.charged and node.role in ("search", "injected"):
        kept_none = 0 if event.kept else state.campaign.since_improvement + 1
        state.set_campaign(since_improvement=kept_none, free=0, free_usd=0)
    if event.ending is Ending.CANCELLED:
        counts, dropped = state.campaign.counts, dropped_key(event.node, node.role)
        state.set_campaign(counts={**counts, dropped: counts.get(dropped, 0) + 1})


def _attempt_requeued(state: State, event: e.AttemptRequeued, _: str) -> None:
    node = state.nodes[event.node]
    counts = not event.provider and not event.outage
    stalls = node.stalls + (event.ending is Ending.STALLED and counts)
    state.set_node(
        event.node, phase=Phase.QUEUED, stalls=stalls, not_before=event.not_before, ending=event.ending, why=event.why
    )
    if counts:
        _count_refund(state, event.node, event.ending)
    if not event.outage:
        _count_free(state, event)


def _attempt_quarantined(state: State, event: e.AttemptQuarantined, _: str) -> None:
    stalls = state.nodes[event.node].stalls + (event.ending is Ending.STALLED)
    state.set_node(event.node, phase=Phase.QUARANTINED, stalls=stalls, ending=event.ending, why=event.why)
    _count_refund(state, event.node, event.ending)
    _count_free(state, event)


def _count_refund(state: State, node: str, ending: Ending) -> None:
    """An interruption is our own doing, and what is held is not run again: neither can be farmed, so none counts."""
    if ending not in (Ending.INTERRUPTED, Ending.HELD):
        refunds = state.campaign.refunds
        state.set_campaign(refunds={**refunds, node: refunds.get(node, 0) + 1})


def _count_free(state: State, event: e.AttemptRequeued | e.AttemptQuarantined) -> None:
    """However it came about: a campaign must not go on for ever without using up an attempt. A standstill interrupts
    all that run, and counts once.
    """
    now, slept_s = state.campaign, event.slept_s if isinstance(event, e.AttemptRequeued) else 0.0
    stood_still = slept_s > 0 and slept_s != now.slept_s
    counts = stood_still or event.ending not in (Ending.INTERRUPTED, Ending.HELD)
    state.set_campaign(free=now.free + counts, free_usd=now.free_usd + event.lost, slept_s=slept_s or now.slept_s)


def _attempt_released(state: State, event: e.AttemptReleased, _: str) -> None:
    lineage = path_to(event.node)
    refunds = {name: count for name, count in state.campaign.refunds.items() if name not in lineage}
    state.set_campaign(refunds=refunds)
    state.set_node(event.node, phase=Phase.QUEUED, stalls=0, not_before="", ending=None, kept=False, why=event.by)
    _let_go(state, event.node)


def _let_go(state: State, node: str) -> None:
    """A person has looked at what the verifier held; it is not asked about these drafts again."""
    held = [draft for draft in state.drafts(node) if draft.finding == "hold"]
    for draft in held:
        state.put("draft", f"{node}#{draft.number}", finding="released")
    if held:
        state.set_node(node, finding="released")


def _attempt_resumed(state: State, event: e.AttemptResumed, _: str) -> None:
    take = state.nodes[event.node].take + 1
    state.set_node(event.node, phase=Phase.OPEN, take=take, ending=None, why="")


def _booked(state: State, event: e.Settled | e.Refunded, _: str) -> None:
    units = event.spent
    spent = Spent(microdollars=units.get("usd", 0), milliseconds=units.get("seconds", 0), tokens=units.get("tokens", 0))
    if event.node:
        state.set_node(event.node, booked=state.nodes[event.node].booked + spent)
        return
    state.set_campaign(unbooked=state.campaign.unbooked - spent)
    if event.hold.startswith(EVOLVING):
        evolutions = state.campaign.evolutions + 1
        state.set_campaign(evolutions=evolutions, evolved_after=state.count_all(Role.SEARCH))


HANDLERS: Handlers = {
    e.AttemptOpened: _attempt_opened,
    e.Proposed: _proposed,
    e.OffersCounted: _offers_counted,
    e.PromotionAsked: _promotion_asked,
    e.PromotionAnswered: _promotion_answered,
    e.Minimised: _minimised,
    e.Promoted: _promoted,
    e.AttemptEnded: _attempt_ended,
    e.AttemptRequeued: _attempt_requeued,
    e.AttemptQuarantined: _attempt_quarantined,
    e.AttemptReleased: _attempt_released,
    e.AttemptResumed: _attempt_resumed,
    e.Settled: _booked,
    e.Refunded: _booked,
}
