"""The picture of a campaign at work: as many lines as fit, the most telling first. Pure: a scene, a size, a time."""

import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rich.text import Text

from orchestrator.budget import Account, shown
from orchestrator.domain import figures
from orchestrator.domain.events.campaign import paused_because
from orchestrator.domain.headline import LEGEND
from orchestrator.text import printable, short
from orchestrator.views.campaign.looks import RUNNING
from orchestrator.views.live.attempt import attempt_lines
from orchestrator.views.live.pulses import Pulse, Pulses
from orchestrator.views.live.scene import Gauge, Scene
from orchestrator.views.live.stair import stair
from orchestrator.views.render.chart import MIN_ROWS, MIN_WIDTH, legend, plot
from orchestrator.views.render.layout import Line, bar

_FAINT = "bright_black"
_MARGIN = 10
_BAR = (8, 28)
_LEAST_CHART = MIN_ROWS + 4
_MOST_CHART = 24
# Who gets the next lines, in this order, until there are none left; each up to what it has to say.
_SHARES = (
    ("work", 1), ("endings", 1), ("gauges", 9), ("counts", 1), ("stair", 1), ("work", 4), ("endings", 3), ("gaps", 2),
    ("counts", 9), ("work", 12), ("endings", 5),
)  # fmt: skip


