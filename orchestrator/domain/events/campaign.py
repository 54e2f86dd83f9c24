"""What belongs to a campaign as a whole: its caps, its sites, its sessions, and why nothing goes on."""

from typing import Literal

from orchestrator.domain.events.attempt import count_no_free
from orchestrator.domain.events.base import Amounts, Event, amounts, because
from orchestrator.domain.records import Campaign, SiteRecord
from orchestrator.domain.state import State


class CampaignOpened(Event):
    kind: Literal["campaign opened"] = "campaign opened"
    campaign: str
    name: str
    version: str

    def apply(self, state: State, at: str, /) -> None:
        record = Campaign(id=self.campaign, name=self.name, version=self.version, last_at=at)
        state.new("campaign", "campaign", record)

    @property
    def said(self) -> str:
        return f"campaign {self.name} ({self.campaign}) opened by version {self.version}"


class LimitsSet(Event):
    """The caps of the accounts; absent means without one. `options` is what flags said, for the next resume."""

    kind: Literal["limits set"] = "limits set"
    limits: Amounts
    options: str = "{}"

    def apply(self, state: State, _: str, /) -> None:
        if state.runs:
            state.set_run(state.campaign.run, options=self.options)

    @property
    def said(self) -> str:
        return f"caps: {amounts(self.limits)}"


class SiteOpened(Event):
    """Where the run's candidates go from now on, and where its judge stays."""

    kind: Literal["site opened"] = "site opened"
    site: SiteRecord

    def apply(self, state: State, _: str, /) -> None:
        before = tuple(site for site in state.run.sites if site != self.site)
        state.set_run(state.campaign.run, sites=(*before, self.site))

    @property
    def said(self) -> str:
        return f"candidates run on {self.site.backend} ({self.site.boundary}), the judge on {self.site.judge}"


class SessionStarted(Event):
    """An orchestrator took the campaign over; all that older ones still say is refused.

    `place` is from where what it rents can be ended, empty where nothing is rented. `by` says who let it go on, where
    that was another than the one who started the process.
    """

    kind: Literal["session started"] = "session started"
    epoch: int
    holder: str
    place: str = ""
    by: str = ""

    def apply(self, state: State, at: str, /) -> None:
        state.set_campaign(epoch=self.epoch, holder=self.holder, place=self.place, session_open=True, last_at=at)
        if state.campaign.gave_up:  # a person lets it go on; one that died, or ended otherwise, counts on
            count_no_free(state)
        state.set_campaign(stopped="", gave_up=False, paused=False, pause_why="")

    @property
    def said(self) -> str:
        return f"session {self.epoch} of {self.holder} starts{f', asked for by {self.by}' if self.by else ''}"


class SessionEnded(Event):
    kind: Literal["session ended"] = "session ended"
    why: str

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(session_open=False)

    @property
    def said(self) -> str:
        return f"session ends{because(self.why)}"


class RequestTaken(Event):
    """What another terminal or the page asked for, and what became of it. `by` says who asked, as they named
    themselves; older ledgers do not.
    """

    kind: Literal["request taken"] = "request taken"
    request: int
    asked: str
    answer: str
    by: str = ""

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(request=self.request)

    @property
    def said(self) -> str:
        return f"request {self.request}, {self.asked}{f' by {self.by}' if self.by else ''}: {self.answer}"


def paused_because(why: str) -> str:
    """A pause that nobody asked for says how to end it."""
    return f"paused: {why}; blastdoor pause --off goes on" if why else "paused"


class PauseSet(Event):
    """`why` says what made the orchestrator pause by itself; empty for a person's wish."""

    kind: Literal["pause set"] = "pause set"
    paused: bool
    why: str = ""

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(paused=self.paused, pause_why=self.why)

    @property
    def said(self) -> str:
        return paused_because(self.why) if self.paused else f"goes on after the pause{because(self.why)}"


class ProviderSilent(Event):
    """A provider left a question, or a call of a model, without an answer; all goes on for the present."""

    kind: Literal["provider silent"] = "provider silent"
    provider: str

    def apply(self, state: State, at: str, /) -> None:
        silent = state.campaign.silent
        since = state.campaign.silent_since if silent else at
        state.set_campaign(silent=(*silent, self.provider), silent_since=since)

    @property
    def said(self) -> str:
        return f"{self.provider} does not answer"


class ProviderHeard(Event):
    kind: Literal["provider heard"] = "provider heard"
    provider: str

    def apply(self, state: State, _: str, /) -> None:
        silent = tuple(name for name in state.campaign.silent if name != self.provider)
        state.set_campaign(silent=silent, silent_since=state.campaign.silent_since if silent else "")

    @property
    def said(self) -> str:
        return f"{self.provider} answers again"


class BreakerOpened(Event):
    """Providers failed, `why` in the words of the last one: nothing is started before they answer a probe, the next
    one in `wait_s`. `tries` is how many probes and attempts failed since it opened.
    """

    kind: Literal["breaker opened"] = "breaker opened"
    providers: tuple[str, ...]
    why: str
    wait_s: float
    tries: int = 0

    def apply(self, state: State, at: str, /) -> None:
        since = state.campaign.away_since if state.campaign.away else at
        state.set_campaign(away=self.why, away_from=self.providers, away_since=since, trying=False)

    @property
    def said(self) -> str:
        who = " and ".join(self.providers)
        return f"{who} is waited for, the next probe is in {self.wait_s:.0f} s{because(self.why)}"


class BreakerTried(Event):
    """The providers answered a probe: one attempt at a time is let through."""

    kind: Literal["breaker tried"] = "breaker tried"

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(trying=True)

    @property
    def said(self) -> str:
        return "the providers answer again; one attempt is tried"


class BreakerClosed(Event):
    kind: Literal["breaker closed"] = "breaker closed"

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(away="", away_from=(), away_since="", trying=False)

    @property
    def said(self) -> str:
        return "the providers do their work again"


class StoodStill(Event):
    """The machine was suspended, or the orchestrator stopped, for so long: it counts for nobody."""

    kind: Literal["stood still"] = "stood still"
    seconds: float

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(elapsed_s=max(0.0, state.campaign.elapsed_s - self.seconds))

    @property
    def said(self) -> str:
        return f"the orchestrator stood still for {self.seconds:.0f} s, which count for nobody"


class CampaignStopped(Event):
    """`gave_up`: too many attempts in a row ended free."""

    kind: Literal["campaign stopped"] = "campaign stopped"
    reason: str
    gave_up: bool = False

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(stopped=self.reason, gave_up=self.gave_up)

    @property
    def said(self) -> str:
        return f"campaign stopped{because(self.reason)}"
