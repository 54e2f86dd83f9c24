"""From the events of a campaign to news of it."""

import math
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from orchestrator.budget import Account, Accounts, shown
from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Node, Role
from orchestrator.domain.state import State
from orchestrator.notify.base import News, Topic
from orchestrator.text import short
from orchestrator.units import format_duration

# Told when so much of a cap is used.
SHARE = 0.8
_COSTS = e.LimitsSet, e.Settled, e.Refunded, e.Charged


class Reporter:
    """Is called with every event after it is on disk. A cap that is nearly used when the session begins was told in an
    earlier one, so it is not told again.
    """

    def __init__(self, state: State, accounts: Accounts, wall_s: float | None = None) -> None:
        self._state = state
        self._accounts = accounts
        self._wall_s = wall_s
        self._told = {name for name, _ in self._nearly_used()}
        self._away = bool(state.campaign.away)

    def news_of(self, event: e.Event, at: str) -> Iterator[News]:
        match event:
            case e.ChampionChanged(over=str(over)) if over != event.node:
                yield self._champion(event.node, over, at)
            case e.AttemptEnded():
                yield self._attempt(self._state.nodes[event.node], at)
            case e.CampaignStopped():
                yield self._stopped(event, at)
            case e.PromotionAsked():
                yield self._waiting(at, event.node, "waits for your word before it becomes the best", "promotion")
            case e.AttemptQuarantined():
                yield self._waiting(at, event.node, "is quarantined and waits to be released", "quarantine")
            case e.PauseSet(paused=True, why=str(why)) if why:
                yield self._waiting(at, "", "is paused; blastdoor pause --off goes on", "pause")
            case e.BreakerOpened() if not self._away:
                yield self._breaker(at, event.providers)
            case e.BreakerClosed() if self._away:
                yield self._breaker(at, ())
        if isinstance(event, _COSTS) or self._wall_s:
            yield from self._caps(at)

    def _champion(self, name: str, over: str, at: str) -> News:
        node, before = self._state.nodes[name], self._state.nodes[over]
        new, old = self._metrics(node), self._metrics(before)
        text = f"{name} is the best: {_values(new)} (before: {_values(old)})"
        data: dict[str, JsonValue] = {"metrics": new, "over": over, "before": old, "parameters": _plain(node.params)}
        return self._make(Topic.CHAMPION, at, text, data, name)

    def _attempt(self, node: Node, at: str) -> News:
        cost = node.cost or node.spent
        metrics = self._metrics(node)
        # The judge's own words, and those of what changed it, stay in the ledger.
        data: dict[str, JsonValue] = {
            "number": node.number,
            "parent": node.parent,
            "role": str(node.role),
            "ending": str(node.ending),
            "kept": node.kept,
            "metrics": metrics,
            "parameters": _plain(node.params),
            "operator": node.operator,
            "island": node.island,
            "usd": cost.microdollars / 1e6,
            "seconds": cost.milliseconds / 1e3,
            "tokens": cost.tokens,
        }
        kept = "kept" if node.kept else "not kept"
        return self._make(Topic.ATTEMPT, at, f"{node.id} {node.ending}, {kept}: {_values(metrics)}", data, node.id)

    def _stopped(self, event: e.CampaignStopped, at: str) -> News:
        best = self._state.champion()
        metrics = self._metrics(best) if best else {}
        data: dict[str, JsonValue] = {
            "reason": short(event.reason, 500),
            "gave_up": event.gave_up,
            "best": best.id if best else None,
            "metrics": metrics,
            "attempts": self._state.count_all(Role.SEARCH),
            "usd": self._accounts.used(Account.USD) / 1e6,
        }
        found = f"; the best is {best.id}: {_values(metrics)}" if best else ""
        return self._make(Topic.STOPPED, at, f"stopped: {short(event.reason, 200)}{found}", data)

    def _waiting(self, at: str, node: str, words: str, why: str) -> News:
        return self._make(Topic.WAITING, at, f"{node} {words}".lstrip(), {"for": why}, node)

    def _breaker(self, at: str, providers: tuple[str, ...]) -> News:
        self._away = bool(providers)
        who = " and ".join(providers)
        text = f"nothing is started until {who} answers again" if providers else "the providers do their work again"
        return self._make(Topic.BREAKER, at, text, {"open": self._away, "providers": list(providers)})

    def _caps(self, at: str) -> Iterator[News]:
        for name, (used, cap, words) in self._nearly_used():
            if name not in self._told:
                self._told.add(name)
                data: dict[str, JsonValue] = {"cap": name[0], "used": used, "limit": cap}
                yield self._make(Topic.CAP, at, f"{used / cap:.0%} of a cap is used: {words}", data)

    def _nearly_used(self) -> Iterator[tuple[tuple[str, float], tuple[float, float, str]]]:
        """By name and cap: one that was raised is told again."""
        for account in Account:
            cap, used = self._accounts.limit(account), self._accounts.used(account)
            if cap and used >= SHARE * cap:
                yield (account.value, cap), (used, cap, f"{shown(account, used)} of {shown(account, cap)}")
        passed = self._state.campaign.elapsed_s if self._state.opened else 0.0
        if self._wall_s and passed >= SHARE * self._wall_s:
            words = f"{format_duration(round(passed))} of {format_duration(self._wall_s)} on the clock"
            yield ("wall", self._wall_s), (passed, self._wall_s, words)

    def _metrics(self, node: Node) -> dict[str, JsonValue]:
        found = headline(self._state, node)
        return {name: value for name, value in found.metrics.items() if math.isfinite(value)} if found else {}

    def _make(self, topic: Topic, at: str, text: str, data: dict[str, JsonValue], node: str = "") -> News:
        campaign = self._state.campaign
        text = f"{campaign.name}: {text}"
        return News(
            topic=topic,
            at=at,
            campaign=campaign.id,
            task=campaign.name,
            run=campaign.run,
            node=node,
            text=text,
            data=data,
        )


def _values(metrics: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{name} {figures.score(float(str(value)))}" for name, value in metrics.items()) or "no score"


def _plain(params: Mapping[str, object] | None) -> dict[str, JsonValue]:
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in (params or {}).items()
    }
