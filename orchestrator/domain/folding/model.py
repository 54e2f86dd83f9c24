"""What events of models, agents and playbooks change."""

from orchestrator.domain import events as e
from orchestrator.domain.folding.base import Handlers, fields_of
from orchestrator.domain.records import Asked, OpenCall, PlaybookVersion
from orchestrator.domain.state import State

# From the best to the worst.
_FINDINGS = ("pass", "unreviewed", "released", "flag", "hold")


def _model_call_intended(state: State, event: e.ModelCallIntended, _: str) -> None:
    call = OpenCall(node=event.node, role=event.role, model=event.model, worst=event.worst)
    state.new("call", event.call, call)
    state.set_campaign(calls=state.campaign.calls + 1)


def _model_call_ended(state: State, event: e.ModelCallEnded, _: str) -> None:
    state.drop("call", event.call)
    _count_call(state, event)
    if not event.node:
        state.set_campaign(unbooked=state.campaign.unbooked + event.spent)
    else:
        node = state.nodes[event.node]
        paid = {**node.paid, event.role: node.paid.get(event.role, 0) + event.spent.microdollars}
        state.set_node(event.node, spent=node.spent + event.spent, tokens=node.tokens + event.tokens, paid=paid)


def _count_call(state: State, event: e.ModelCallEnded) -> None:
    known, key = state.campaign.asked_models, f"{event.role} {event.model}"
    old = known.get(key, Asked())
    now = Asked(calls=old.calls + 1, spent=old.spent + event.spent, tokens=old.tokens + event.tokens)
    state.set_campaign(asked_models={**known, key: now})


def _agent_intended(state: State, event: e.AgentIntended, at: str) -> None:
    state.set_node(event.node, agent=event.agent, agent_since=at)


def _agent_ended(state: State, event: e.AgentEnded, _: str) -> None:
    node = state.nodes[event.node]
    log = node.agent_log if event.interrupted else event.log
    state.set_node(event.node, agent=None, agent_log=log, spent=node.spent + event.spent)


def _reviewed(state: State, event: e.Reviewed, _: str) -> None:
    state.put("draft", f"{event.node}#{event.draft}", finding=event.finding, reasons=event.reasons)
    found = [draft.finding for draft in state.drafts(event.node) if draft.finding]
    state.set_node(event.node, finding=max(found, key=_FINDINGS.index))


def _playbook_changed(state: State, event: e.PlaybookChanged, at: str) -> None:
    fields = fields_of(event, "kind", "version", "used")
    state.new("playbook", str(event.version), PlaybookVersion(number=event.version, at=at, **fields))
    if event.used:
        _use_playbook(state, event.version, event.by)
    else:
        state.set_campaign(challenger=event.version, challengers=state.campaign.challengers + 1)


def _playbook_given(state: State, event: e.PlaybookGiven, _: str) -> None:
    state.set_node(event.node, playbook=event.version)
    if event.challenger is not None:
        given = state.playbooks[event.challenger].given
        state.put("playbook", str(event.challenger), given=(*given, event.node))


def _playbook_used(state: State, event: e.PlaybookUsed, _: str) -> None:
    if event.version == state.campaign.challenger:
        state.put("playbook", str(event.version), fate=f"used: {event.why}")
        state.set_campaign(challenger=None)
    _use_playbook(state, event.version, event.by)


def _playbook_discarded(state: State, event: e.PlaybookDiscarded, _: str) -> None:
    state.put("playbook", str(event.version), fate=f"not used: {event.why}")
    state.set_campaign(challenger=None)


def _use_playbook(state: State, version: int, by: str) -> None:
    """What was being tried was tried beside the version of before: there is nothing left to compare it with."""
    if (challenger := state.campaign.challenger) is not None:
        fate = f"not used: set aside for version {version}, by {by}"
        state.put("playbook", str(challenger), fate=fate)
    state.set_campaign(playbook=version, challenger=None)


HANDLERS: Handlers = {
    e.ModelCallIntended: _model_call_intended,
    e.ModelCallEnded: _model_call_ended,
    e.AgentIntended: _agent_intended,
    e.AgentEnded: _agent_ended,
    e.Reviewed: _reviewed,
    e.PlaybookChanged: _playbook_changed,
    e.PlaybookGiven: _playbook_given,
    e.PlaybookUsed: _playbook_used,
    e.PlaybookDiscarded: _playbook_discarded,
}
