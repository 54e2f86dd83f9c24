"""Labelled streams of agents, as a gateway would see them: drawn, not recorded, with parameters from a range.

The ranges are in benchmarks/stream_ranges.py.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.stream_ranges import Ranges, Span
from orchestrator.watch import Header, Hold, Kind, Outcome, Signal, Stream

WALL_S = 1800.0
CHUNK_S = 0.25


@dataclass
class Scribe:
    """Writes one stream down. `busy` is when the chamber used how much of a core."""

    draw: random.Random
    ranges: Ranges
    now: float = 0.0
    signals: list[Signal] = field(default_factory=list)
    busy: list[tuple[float, float, float]] = field(default_factory=list)
    steps: int = 0

    def between(self, span: Span) -> float:
        """Mostly short, seldom long: even on a scale of ratios."""
        low, high = span
        return float(low * (high / low) ** self.draw.random())

    def tell(self, kind: Kind, call: str, tokens: int = 0, digest: str = "", hold: Hold | None = None) -> None:
        self.signals.append(Signal(self.now, kind, call, tokens, digest, hold))

    def pings(self, call: str, seconds: float) -> None:
        """Nothing but signs that the connection is there."""
        end = self.now + seconds
        while self.now + self.ranges.ping < end:
            self.now += self.ranges.ping
            self.tell(Kind.PING, call)
        self.now = end

    def first_token(self, call: str, span: Span) -> None:
        self.tell(Kind.REQUESTED, call)
        self.now += 0.2
        self.tell(Kind.STARTED, call)
        self.pings(call, self.between(span))

    def hidden(self, call: str, seconds: float) -> None:
        self.tell(Kind.THINKING, call)
        self.pings(call, seconds)

    def shown(self, call: str, seconds: float) -> None:
        """Thinking in summaries that come in bursts."""
        self.tell(Kind.THINKING, call)
        end = self.now + seconds
        while self.now < end:
            self.now += self.between(self.ranges.shown_every)
            self.tell(Kind.TOKENS, call, self.draw.randint(20, 120), hold=Hold.THINKING)

    def text(self, call: str, tokens: float, rate: float) -> None:
        """At about this rate, with short pauses."""
        said = 0
        while said < tokens:
            self.now += CHUNK_S
            if self.draw.random() < self.ranges.pauses * CHUNK_S:
                self.now += self.between(self.ranges.pause)
            portion = max(1, round(rate * CHUNK_S * self.draw.lognormvariate(-0.08, 0.4)))
            said += portion
            self.tell(Kind.TOKENS, call, portion)

    def drip(self, call: str, rate: float, until: float) -> None:
        while self.now < until:
            self.now += self.draw.expovariate(rate)
            self.tell(Kind.TOKENS, call, 1)

    def work(self, seconds: float) -> None:
        """A tool that runs in the chamber."""
        self.busy.append((self.now, self.now + seconds, self.between(self.ranges.cores)))
        self.now += seconds

    def turn(
        self,
        name: str,
        rate: float,
        *,
        first: Span | None = None,
        think: Span | None = None,
        tool: Span | None = None,
        words: Span = (8, 1500),
        digest: str = "",
        answer: str = "",
    ) -> None:
        """A request, some thinking, an answer that calls a tool, and the tool."""
        self.steps += 1
        call = f"{name}{self.steps}"
        self.first_token(call, first or self.ranges.first)
        kind = self.draw.random()
        if think or kind < 0.3:
            self.hidden(call, self.between(think or self.ranges.thinking))
        elif kind < 0.5:
            self.shown(call, self.between(self.ranges.thinking))
        self.text(call, self.between(words), rate)
        self.tell(Kind.TOOL_CALLED, call, digest=digest or call)
        self.tell(Kind.FINISHED, call)
        self.now += self.between((0.02, 1.5))
        self.work(self.between(tool or self.ranges.tool))
        self.tell(Kind.TOOL_ANSWERED, call, digest=answer or call)

    def turns(self, name: str = "a", share: float = 1.0, **more: Span) -> None:
        """A healthy agent's. Now and then it looks at the same thing again, or at the same two things."""
        rate = self.between(self.ranges.rate)
        for _ in range(max(1, round(share * self.between(self.ranges.turns)))):
            seen, again = f"{name}{self.steps}", self.draw.random()
            names = [seen] * (self.draw.randint(2, self.ranges.repeats) if again < 0.05 else 1)
            if again > 0.97:
                names = [f"{seen}a", f"{seen}b"] * 2
            for digest in names:
                self.turn(name, rate, digest=digest, answer=digest, **more)

    def stream(self, label: str, outcome: Outcome, onset: float | None) -> "Labelled":
        ended = min(self.now, WALL_S) if onset is not None else self.now
        samples = self._samples(ended)
        told = [it for it in sorted([*self.signals, *samples], key=lambda it: it.at) if it.at <= ended]
        header = Header(f"{label} ({self.ranges.name})", "drawn", "drawn", self.ranges.name, label)
        return Labelled(Stream(header, tuple(told), ended, outcome), onset)

    def _samples(self, ended: float) -> Iterator[Signal]:
        """What the chamber has used so far, looked at from outside; a waiting agent uses a little."""
        spans = sorted(self.busy)
        at, used, first = 0.0, 0.0, 0
        while at < ended:
            at += self.ranges.sample
            used += 0.005 * self.ranges.sample
            while first < len(spans) and spans[first][1] <= at - self.ranges.sample:
                first += 1
            for start, end, cores in spans[first:]:
                if start >= at:
                    break
                used += cores * max(0.0, min(end, at) - max(start, at - self.ranges.sample))
            yield Signal(at, Kind.CPU, cpu_s=used)


