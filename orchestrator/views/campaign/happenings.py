"""One readable line for every event, and the node it is about."""

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.budget import Account, shown
from orchestrator.domain import events as e
from orchestrator.domain.records import Spent
from orchestrator.domain.verdict import Verdict
from orchestrator.task import format_size
from orchestrator.text import short
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.waiting import paused_because

LONGEST = 200
_NAMED = 6


def line_of(event: e.Event) -> str:
    """What happened, in words: escaped, and never more than one line."""
    tell = _SENTENCES.get(type(event))
    return short(tell(event) if tell else event.kind, LONGEST)


def node_of(event: e.Event) -> str | None:
    """The node that an event is about; None for one about the whole campaign, or about money alone."""
    if node := getattr(event, "node", None):
        return str(node)
    trial = str(getattr(event, "trial", ""))
    return trial.rpartition("-")[0] or None


def _amounts(amounts: Mapping[str, int]) -> str:
    known = {account.value: account for account in Account}
    told = [shown(known[name], units) for name, units in amounts.items() if name in known and units]
    return ", ".join(told) or "nothing"


def _cost(spent: Spent) -> str:
    return f" ({figures.spent(spent)})" if spent != Spent() else ""


def _because(why: str) -> str:
    return f": {why}" if why else ""


def _breaker_opened(event: e.BreakerOpened) -> str:
    who = " and ".join(event.providers)
    return f"{who} is waited for, the next probe is in {event.wait_s:.0f} s{_because(event.why)}"


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return "no verdict"
    doubts = "" if verdict.valid else ", not a solution"
    doubts += f", not believed: {', '.join(verdict.suspect)} beyond the ceiling" if verdict.suspect else ""
    return f"{figures.metrics(verdict.metrics)}{doubts} ({verdict.tier}, {verdict.mode})"


def _run_started(event: e.RunStarted) -> str:
    beside = f" beside the control {event.control}" if event.control else ""
    whose = "".join(f" with the {it.kind} {it.name} of {it.package or 'a caller'} {it.version}" for it in event.brought)
    who = f"{event.proposer}{beside}{whose.rstrip()}"
    of = f" combines nodes of run {event.combine.base}" if event.combine else ""
    return f"run {event.run}{of} starts: {who}; width {event.width}, depth {event.depth} ({event.why})"


def _member_ended(event: e.MemberEnded) -> str:
    left = "ended by us" if event.interrupted else f"cannot be in the pool: {event.fault}" if event.fault else "is over"
    return f"{event.node} on the split {event.split} {left}{_cost(event.spent)}"


def _migrated(event: e.Migrated) -> str:
    moves = ", ".join(f"{node} to island {island}" for node, island in event.moves[:_NAMED])
    return f"migration after {event.after} attempts: {moves or 'nothing new'}{', …' * (len(event.moves) > _NAMED)}"


def _proposed(event: e.Proposed) -> str:
    by = f" by {event.model}" if event.model else ""
    refused = f"; refused: {event.refused}" if event.refused else ""
    return f"{event.node} draft {event.draft}, {event.operator}{by}{_because(event.description)}{refused}"


def _trial_ended(event: e.TrialEnded) -> str:
    well = "its outputs go to the judge" if event.outputs else "the judge has called it"
    ending = f"{event.ending}{_because(event.reason)}" if event.ending else well
    return f"trial {event.trial} ended{_cost(event.spent)}: {ending}"


def _judging_ended(event: e.JudgingEnded) -> str:
    where = " (asked about the baseline)" if event.on_baseline else ""
    told = f"fault: {event.fault}" if event.fault else _verdict(event.verdict)
    return f"judge on {event.trial}{where}: {'well' if event.on_baseline and not event.fault else told}"


def _attempt_ended(event: e.AttemptEnded) -> str:
    return f"{event.node} {event.ending}, {'kept' if event.kept else 'not kept'}{_because(event.why)}"


def _guard_ended(event: e.GuardEnded) -> str:
    passed = "passes" if event.passed else "does not pass"
    return f"{event.node} {passed} the guard {event.guard}{_because(event.reason)}"


