"""What events of the whole campaign change."""

from orchestrator.domain import events as e
from orchestrator.domain.folding.base import Handlers, fields_of
from orchestrator.domain.records import Campaign, Injection, Role, Round, Run
from orchestrator.domain.state import State


def _campaign_opened(state: State, event: e.CampaignOpened, at: str) -> None:
    record = Campaign(id=event.campaign, name=event.name, version=event.version, last_at=at)
    state.new("campaign", "campaign", record)


def _run_started(state: State, event: e.RunStarted, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "run"})
    began_s = state.campaign.elapsed_s if state.runs else 0.0
    state.new("run", str(event.run), Run(number=event.run, root=str(event.run), began_s=began_s, **fields))
    state.set_campaign(run=event.run, since_improvement=0, stopped="")
    state.branches.clear()


def _migrated(state: State, event: e.Migrated, _: str) -> None:
    state.put("run", str(event.run), migrated=event.after)
    for name, island in event.moves:
        state.put("node", name, migrated=(*state.nodes[name].migrated, island))


def _limits_set(state: State, event: e.LimitsSet, _: str) -> None:
    if state.runs:
        state.put("run", str(state.campaign.run), options=event.options)


def _site_opened(state: State, event: e.SiteOpened, _: str) -> None:
    before = tuple(site for site in state.run.sites if site != event.site)
    state.put("run", str(state.campaign.run), sites=(*before, event.site))


def _session_started(state: State, event: e.SessionStarted, at: str) -> None:
    state.set_campaign(epoch=event.epoch, holder=event.holder, place=event.place, session_open=True, last_at=at)
    if state.campaign.gave_up:  # a person lets it go on; one that died, or ended otherwise, counts on
        state.set_campaign(free=0, free_usd=0)
    state.set_campaign(stopped="", gave_up=False, paused=False, pause_why="")


def _session_ended(state: State, _: e.SessionEnded, __: str) -> None:
    state.set_campaign(session_open=False)


def _injection_queued(state: State, event: e.InjectionQueued, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "injection"})
    state.new("injection", str(event.injection), Injection(id=event.injection, **fields))
    state.set_campaign(waiting=(*state.campaign.waiting, event.injection))


def _steered(state: State, event: e.Steered, _: str) -> None:
    state.set_campaign(steering=(*state.campaign.steering, event.text))


def _round_started(state: State, event: e.RoundStarted, at: str) -> None:
    opened, paid = state.count(Role.SEARCH), state.count_paid(Role.SEARCH)
    state.set_campaign(round=Round(opened=opened, paid=paid, at=at, **fields_of(event, "kind")))


def _cohort_opened(state: State, event: e.CohortOpened, _: str) -> None:
    state.put("run", str(event.run), cohort=event.cohort)


def _champion_changed(state: State, event: e.ChampionChanged, _: str) -> None:
    run = state.runs[str(event.run)]
    champions = {**run.champions, event.cohort: event.node}
    state.put("run", str(event.run), champions=champions, cohort=event.cohort)
    number = state.campaign.references + 1
    state.set_node(event.node, references={**state.nodes[event.node].references, event.cohort: number})
    state.set_campaign(references=number)


def _request_taken(state: State, event: e.RequestTaken, _: str) -> None:
    state.set_campaign(request=event.request)


def _pause_set(state: State, event: e.PauseSet, _: str) -> None:
    state.set_campaign(paused=event.paused, pause_why=event.why)


def _breaker_opened(state: State, event: e.BreakerOpened, at: str) -> None:
    since = state.campaign.away_since if state.campaign.away else at
    state.set_campaign(away=event.why, away_from=event.providers, away_since=since, trying=False)


def _breaker_tried(state: State, _: e.BreakerTried, __: str) -> None:
    state.set_campaign(trying=True)


def _breaker_closed(state: State, _: e.BreakerClosed, __: str) -> None:
    state.set_campaign(away="", away_from=(), away_since="", trying=False)


def _stood_still(state: State, event: e.StoodStill, _: str) -> None:
    state.set_campaign(elapsed_s=max(0.0, state.campaign.elapsed_s - event.seconds))


def _campaign_stopped(state: State, event: e.CampaignStopped, _: str) -> None:
    state.set_campaign(stopped=event.reason, gave_up=event.gave_up)


HANDLERS: Handlers = {
    e.CampaignOpened: _campaign_opened,
    e.RunStarted: _run_started,
    e.Migrated: _migrated,
    e.LimitsSet: _limits_set,
    e.SiteOpened: _site_opened,
    e.SessionStarted: _session_started,
    e.SessionEnded: _session_ended,
    e.InjectionQueued: _injection_queued,
    e.Steered: _steered,
    e.RoundStarted: _round_started,
    e.CohortOpened: _cohort_opened,
    e.ChampionChanged: _champion_changed,
    e.RequestTaken: _request_taken,
    e.PauseSet: _pause_set,
    e.BreakerOpened: _breaker_opened,
    e.BreakerTried: _breaker_tried,
    e.BreakerClosed: _breaker_closed,
    e.StoodStill: _stood_still,
    e.CampaignStopped: _campaign_stopped,
}