@dataclass(frozen=True)
class Labelled:
    """`onset` is when it went wrong, None for one that is well."""

    stream: Stream
    onset: float | None

    @property
    def label(self) -> str:
        return self.stream.header.label


def _healthy(scribe: Scribe) -> None:
    scribe.now = scribe.between((0.2, 10))
    start = scribe.now
    for name in "abc"[: scribe.draw.choice((1, 1, 1, 2, 3))]:
        scribe.now = start + (scribe.between((0.1, 20)) if name != "a" else 0)
        scribe.turns(name)
    scribe.now = max(it.at for it in scribe.signals)


def _slow_start(scribe: Scribe) -> None:
    scribe.turn("s", scribe.between(scribe.ranges.rate), first=scribe.ranges.slow_start)
    scribe.turns()


def _long_thinking(scribe: Scribe) -> None:
    scribe.turns(share=0.5, think=scribe.ranges.long_thinking)


def _tool_wait(scribe: Scribe) -> None:
    scribe.turns(share=0.5, tool=scribe.ranges.long_tool)


def _retries(scribe: Scribe, call: str, most_s: float) -> None:
    """Told to wait, again and again."""
    end = scribe.now + most_s
    while scribe.now < end:
        scribe.tell(Kind.WAITING, call)
        scribe.now += scribe.between((1, 30))
        scribe.tell(Kind.REQUESTED, call)
        scribe.now += scribe.between((0.1, 2))


def _overloaded(scribe: Scribe) -> None:
    """Waits and a slow stream, now and then cut; yet it gets there."""
    rate = scribe.between(scribe.ranges.slow_rate)
    for number in range(max(2, round(scribe.between(scribe.ranges.turns) / 2))):
        call = f"o{number}"
        _retries(scribe, call, scribe.between(scribe.ranges.retry))
        scribe.first_token(call, scribe.ranges.first)
        scribe.text(call, scribe.between((20, 600)), rate)
        if scribe.draw.random() < 0.2:
            scribe.tell(Kind.CUT, call)
            scribe.now += scribe.between((0.1, 5))
        else:
            scribe.tell(Kind.FINISHED, call)
            scribe.work(scribe.between(scribe.ranges.tool))


def _overloaded_for_good(scribe: Scribe) -> float:
    scribe.turns(share=0.5)
    onset = scribe.now
    while scribe.now < WALL_S:
        scribe.steps += 1
        call = f"w{scribe.steps}"
        _retries(scribe, call, scribe.between((60, 600)))
        scribe.first_token(call, scribe.ranges.first)
        if scribe.draw.random() < 0.5:
            scribe.text(call, scribe.between((1, 10)), 2.0)
        scribe.tell(Kind.CUT, call)
        scribe.now += scribe.between((0.1, 5))
    return onset


def _drip(scribe: Scribe) -> float:
    scribe.turns(share=0.5)
    call = "drip"
    scribe.first_token(call, scribe.ranges.first)
    onset = scribe.now
    scribe.drip(call, scribe.between(scribe.ranges.drip), WALL_S)
    return onset


def _dead(scribe: Scribe) -> float:
    """In the middle of an answer (half of them), before it, while it thinks, or between calls; some still ping."""
    scribe.turns(share=0.5)
    call, rate, where = "dead", scribe.between(scribe.ranges.rate), scribe.draw.random()
    onset = scribe.now
    if where < 0.85:
        scribe.tell(Kind.REQUESTED, call)
        scribe.now += 0.2
        scribe.tell(Kind.STARTED, call)
        onset = scribe.now
    if where < 0.5:
        scribe.pings(call, scribe.between(scribe.ranges.first))
        scribe.text(call, scribe.between((8, 1500)), rate)
        onset = scribe.now
    elif where < 0.65:
        scribe.pings(call, scribe.between(scribe.ranges.first))
        scribe.tell(Kind.THINKING, call)
        onset = scribe.now
    if where < 0.85 and scribe.draw.random() < 0.5:
        scribe.pings(call, WALL_S)
    scribe.now = WALL_S
    return onset


def _looping(scribe: Scribe) -> float:
    """The same one, two or three calls with the same results, at full speed; such a step is short."""
    scribe.turns(share=0.5)
    rate = scribe.between(scribe.ranges.rate)
    low, high = scribe.ranges.cycle
    length = scribe.draw.randint(round(low), round(high))
    onset: float | None = None
    number = 0
    while scribe.now < WALL_S:
        if number == length:
            onset = scribe.now
        name = f"step {number % length}"
        scribe.turn("l", rate, tool=(0.05, 5), words=(20, 400), digest=name, answer=name)
        number += 1
    return onset if onset is not None else WALL_S


WELL: dict[str, Callable[[Scribe], None]] = {
    "healthy": _healthy,
    "slow start": _slow_start,
    "long hidden thinking": _long_thinking,
    "tool wait": _tool_wait,
    "overloaded server": _overloaded,
}
STALLS: dict[str, Callable[[Scribe], float]] = {
    "overloaded for good": _overloaded_for_good,
    "drip": _drip,
    "dead": _dead,
    "looping": _looping,
}


def drawn(label: str, ranges: Ranges, seed: int) -> Labelled:
    """The same stream for the same seed."""
    scribe = Scribe(random.Random(f"{label}/{ranges.name}/{seed}"), ranges)
    if label in WELL:
        WELL[label](scribe)
        return scribe.stream(label, Outcome.WELL, None)
    onset = STALLS[label](scribe)
    return scribe.stream(label, Outcome.STALLED, onset)