def _certification_opened(event: e.CertificationOpened) -> str:
    return f"{event.node} is tested against {event.champion} (test {event.number}, level {event.level:.3g})"


def _held_out_asked(event: e.HeldOutAsked) -> str:
    asked = f"{event.node} on the held-out split (query {event.query})"
    if event.interrupted:
        return f"{asked}: interrupted, nothing was learnt"
    if event.fault:
        return f"{asked}: no score ({event.fault})"
    if event.released is None:
        return f"{asked}: not comparable"
    told = "better" if event.better else "not better"
    return f"{asked}: {told}; the ladder stands at {figures.score(event.released)}{_cost(event.spent)}"


def _standing_ended(event: e.StandingEnded) -> str:
    seen = "; nobody saw its end, so that is the most that it can have cost" if event.interrupted else ""
    return f"{event.name} stands no more{_cost(event.spent)}{seen}"


def _model_call_ended(event: e.ModelCallEnded) -> str:
    whose = event.node or event.role
    return (
        f"{whose}: call {event.call} of {event.model} {event.ending}, {event.tokens.total:,} tokens{_cost(event.spent)}"
    )


def _stall_found(event: e.StallFound) -> str:
    lost = f"; booked as lost: {figures.spent(event.lost)}" if event.lost != Spent() else ""
    return (
        f"{event.node}: {event.agent} stalled ({event.cause}) after {event.after_s:.0f} s{_because(event.detail)}{lost}"
    )


def _reviewed(event: e.Reviewed) -> str:
    found = event.finding if event.finding == "unreviewed" else f"the verifier says {event.finding}"
    return f"{event.node} draft {event.draft}: {found}{_because(event.reasons)}"


