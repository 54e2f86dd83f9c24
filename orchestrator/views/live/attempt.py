"""One line of an attempt at work: what it does, for how long, and what the model that works on it uses."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from orchestrator.domain.records import Role
from orchestrator.text import short
from orchestrator.views.campaign import figures
from orchestrator.views.live.pulses import Pulse
from orchestrator.views.live.scene import PROPOSING, Work

_FAINT = "bright_black"
_PHASE = 14


class _Part(NamedTuple):
    """`rank` says what stays where there is no room: the lowest."""

    rank: int
    text: Text


def attempt_line(
    work: Work, mark: tuple[str, str], names: int, width: int, now: float, pulse: Pulse | None = None
) -> Text:
    """Without a model, phase and times alone. With one, as much as fits: its rate, dollars, tokens, then the rest."""
    phase = short(pulse.phase, _PHASE) if pulse and pulse.phase and work.phase == PROPOSING else work.phase
    head = Text.assemble(mark, (f"{work.node:<{names}}", "bold"), f"  {phase:<{_PHASE}}")
    head.append(f" {figures.duration(now - work.since):>6}")
    whole = _Part(5, Text(f"  {figures.duration(now - work.opened):>6} in all"))
    role = _Part(6, Text(f"  {work.role}" if work.role is not Role.SEARCH else "", _FAINT))
    if pulse is None and not work.tokens:
        return Text.assemble(head, whole.text, role.text)
    return _fitted(head, [whole, *_used(work, pulse), role], width)


def _used(work: Work, pulse: Pulse | None) -> list[_Part]:
    """A pulse is ahead of what is booked, or behind it for a moment: the larger is the later."""
    tokens = max(work.tokens, pulse.tokens if pulse else 0)
    micro = max(work.microdollars, round(pulse.usd * 1_000_000) if pulse else 0)
    told = [_Part(3, Text(f"  {amount(tokens):>6} tokens"))]
    if pulse and pulse.rate is not None:
        slow = pulse.rate < pulse.floor
        told.append(_Part(1, Text(f"  {_few(pulse.rate):>5}/s", "bold yellow" if slow else "green")))
        told.append(_Part(4, Text(f" (floor {pulse.floor:g})", _FAINT)))
    told.append(_Part(2, Text(f"  {figures.dollars(micro)}")))
    if pulse and pulse.state:
        told.append(_Part(7, Text(f"  {short(pulse.state, 24)}", _FAINT)))
    return told


def _fitted(head: Text, parts: Sequence[_Part], width: int) -> Text:
    """The parts in their order, without those that there is no room for."""
    room, kept = width - head.cell_len, set()
    for rank, text in sorted(parts, key=lambda part: part.rank):
        if text.cell_len > room:
            break
        room -= text.cell_len
        kept.add(rank)
    return Text.assemble(head, *(text for rank, text in parts if rank in kept))


def amount(count: int) -> str:
    """Few digits: 940, 12.3k, 1.25M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit:
            return f"{_few(count / unit)}{name}"
    return str(count)


def _few(value: float) -> str:
    return f"{value:.3g}" if value < 99.95 else f"{value:,.0f}"