@dataclass
class Picture:
    """Remembers the last chart: it changes with events, and the picture is drawn more often."""

    unicode: bool = True
    notice: str = ""
    _chart: tuple[object, int, int, list[Text]] | None = field(default=None, repr=False)

    def lines(
        self, scene: Scene, width: int, height: int, now: float, pulses: Mapping[str, Pulse] | None = None
    ) -> list[Text]:
        """None is wider than `width`, and there are not more than `height`."""
        head = [self._head(scene, now), *self._gauges(scene, width, now)[:1], self._best(scene)]
        if self.notice:
            head.insert(1, Text(short(self.notice, 200), "bold yellow"))
        head[1:1] = _needs_a_person(scene, width)
        head = head[: max(0, height)]
        parts = {
            "work": self._work(scene, now, width, pulses or {}),
            "endings": list(reversed(scene.endings)),
            "gauges": self._gauges(scene, width, now)[1:],
            "counts": _texts(legend((point.look for point in scene.points), self.unicode, width, _screened(scene))),
            "stair": self._stair(scene, width),
            "gaps": [Text(), Text()],
        }
        given = shared({name: len(part) for name, part in parts.items()}, height - len(head))
        room = height - len(head) - sum(given.values())
        graph = self._plot(scene, width, room + given["stair"])
        if graph:
            given["stair"] = 0
        work = _cut(parts["work"], given["work"])
        blank = [Text()] if given["gaps"] == 2 else []
        found = [
            *head,
            *parts["gauges"][: given["gauges"]],
            *parts["stair"][: given["stair"]],
            *graph,
            *parts["counts"][: given["counts"]],
            *blank,
            *work,
            *(blank if work else []),
            *parts["endings"][: given["endings"]],
        ]
        return [self._fitted(line, width) for line in found]

    def _head(self, scene: Scene, now: float) -> Text:
        run = scene.run
        text = Text(scene.title, "bold")
        if scene.stopped:
            text.append(f"  stopped: {short(scene.stopped, 80)}", "bold yellow")
        elif scene.stopping:
            text.append("  ending what runs", "bold yellow")
        elif scene.paused:
            text.append("  paused", "bold yellow")
        elif scene.away:
            text.append("  waits", "bold yellow")
        text.append(f"  {figures.duration(scene.elapsed(now))}", "cyan")
        text.append(f"  {len(scene.work)} of {scene.caps.width} at work", "" if scene.work else _FAINT)
        for count, word in ((scene.waiting, "waiting"), (scene.quarantined, "in quarantine")):
            text.append(f", {count} {word}" if count else "", "yellow")
        beside = f" beside {printable(run.control)}" if run.control else ""
        return text.append(f"  run {run.number}, {printable(run.proposer)}{beside}", _FAINT)

    def _best(self, scene: Scene) -> Text:
        text = Text(f"{'best':<{_MARGIN}}", "bold")
        if not scene.best:
            return text.append("nothing yet", _FAINT)
        text.append(scene.best, "bold green").append(f" at {scene.best_node}")
        text.append(f" ({scene.gain})" if scene.gain else "", "green")
        text.append(f"  control {scene.control}" if scene.control else "", "cyan")
        text.append(f"  baseline {scene.baseline}" if scene.gain else "")
        if scene.since_improvement:
            text.append(f"  {figures.plural(scene.since_improvement, 'attempt')} since", _FAINT)
        return text

    def _gauges(self, scene: Scene, width: int, now: float) -> list[Text]:
        cells = min(_BAR[1], max(_BAR[0], width // 4))
        found = [self._gauge(gauge, cells, self._pace(scene, now)) for gauge in scene.gauges]
        extra: list[tuple[str, float, float, Callable[[float], str]]] = []
        if scene.caps.wall_s is not None:
            extra.append(("clock", scene.elapsed(now), scene.caps.wall_s, figures.duration))
        if scene.caps.patience is not None:
            extra.append(("patience", float(scene.since_improvement), float(scene.caps.patience), _whole))
        for name, used, cap, tell in extra:
            drawn = Text.assemble(*bar(round(used * 1000), 0, round(cap * 1000), cells, self.unicode))
            found.append(Text.assemble((f"{name:<{_MARGIN}}", "bold"), drawn, f"  {tell(used)} of {tell(cap)}"))
        return found

    def _gauge(self, gauge: Gauge, cells: int, pace: str) -> Text:
        text = Text(f"{gauge.account.value:<{_MARGIN}}", "bold")
        if gauge.cap is None:
            text.append(f"{'no cap':<{cells}}", _FAINT)
        else:
            text.append_text(Text.assemble(*bar(gauge.used, gauge.held, gauge.cap, cells, self.unicode)))
        text.append(f"  {_units(gauge.account, gauge.used)}")
        text.append(f" of {_units(gauge.account, gauge.cap)}" if gauge.cap is not None else "")
        return text.append(pace if gauge.account in (Account.ATTEMPTS, Account.COMBINATION) else "", "cyan")

    def _pace(self, scene: Scene, now: float) -> str:
        """How many attempts a minute, and the cap that will be met first at this pace."""
        rate = max(scene.pace.per_second(slots, now) or 0.0 for slots in (Account.ATTEMPTS, Account.COMBINATION))
        if not rate or scene.stopped:
            return ""
        ends = []
        for gauge in scene.gauges:
            left = None if gauge.cap is None else max(0, gauge.cap - gauge.used)
            until = None if left is None else scene.pace.until(gauge.account, left, now)
            ends += [(until, gauge.account.value)] if until is not None else []
        if scene.caps.wall_s is not None:
            ends.append((max(0.0, scene.caps.wall_s - scene.elapsed(now)), "the clock"))
        told = f"  {rate * 60:.3g}/min"
        if not ends:
            return told
        until, name = min(ends)
        return f"{told}, about {figures.duration(until)} left" + (f" ({name})" if name != "attempts" else "")

    def _stair(self, scene: Scene, width: int) -> list[Text]:
        drawn = stair(scene.steps, len(scene.points), width - _MARGIN - 1, self.unicode)
        return [Text.assemble(" " * _MARGIN, (drawn, "green"))] if len(scene.steps) > 1 else []

    def _plot(self, scene: Scene, width: int, room: int) -> list[Text]:
        """Every attempt as a dot, where there is room for it."""
        height = min(room, _MOST_CHART)
        if height < _LEAST_CHART or width < MIN_WIDTH or not any(point.score is not None for point in scene.points):
            return []
        known = self._chart
        if known is None or known[0] is not scene.points or known[1:3] != (width, height):
            drawn = _texts(plot(scene.points, scene.steps, width=width, height=height, unicode=self.unicode))
            self._chart = known = (scene.points, width, height, drawn)
        return known[3]

    def _work(self, scene: Scene, now: float, width: int, pulses: Mapping[str, Pulse]) -> list[Text]:
        mark = (f"{RUNNING.mark(self.unicode)} ", RUNNING.style)
        return attempt_lines(scene.work, mark, width, now, pulses)

    def _fitted(self, line: Text, width: int) -> Text:
        if not self.unicode and not line.plain.isascii():
            line = _in_ascii(line)
        shown_line = line.copy()
        shown_line.no_wrap = True
        shown_line.truncate(width, overflow="ellipsis" if self.unicode else "crop")
        return shown_line


def pulses_of(pulses: Pulses | None, scene: Scene, now: float) -> dict[str, Pulse]:
    """Of as many attempts as there can be lines for."""
    most = sum(count for name, count in _SHARES if name == "work")
    return pulses.read([work.node for work in scene.work[:most]], now) if pulses else {}


def _screened(scene: Scene) -> list[Line]:
    return [[(LEGEND, "")]] if any(point.screened for point in scene.points) else []


def _texts(lines: Iterable[Line]) -> list[Text]:
    return [Text.assemble(*line) for line in lines]


def _needs_a_person(scene: Scene, width: int) -> list[Text]:
    """Why it paused by itself or waits for a provider, and who waits for a word; in as many lines as that takes."""
    more = len(scene.asked) - 1
    told = f" ({more} more wait; blastdoor status)" if more > 0 else ""
    lines = [paused_because(short(scene.pause_why, 120))] if scene.paused and scene.pause_why else []
    lines += [short(scene.away, 200)] if scene.away else []
    lines += [line + told for line in scene.asked[:1]]
    folded = (part for line in lines for part in textwrap.wrap(line, max(1, width), break_on_hyphens=False))
    return [Text(line, "bold yellow") for line in folded]


def _cut(work: list[Text], lines: int) -> list[Text]:
    """The last line tells of those that there is no room for."""
    if len(work) <= lines or not lines:
        return work[:lines]
    left = len(work) - lines + 1
    return [*work[: lines - 1], Text(f"  and {left} more at work" if lines > 1 else f"  {left} at work", _FAINT)]


def shared(wants: dict[str, int], room: int) -> dict[str, int]:
    """How many lines each part gets."""
    given = dict.fromkeys(wants, 0)
    for name, most in _SHARES:
        more = max(0, min(most, wants[name] - given[name], room))
        if name == "gaps" and more < most:
            continue
        given[name] += more
        room -= more
    return given


def _in_ascii(line: Text) -> Text:
    """Every other character as the escape that it will be written as, so that it takes the room of one."""
    found = Text(style=line.style)
    for at, sign in enumerate(line.plain):
        styles = [span.style for span in line.spans if span.start <= at < span.end]
        plain = "..." if sign == "…" else sign.encode("ascii", "backslashreplace").decode("ascii")
        found.append(plain, styles[-1] if styles else "")
    return found


def _units(account: Account, units: int) -> str:
    if account is Account.SECONDS:
        return figures.duration(units / 1000)
    return shown(account, units) if account is Account.USD else f"{units:,}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"
