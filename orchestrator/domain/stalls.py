"""How often agents stalled, and what that cost: told from the events, by agent, model and configuration."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Spent


@dataclass
class Tally:
    """Of one agent with one model in one configuration. `takes` counts every go at an attempt, repeated ones too.

    `saved_s` is how much longer a plain idle time-out of 1,200 s would have waited; for one that dripped or went in
    circles that is the least, for every byte would have started it again. `bounds` counts stalls of which `lost` is the
    most that it can have been: a call without a last word on its usage is booked at its worst case.
    """

    agent: str
    model: str
    configuration: str
    takes: int = 0
    stalls: int = 0
    quarantined: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    lost: Spent = field(default_factory=Spent)
    bounds: int = 0
    saved_s: float = 0.0
    after: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.stalls / self.takes if self.takes else 0.0

    @property
    def after_s(self) -> float | None:
        """How long it took to notice, at the median."""
        return median(self.after) if self.after else None

    def add(self, other: "Tally") -> None:
        for name in ("takes", "stalls", "quarantined", "causes", "spent", "lost", "bounds", "saved_s", "after"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def record(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "model": self.model,
            "configuration": self.configuration,
            "attempts": self.takes,
            "stalls": self.stalls,
            "stall_rate": self.rate,
            "quarantined": self.quarantined,
            "causes": dict(self.causes),
            "found_after_s": self.after_s,
            "spent": self.spent.model_dump(),
            "lost": self.lost.model_dump(),
            "lost_at_most": bool(self.bounds),
            "saved_s": self.saved_s,
        }


@dataclass
class _Take:
    """What is known of the present go at an attempt."""

    agent: str = ""
    model: str = ""
    configuration: str = ""
    worked: bool = False
    cut: bool = False
    stall: e.StallFound | None = None
    spent: Spent = field(default_factory=Spent)


Key = tuple[int, str, str, str]


class Stalls:
    """Fed with the events of a campaign, one after the other.

    An agent tells its configuration when it begins, other proposers with each call. In older records those tell it only
    when they stall; it is the same for the whole run, so what one stall tells holds for all their attempts in it.
    """

    def __init__(self) -> None:
        self._tallies: dict[Key, Tally] = {}
        self._told: dict[tuple[int, str, str], str] = {}
        self._takes: dict[str, _Take] = {}
        self._last: dict[str, Key] = {}
        self._proposers: dict[int, str] = {}

    def tallies(self) -> list[Tally]:
        """The most troubled first. What is still at work is not counted yet."""
        found: dict[tuple[str, str, str], Tally] = {}
        for (run, agent, model, configuration), tally in self._tallies.items():
            name = (agent, model, configuration or self._told.get((run, agent, model), ""))
            found.setdefault(name, Tally(*name)).add(tally)
        return sorted(found.values(), key=lambda it: (-it.stalls, -it.takes, it.agent, it.model, it.configuration))

    def hear(self, event: e.Event) -> None:
        match event:
            case e.RunStarted():
                self._proposers[event.run] = event.proposer
            case e.AgentIntended():
                take = self._take(event.node)
                take.agent, take.configuration, take.worked = event.agent, event.configuration, True
            case e.ModelCallIntended() if event.node and event.role is ModelRole.USER:
                take = self._take(event.node)
                take.model, take.worked = take.model or event.model, True
                take.configuration = take.configuration or event.configuration
            case e.ModelCallEnded() if event.node and event.role is ModelRole.USER:
                self._spend(event.node, event.spent)
                if event.ending is not CallEnding.COMPLETE and event.spent != Spent() and event.node in self._takes:
                    self._takes[event.node].cut = True
            case e.AgentEnded():
                self._spend(event.node, event.spent)
            case e.StallFound():
                take = self._take(event.node)
                take.stall, take.worked = event, True
            case e.AttemptEnded() | e.AttemptRequeued():
                self._close(event.node, quarantined=False)
            case e.AttemptQuarantined():
                self._close(event.node, quarantined=event.ending is Ending.STALLED)
            case _:
                pass

    def _take(self, node: str) -> _Take:
        return self._takes.setdefault(node, _Take())

    def _spend(self, node: str, spent: Spent) -> None:
        """What arrives after the end belongs to the one who worked last."""
        if node in self._takes:
            take = self._takes[node]
            take.spent = take.spent + spent
        elif node in self._last:
            tally = self._tallies[self._last[node]]
            tally.spent = tally.spent + spent

    def _close(self, node: str, *, quarantined: bool) -> None:
        take = self._takes.pop(node, None)
        if take is None or not take.worked:
            return
        known = take.stall or take
        run = run_of(node)
        agent, model = known.agent or self._proposers.get(run, ""), known.model or take.model
        key = (run, agent, model, known.configuration)
        tally = self._tallies.setdefault(key, Tally(*key[1:]))
        self._last[node] = key
        tally.takes += 1
        tally.spent = tally.spent + take.spent
        if take.stall:
            self._told[run, agent, model] = known.configuration
            tally.stalls += 1
            tally.quarantined += quarantined
            tally.causes[take.stall.cause] += 1
            tally.lost = tally.lost + take.stall.lost
            tally.bounds += take.cut
            tally.saved_s += take.stall.saved_s
            tally.after.append(take.stall.after_s)


def stall_tallies(events: Iterable[e.Event]) -> list[Tally]:
    stalls = Stalls()
    for event in events:
        stalls.hear(event)
    return stalls.tallies()
