"""From events to scenes. One that comes late begins with the state; then each event costs the same."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from orchestrator.budget import Account, Accounts
from orchestrator.domain import events as e
from orchestrator.domain import figures
from orchestrator.domain.control import Best, best_of
from orchestrator.domain.ending import Ending
from orchestrator.domain.goodput import comparable, in_order
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.text import printable, short
from orchestrator.views.campaign.happenings import line_of
from orchestrator.views.campaign.looks import CONTROL, KEPT, doubt_of, look_of
from orchestrator.views.campaign.points import point_of, points_of, stair_of
from orchestrator.views.campaign.sections.work import waiting_line, who_waits
from orchestrator.views.campaign.waiting import away_because, silent_because
from orchestrator.views.live.pace import PACED, Pace
from orchestrator.views.live.scene import Caps, Scene, Work, gauges_of, phase_of, seconds
from orchestrator.views.render.model import Point, Step

ENDINGS_KEPT = 20
OVER = (e.AttemptEnded, e.AttemptRequeued, e.AttemptQuarantined)
_SESSION_ENDS = "the session ends"


class Tally:
    """Keeps what a scene needs and the state does not have at hand: order, pace, the last endings, since when.

    `task` is the folder that commands are told with.
    """

    def __init__(
        self,
        state: State,
        accounts: Accounts,
        ranking: Ranking,
        caps: Caps,
        *,
        unicode: bool = True,
        task: Path = Path(),
    ) -> None:
        self._state = state
        self._accounts = accounts
        self._ranking = ranking
        self._caps = caps
        self._unicode = unicode
        self._task = task
        self._killed: set[str] = set()
        self._phases: dict[str, tuple[str, float]] = {}
        self._resumed: dict[str, float] = {}
        self._stopping = False
        self._begin(seconds(state.campaign.last_at))

    def _begin(self, now: float) -> None:
        """What is there already."""
        state, run = self._state, self._state.run
        nodes = in_order(state, run)
        self._points: list[Point] = points_of(state, self._metric)
        self._places = {node.id: place for place, node in enumerate(nodes)}
        self._steps: list[Step] = stair_of(state, self._points, self._metric)
        over = sorted((node for node in nodes if node.phase is Phase.ENDED), key=lambda node: node.ended_place)
        self._endings = deque((self.ended_line(node) for node in over[-ENDINGS_KEPT:]), ENDINGS_KEPT)
        self._drawn = best_of((node for node in nodes if node.role is Role.CONTROL), run, self._ranking)
        self._pace = Pace(now, self._used())

    @property
    def _metric(self) -> Metric:
        return self._ranking.metrics[0]

    def on_event(self, event: e.Event, at: str) -> None:
        """Called after the event was folded in."""
        now = seconds(at)
        match event:
            case e.RunStarted():
                self._begin(now)
            case e.SessionStarted():
                self._pace = Pace(now, self._used())
                self._stopping = False
            case e.AttemptOpened(node=name):
                self._places[name] = len(self._points)
                self._points.append(point_of(self._state, len(self._points) + 1, self._state.nodes[name], self._metric))
            case e.AttemptResumed(node=name) | e.AttemptReleased(node=name):
                self._resumed[name] = now
                self._look_at(name)
            case e.KillIntended(node=name, why=why):
                self._killed.add(name)
                self._stopping |= why == _SESSION_ENDS
            case e.ChampionChanged() | e.CohortOpened():
                nodes = (self._state.nodes[point.node] for point in self._points)
                controls = (node for node in nodes if node.role is Role.CONTROL)
                self._steps = stair_of(self._state, self._points, self._metric)
                self._drawn = best_of(controls, self._state.run, self._ranking)
            case e.Settled():
                self._pace.note(now, self._used())
        if isinstance(event, OVER) and event.node in self._places:
            self._end(self._state.nodes[event.node])
        self._keep_phases(now)

    def _end(self, node: Node) -> None:
        self._look_at(node.id)
        self._killed.discard(node.id)
        self._endings.append(self.ended_line(node))
        verdict = comparable(node, self._state.run) if node.role is Role.CONTROL else None
        if verdict and (self._drawn is None or self._ranking.better(verdict.metrics, self._drawn.verdict.metrics)):
            self._drawn = Best(node.id, verdict)

    def _look_at(self, name: str) -> None:
        if name in self._places:
            place = self._places[name]
            self._points[place] = point_of(self._state, place + 1, self._state.nodes[name], self._metric)

    def _used(self) -> dict[Account, int]:
        return {account: self._accounts.used(account) for account in PACED}

    def _keep_phases(self, now: float) -> None:
        """When each open attempt came to do what it does."""
        phases = {}
        for node in self._at_work():
            phase, since = phase_of(self._state, node)
            phase = "being killed" if node.id in self._killed else phase
            known = self._phases.get(node.id)
            phases[node.id] = known if known and known[0] == phase else (phase, seconds(since) if since else now)
        self._phases = phases

    def _at_work(self) -> list[Node]:
        nodes = (self._state.nodes[name] for name in self._state.unfinished)
        return [node for node in nodes if node.phase is Phase.OPEN and run_of(node.id) == self._state.campaign.run]

    def scene(self) -> Scene:
        state, run = self._state, self._state.run
        champion, root = state.champion(run), state.nodes.get(run.root)
        best, baseline = (headline(state, it, run.cohort) if it else None for it in (champion, root))
        if not self._phases:
            self._keep_phases(seconds(state.campaign.last_at))
        waiting = [state.nodes[name].phase for name in state.unfinished]
        return Scene(
            title=printable(state.campaign.name),
            run=run,
            caps=self._caps,
            gauges=gauges_of(self._accounts, run),
            pace=self._pace.copy(),
            elapsed_s=state.campaign.elapsed_s,
            at=seconds(state.campaign.last_at),
            since_improvement=state.campaign.since_improvement,
            best=figures.headline(best, self._ranking.metrics),
            best_node=champion.id if champion else "",
            gain=self._gain(best, baseline) if champion and root and champion.id != root.id else "",
            baseline=self._first(baseline),
            control=self._first(headline(state, state.nodes[self._drawn.node], run.cohort) if self._drawn else None),
            work=[self._work(node) for node in self._at_work()],
            waiting=waiting.count(Phase.QUEUED),
            quarantined=waiting.count(Phase.QUARANTINED),
            points=tuple(self._points),
            steps=tuple(self._steps),
            endings=tuple(self._endings),
            paused=state.campaign.paused,
            pause_why=state.campaign.pause_why,
            away=printable(away_because(state.campaign) or silent_because(state.campaign)),
            asked=[waiting_line(state, node, self._metric, self._task) for node in who_waits(state)],
            stopping=self._stopping,
            stopped=state.campaign.stopped,
        )

    def _work(self, node: Node) -> Work:
        phase, since = self._phases[node.id]
        opened = self._resumed.get(node.id) or seconds(node.opened_at)
        # What chambers cost is in the gauges; here it is told of those that a model works on.
        spent = node.spent.microdollars if node.tokens.total else 0
        return Work(node.id, node.role, phase, since, opened, node.tokens.total, spent)

    def _first(self, found: Headline | None) -> str:
        return f"{found.mark}{figures.score(found.metrics.get(self._metric.name))}" if found else ""

    def _gain(self, best: Headline | None, baseline: Headline | None) -> str:
        values = [found.metrics.get(self._metric.name) if found else None for found in (best, baseline)]
        return figures.signed(values[0] - values[1]) if values[0] is not None and values[1] is not None else ""

    def said(self, event: e.Event) -> Text | None:
        """The line for a reader who cannot see the picture; None for most events."""
        match event:
            case e.AttemptEnded(node=name) | e.AttemptRequeued(node=name) | e.AttemptQuarantined(node=name):
                return self.ended_line(self._state.nodes[name])
            case e.PromotionAsked(node=name):
                return Text(waiting_line(self._state, self._state.nodes[name], self._metric, self._task), "bold yellow")
            case e.BreakerOpened(tries=0) | e.BreakerClosed() | e.StoodStill():
                return Text(line_of(event), "bold yellow")
            case e.ProfileTaken(interrupted=False):
                return Text(line_of(event), "dim")
            case e.PauseSet(why=why) if why:
                return Text(line_of(event), "bold yellow")
        return None

    def ended_line(self, node: Node) -> Text:
        found = headline(self._state, node) if node.ending is Ending.SCORED else None
        return ended_line(node, found, self._ranking.metrics, self._unicode)


def ended_line(node: Node, found: Headline | None, metrics: Sequence[Metric], unicode: bool) -> Text:
    """However wide the place is: the one that draws it cuts it."""
    scored = figures.headline(found, metrics)
    look = look_of(node)
    word = look.word if node.phase is Phase.ENDED else f"{node.ending}, {look.word}"
    text = Text.assemble((look.mark(unicode), look.style), f" {node.id} {word}")
    text.append(f"  {scored}" if scored else "")
    why = "" if look in (KEPT, CONTROL) or node.why == word else node.why
    text.append(f"  {short(why, 100)}" if why else "")
    if doubt := doubt_of(node, found):
        text.append(f": {short(doubt, 200)}" if why else f"  {short(doubt, 200)}")
    return text.append(f"  {short(node.description, 160)}" if node.description else "", "bright_black")