_SENTENCES: dict[type, Callable[[Any], str]] = {
    e.CampaignOpened: lambda event: f"campaign {event.name} ({event.campaign}) opened by version {event.version}",
    e.RunStarted: _run_started,
    e.Migrated: _migrated,
    e.MemberIntended: lambda event: f"{event.node} is run for the pool of run {event.run} (split {event.split})",
    e.MemberEnded: _member_ended,
    e.PoolFrozen: lambda event: f"pool of run {event.run}: {', '.join(it.node for it in event.members)}",
    e.LimitsSet: lambda event: f"caps: {_amounts(event.limits)}",
    e.SiteOpened: lambda event: (
        f"candidates run on {event.site.backend} ({event.site.boundary}), the judge on {event.site.judge}"
    ),
    e.SessionStarted: lambda event: f"session {event.epoch} of {event.holder} starts",
    e.SessionEnded: lambda event: f"session ends{_because(event.why)}",
    e.AttemptOpened: lambda event: (
        f"{event.node} opened ({event.role} {event.number}{f', island {event.island}' if event.island else ''})"
    ),
    e.InjectionQueued: lambda event: f"a change by hand waits for a node{_because(event.description)}",
    e.Reserved: lambda event: f"reserved for {event.hold}: {_amounts(event.amounts)}",
    e.Settled: lambda event: f"settled {event.hold}: {_amounts(event.spent)}",
    e.Refunded: lambda event: f"refunded {event.hold}; lost: {_amounts(event.spent)}",
    e.Charged: lambda event: f"charged for {event.what}: {_amounts(event.spent)}",
    e.StandingIntended: lambda event: f"{event.name} is to stand ready on {event.backend}, at most{_cost(event.worst)}",
    e.StandingEnded: _standing_ended,
    e.Proposed: _proposed,
    e.OffersCounted: lambda event: f"{event.node}: {event.distinct} of {event.offered} offers are new",
    e.ModelCallIntended: lambda event: f"{event.node or event.role}: call {event.call} of {event.model}",
    e.ModelCallEnded: _model_call_ended,
    e.AgentIntended: lambda event: f"{event.node}: the agent {event.agent} gets a chamber ({event.configuration})",
    e.AgentEnded: lambda event: f"{event.node}: the agent ended as {event.ending}{_because(event.why)}",
    e.StallFound: _stall_found,
    e.Reviewed: _reviewed,
    e.Steered: lambda event: f"steered{_because(event.text)}",
    e.RoundStarted: lambda event: f"round {event.number} begins; the session ends with it, to be looked at",
    e.PlaybookChanged: lambda event: f"playbook {event.version} by {event.by}{_because(event.why)}",
    e.PlaybookGiven: lambda event: f"{event.node} works with playbook {event.version}",
    e.PlaybookUsed: lambda event: f"playbook {event.version} is used from now on{_because(event.why)}",
    e.PlaybookDiscarded: lambda event: f"playbook {event.version} is not used{_because(event.why)}",
    e.PromotionAsked: lambda event: f"{event.node} waits for a person's word before it becomes the best",
    e.PromotionAnswered: lambda event: (
        f"{event.node} {'accepted' if event.accepted else 'declined'} by a person{_because(event.why)}"
    ),
    e.Minimised: lambda event: (
        f"{event.node}: {len(event.minimal.kept)} parts are needed, {len(event.minimal.dropped)} are not"
    ),
    e.Promoted: lambda event: f"{event.node} draft {event.draft} promoted{_because(event.why)}",
    e.TrialIntended: lambda event: f"trial {event.trial} starts ({event.purpose}, draft {event.draft})",
    e.TrialEnded: _trial_ended,
    e.JudgingIntended: lambda event: f"judge looks at {'the baseline for ' * event.on_baseline}{event.trial}",
    e.JudgingEnded: _judging_ended,
    e.OutputsLetGo: lambda event: (
        f"outputs of {figures.plural(len(event.trials), 'discarded trial')} are let go, "
        f"{format_size(event.bytes)}: {', '.join(event.trials[:_NAMED])}{', …' * (len(event.trials) > _NAMED)}"
    ),
    e.ArtifactsOverBudget: lambda event: (
        f"{format_size(event.kept)} of outputs are kept where --artifacts allows {format_size(event.cap)}, and all of "
        "them are needed; those of discarded attempts are let go as they end"
    ),
    e.CertificationOpened: _certification_opened,
    e.GuardIntended: lambda event: f"{event.node} is checked by the guard {event.guard}",
    e.GuardEnded: _guard_ended,
    e.GuardAdded: lambda event: f"{event.node} and all below it get the guard {event.guard.name}",
    e.HeldOutIntended: lambda event: f"{event.node} is run on the held-out split ({event.query} of {event.queries})",
    e.HeldOutAsked: _held_out_asked,
    e.KillIntended: lambda event: f"{event.node} is killed{_because(event.why)}",
    e.KillConfirmed: lambda event: f"{event.node} is dead",
    e.AttemptEnded: _attempt_ended,
    e.AttemptRequeued: lambda event: f"{event.node} {event.ending}, queued again{_because(event.why)}",
    e.AttemptQuarantined: lambda event: f"{event.node} {event.ending}, quarantined{_because(event.why)}",
    e.AttemptReleased: lambda event: f"{event.node} released by {event.by}",
    e.AttemptResumed: lambda event: f"{event.node} goes on",
    e.CohortOpened: lambda event: f"run {event.run} has a new cohort {event.cohort}{_because(event.why)}",
    e.ChampionChanged: lambda event: f"{event.node} is the best" + (f", over {event.over}" if event.over else ""),
    e.RequestTaken: lambda event: f"request {event.request}, {event.asked}: {event.answer}",
    e.PauseSet: lambda event: (
        paused_because(event.why) if event.paused else f"goes on after the pause{_because(event.why)}"
    ),
    e.BreakerOpened: _breaker_opened,
    e.BreakerTried: lambda _: "the providers answer again; one attempt is tried",
    e.BreakerClosed: lambda _: "the providers do their work again",
    e.StoodStill: lambda event: f"the orchestrator stood still for {event.seconds:.0f} s, which count for nobody",
    e.CampaignStopped: lambda event: f"campaign stopped{_because(event.reason)}",
}
