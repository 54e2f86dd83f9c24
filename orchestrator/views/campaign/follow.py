"""What `run` shows while it works: in a terminal a picture that stays in place, in a pipe one line per ended attempt.

The picture is drawn by a thread of its own while the campaign goes on, so it is drawn from a copy that is made with
each event, never from the state itself.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from orchestrator.budget import Account, Accounts
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Node, Phase, Purpose
from orchestrator.domain.state import State
from orchestrator.text import short
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.bars import bar
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.screen import open_screen

_ENDINGS_SHOWN = 5
_REFRESHES = 4
_PHASES: dict[type, str] = {
    e.AttemptOpened: "proposing",
    e.AttemptResumed: "goes on",
    e.Proposed: "proposed",
    e.Promoted: "promoted",
    e.TrialEnded: "collected",
    e.JudgingIntended: "judging",
    e.JudgingEnded: "judged",
    e.HeldOutIntended: "held-out",
    e.KillIntended: "being killed",
}
_OVER = (e.AttemptEnded, e.AttemptRequeued, e.AttemptQuarantined)


@dataclass(frozen=True)
class _Work:
    phase: str
    since: float
    opened: float


@dataclass
class _Picture:
    """All that is drawn."""

    open: dict[str, _Work] = field(default_factory=dict)
    endings: deque[Text] = field(default_factory=lambda: deque(maxlen=_ENDINGS_SHOWN))
    used: int = 0
    held: int = 0
    cap: int | None = None
    usd: int = 0
    usd_cap: int | None = None
    best: str = ""
    paused: bool = False


class Progress:
    """A context manager; give it every event as it is recorded. Says nothing when the console is quiet."""

    def __init__(
        self, metrics: Sequence[Metric], console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console or open_screen(stderr=True).console
        self._metrics = metrics
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._picture = _Picture()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.is_dumb_terminal and not self._console.quiet:
            self._live = Live(self, console=self._console, refresh_per_second=_REFRESHES, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def on_event(self, event: e.Event, at: str, state: State, accounts: Accounts) -> None:
        """Called after the event was folded into `state` and `accounts`."""
        line = _ended_line(state.nodes[event.node], self._metrics, self._unicode) if isinstance(event, _OVER) else None
        with self._lock:
            self._follow(event)
            self._copy(state, accounts)
            if line:
                self._picture.endings.append(line)
        if line and not self._live:
            self._console.print(Text.assemble((f"{figures.clock(at)} ", ""), line), soft_wrap=True)

    @property
    def _unicode(self) -> bool:
        return not self._console.options.ascii_only

    def _follow(self, event: e.Event) -> None:
        now, work = self._clock(), self._picture.open
        phase = _PHASES.get(type(event))
        node = getattr(event, "node", None) or str(getattr(event, "trial", "")).rpartition("-")[0]
        if isinstance(event, _OVER) or _is_measured(event):
            work.pop(str(node), None)
            return
        if isinstance(event, e.TrialIntended):
            phase = "tuning" if event.purpose is Purpose.TUNE else "running"
        elif isinstance(event, e.GuardIntended):
            phase = f"guard {short(event.guard, 20)}"
        if phase and node:
            opened = work[node].opened if node in work else now
            work[node] = _Work(phase, now, opened)

    def _copy(self, state: State, accounts: Accounts) -> None:
        picture = self._picture
        run = state.run if state.opened and state.campaign.run else None
        earlier, cap = run.before.get(Account.ATTEMPTS, 0) if run else 0, accounts.limit(Account.ATTEMPTS)
        picture.used, picture.held = accounts.used(Account.ATTEMPTS) - earlier, accounts.held(Account.ATTEMPTS)
        picture.cap = None if cap is None else cap - earlier
        picture.usd, picture.usd_cap = accounts.used(Account.USD), accounts.limit(Account.USD)
        picture.paused = state.opened and state.campaign.paused
        champion = state.champion(run) if run else None
        verdict = champion.verdicts.get(run.cohort or "", champion.verdict) if run and champion else None
        if champion and verdict:
            picture.best = f"{figures.metrics(verdict.metrics, self._metrics)} at {champion.id}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            lines = self._lines(options.max_width, max(4, options.size.height - 1))
        for line in lines:
            shown = line.copy()
            shown.no_wrap = True
            shown.truncate(options.max_width, overflow="ellipsis")
            yield shown

    def _lines(self, width: int, height: int) -> list[Text]:
        """Within the height, whatever it has become: what is open gives way first."""
        picture, now = self._picture, self._clock()
        total = picture.cap or max(1, picture.used + picture.held)
        gauge = bar(picture.used, picture.held, total, min(30, max(10, width // 4)), self._unicode)
        count = f" {picture.used}/{picture.cap}" if picture.cap is not None else f" {picture.used}"
        cap = f" of {figures.dollars(picture.usd_cap)}" if picture.usd_cap is not None else ""
        head = Text.assemble("attempts ", gauge, f"{count}  {figures.duration(now - self._started)}")
        head.append(f"  {figures.dollars(picture.usd)}{cap}" + ("  paused" if picture.paused else ""), "yellow")
        lines = [head, Text.assemble(("best ", "bold"), (picture.best or "nothing yet", "green"))]
        endings = list(picture.endings)[-max(0, height - 4) :] if height > 4 else []
        room = max(1, height - len(lines) - len(endings))
        work = list(picture.open.items())
        shown = work if len(work) <= room else work[: room - 1]
        for node, doing in shown:
            took = f"{figures.duration(now - doing.since)} ({figures.duration(now - doing.opened)} in all)"
            lines.append(Text.assemble(("  " + node, "bold"), f"  {doing.phase:<10} {took}"))
        if len(work) > len(shown):
            lines.append(Text(f"  and {len(work) - len(shown)} more at work"))
        return [*lines, *endings]


def _ended_line(node: Node, metrics: Sequence[Metric], unicode: bool) -> Text:
    look = look_of(node)
    scored = figures.metrics(node.verdict.metrics, metrics) if node.verdict and node.ending is Ending.SCORED else ""
    word = look.word if node.phase is Phase.ENDED else f"{node.ending}, {look.word}"
    text = Text.assemble((look.mark(unicode), look.style), f" {node.id} {word}")
    text.append(f"  {scored}" if scored else "")
    text.append(f"  {short(node.why, 60)}" if not scored and node.why else "")
    return text.append(f"  {short(node.description, 60)}" if node.description else "", "bright_black")


def _is_measured(event: e.Event) -> bool:
    """Whether a node whose attempt is over, the champion, was run again and that is done."""
    return isinstance(event, e.Settled | e.Refunded) and event.hold.startswith(
        (f"{event.node}#{Purpose.RERUN}-", f"{event.node}#{Purpose.REPEAT}-")
    )
