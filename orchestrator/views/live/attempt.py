"""The lines of attempts at work: what each does, for how long, and what the model that works on it uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from orchestrator.domain import figures
from orchestrator.domain.records import Role
from orchestrator.text import short
from orchestrator.views.live.pulses import Pulse
from orchestrator.views.live.scene import PROPOSING, Work

_FAINT = "bright_black"
_PHASE = 14
_NAMES = 40
_ALWAYS = 0


class _Part(NamedTuple):
    """`rank` says what stays where there is no room: the lowest."""

    rank: int
    text: Text


@dataclass(frozen=True)
class _Line:
    """Its parts in their order. `metered` is one that a model works on: only those give up what does not fit."""

    parts: Sequence[_Part]
    metered: bool

    def most(self, width: int) -> int:
        """The highest rank up to which all that matters more fits, too."""
        most = _ALWAYS
        for rank in sorted({part.rank for part in self.parts}):
            if sum(part.text.cell_len for part in self.parts if part.rank <= rank) > width:
                break
            most = rank
        return most

    def up_to(self, rank: int) -> Text:
        return Text.assemble(*(part.text for part in self.parts if part.rank <= rank or not self.metered))


def attempt_lines(
    works: Sequence[Work], mark: tuple[str, str], width: int, now: float, pulses: Mapping[str, Pulse]
) -> list[Text]:
    """Where no model is asked, phase and times alone. Else as much as fits on every line, so that columns stay columns:
    the rate, dollars, tokens, the floor, then the rest.
    """
    names = min(_NAMES, max((len(work.node) for work in works), default=0))
    lines = [_line(work, mark, names, now, pulses.get(work.node)) for work in works]
    most = min((line.most(width) for line in lines if line.metered), default=_ALWAYS)
    return [line.up_to(most) for line in lines]


def _line(work: Work, mark: tuple[str, str], names: int, now: float, pulse: Pulse | None) -> _Line:
    phase = short(pulse.phase, _PHASE) if pulse and pulse.phase and work.phase == PROPOSING else work.phase
    head = Text.assemble(mark, (f"{work.node:<{names}}", "bold"), f"  {phase:<{_PHASE}}")
    head.append(f" {figures.duration(now - work.since):>6}")
    metered = pulse is not None or work.tokens > 0
    parts = [_Part(_ALWAYS, head), _Part(5, Text(f"  {figures.duration(now - work.opened):>6} in all"))]
    parts += _used(work, pulse) if metered else []
    role = f"  {work.role}" if work.role is not Role.SEARCH else ""
    return _Line([*parts, _Part(6, Text(role, _FAINT))], metered)


def _used(work: Work, pulse: Pulse | None) -> list[_Part]:
    """A pulse is ahead of what is booked, or behind it for a moment: the larger figure is the later."""
    tokens = max(work.tokens, pulse.tokens if pulse else 0)
    micro = max(work.microdollars, round(pulse.usd * 1_000_000) if pulse else 0)
    told = [_Part(3, Text(f"  {amount(tokens):>6} tokens"))]
    if pulse:
        told += _rate(pulse)
    return [*told, _Part(2, Text(f"  {figures.dollars(micro):>8}"))]


def _rate(pulse: Pulse) -> list[_Part]:
    """Against the floor; where no rate is asked for, as under a hold, the detector's word stands in its place."""
    floor = f" (floor {pulse.floor:g})"
    if pulse.rate is None:
        return [_Part(1, Text(f"  {short(pulse.state, 8):>8}", _FAINT)), _Part(4, Text(" " * len(floor)))]
    style = "bold yellow" if pulse.rate < pulse.floor else "green"
    return [_Part(1, Text(f"  {_few(pulse.rate):>6}/s", style)), _Part(4, Text(floor, _FAINT))]


def amount(count: int) -> str:
    """Few digits: 940, 12.3k, 1.25M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit:
            return f"{_few(count / unit)}{name}"
    return str(count)


def _few(value: float) -> str:
    return f"{value:.3g}" if value < 99.95 else f"{value:,.0f}"
