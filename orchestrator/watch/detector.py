"""Whether an agent is alive, from what is seen of it from outside.

All time is one of two kinds. Under a hold nothing is expected; its age grows, and at its cap it is a stall. All other
time is counted: while it passes, tokens must come at the floor or above. A token gives back the part of a hold's age
that the floor gives it, and a call that ends well gives back all of it; nothing else does. So signals without tokens
can put off a stall for the sum of the caps at most, no matter what sends them.

Each call has ages of its own besides, which only tokens give back: one that hangs is found at its cap, later by no more
than the floor gives for the tokens of others, however many of them end well.
"""

import math
from collections import Counter

from orchestrator.watch.calls import Calls, Processor
from orchestrator.watch.circles import Circles
from orchestrator.watch.config import MICRO, Config, micro
from orchestrator.watch.pulse import CAUSES, Cause, Life, Pulse
from orchestrator.watch.signals import Hold, Kind, Signal
from orchestrator.watch.window import Window

_OWN = (Hold.TRIAL, Hold.JUDGING, Hold.QUEUED, Hold.TOOL, Hold.THINKING, Hold.FIRST_TOKEN)
_OUTSIDE = (Kind.HELD, Kind.RELEASED, Kind.CPU)
IDLE_S = 1200.0


class StallWatch:
    """One attempt. Time that goes back stands still; what comes late counts when it comes; memory is bounded."""

    def __init__(self, config: Config, started: float) -> None:
        self.config = config
        self._caps = {hold: micro(cap) for hold, cap in config.caps.items()}
        self._clock = self._last_byte = self._progress = self._posture_since = micro(started)
        self._ages = dict.fromkeys(Hold, 0)
        self._own: Counter[Hold] = Counter()
        self._own_hold: Hold | None = None
        self._calls = Calls()
        self._window = Window(config)
        self._circles = Circles(config.loop)
        self._processor = Processor(config.cpu)
        self._posture: Hold | Life = Life.STARTING
        self._asked = False
        self._low = False
        self._low_since = self._clock
        self._stall: Pulse | None = None
        self.tokens = 0

    @property
    def lowest(self) -> float | None:
        """The highest floor that would have let this stream live so far; None while nothing can be said."""
        return self._window.lowest

    def hear(self, signal: Signal) -> None:
        if not math.isfinite(signal.at):
            return
        self._advance(micro(signal.at))
        if signal.kind not in _OUTSIDE:
            self._last_byte = self._clock
        if self._stall is None:
            self._take(signal)
            self._settle()
        elif signal.kind is Kind.TOKENS:
            self.tokens += max(0, signal.tokens)

    def pulse(self, now: float) -> Pulse:
        """What is known at `now`. Asking changes nothing: a stall has its own time, whenever it is asked for."""
        if math.isfinite(now):
            self._advance(micro(now))
        if self._stall:
            return self._stall
        hold = self._hold()
        if hold is not None:
            state = Life.STARTING if hold is Hold.FIRST_TOKEN and not self.tokens else Life.HELD
            return self._pulse(state, self._posture_since, hold=hold, detail=f"waits: {hold}")
        return self._pulse(Life.LOW if self._low else Life.WORKING, self._posture_since, rate=self._window.rate())

    def saved_s(self, now: float, idle_s: float = IDLE_S) -> float:
        """How much longer a time-out would wait that any byte of a stream, a ping too, starts again."""
        return max(0.0, (self._last_byte + micro(idle_s) - micro(now)) / MICRO)

    def _take(self, signal: Signal) -> None:
        match signal.kind:
            case Kind.REQUESTED:
                if not self._asked:
                    self._asked, self._ages[Hold.FIRST_TOKEN] = True, 0
                self._calls.waits(signal.call, Hold.FIRST_TOKEN, self._clock)
            case Kind.WAITING:
                self._calls.waits(signal.call, Hold.QUEUED, self._clock)
            case Kind.STARTED:
                self._calls.waits(signal.call, Hold.FIRST_TOKEN, self._clock, unless_it_streams=True)
            case Kind.THINKING:
                self._calls.waits(signal.call, Hold.THINKING, self._clock)
            case Kind.TOKENS:
                self._speak(signal)
            case Kind.TOOL_CALLED:
                self._calls.streams(signal.call, self._clock)
                self._circles.called(signal.digest)
            case Kind.TOOL_ANSWERED:
                self._answered(signal.digest)
            case Kind.FINISHED:
                if self._calls.close(signal.call):
                    self._ages = dict.fromkeys(Hold, 0)
                    self._progress = self._clock
            case Kind.CUT:
                self._calls.close(signal.call)
            case Kind.HELD:
                self._keep(signal.hold)
            case Kind.RELEASED:
                self._release(signal.hold)
            case Kind.CPU:
                self._processor.hear(self._clock, signal.cpu_s)
            case Kind.PING:
                pass

    def _speak(self, signal: Signal) -> None:
        thought = signal.hold is Hold.THINKING
        if thought:
            self._calls.thinks_aloud(signal.call, self._clock)
        else:
            self._calls.streams(signal.call, self._clock)
        if signal.tokens <= 0:
            return
        self.tokens += signal.tokens
        self._progress = self._clock
        given_back = micro(signal.tokens / self.config.floor) if self.config.floor else max(self._caps.values())
        for hold, age in self._ages.items():
            if age:
                self._ages[hold] = max(0, age - given_back)
        self._calls.give_back(given_back)
        if self._hold() is None:
            self._window.add(signal.tokens)

    def _answered(self, digest: str) -> None:
        if found := self._circles.answered(digest, self._clock):
            if found.length == 1:
                detail = f"the same call with the same result {found.repeats + 1} times in a row"
            else:
                detail = f"{found.repeats} steps in a row repeat a cycle of {found.length}, with the same results"
            self._end(Cause.LOOP, detail, found.since)

    def _keep(self, hold: Hold | None) -> None:
        if hold:
            self._own[hold] += 1
            self._own_hold = next(it for it in _OWN if self._own[it])

    def _release(self, hold: Hold | None) -> None:
        if hold and self._own[hold]:
            self._own[hold] -= 1
            self._ages[hold] = 0
            self._own_hold = next((it for it in _OWN if self._own[it]), None)

    def _hold(self) -> Hold | None:
        """Why nothing is expected right now; None where time counts."""
        if self._own_hold:
            return self._own_hold
        if self._calls:
            return self._calls.hold
        if self._clock < self._processor.busy_until:
            return Hold.TOOL
        return None if self.tokens else Hold.FIRST_TOKEN

    def _advance(self, to: int) -> None:
        while self._clock < to and self._stall is None:
            hold = self._hold()
            if hold is not None:
                self._wait(hold, to)
            else:
                self._count(to)
            if self._stall is None:
                self._settle()

    def _wait(self, hold: Hold, to: int) -> None:
        if hold is Hold.TOOL and not self._own_hold:
            to = min(to, self._processor.busy_until)
        room = max(0, self._caps[hold] - self._ages[hold])
        hung = None if self._own_hold else self._calls.next_hung(self._caps)
        if hung and hung.room < room and to - self._clock >= hung.room:
            self._clock += hung.room
            waited = f"one call waited {self._caps[hung.hold] / MICRO:g} s without progress: {hung.hold}"
            self._end(CAUSES[hung.hold], waited, hung.heard)
            return
        if to - self._clock >= room:
            self._clock += room
            self._end(CAUSES[hold], f"waited {self._caps[hold] / MICRO:g} s without progress: {hold}", self._progress)
            return
        if hung:
            self._calls.grow(to - self._clock)
        self._ages[hold] += to - self._clock
        self._clock = to

    def _count(self, to: int) -> None:
        if to - self._clock < self._window.left:
            self._window.wait(to - self._clock)
            self._clock = to
            return
        if not self.config.floor and self._window.lowest == 0 and self._window.empty:
            self._clock = to
            return
        self._clock += self._window.left
        rate = self._window.close()
        if rate is None or not self.config.floor:
            return
        low = rate < self.config.floor * (self.config.recovery if self._low else 1)
        if low and not self._low:
            self._low_since = self._clock
        self._low = low
        if self._window.stays_below(self.config.floor):
            silent = self._window.empty
            detail = f"{rate:.3g} tokens/s over {self.config.window_s:g} s, the floor is {self.config.floor:g}"
            self._end(
                Cause.SILENT if silent else Cause.BELOW_FLOOR, detail, self._progress if silent else self._low_since
            )

    def _settle(self) -> None:
        """Note since when it is as it is."""
        posture = self._hold() or (Life.LOW if self._low else Life.WORKING)
        if posture != self._posture:
            self._posture, self._posture_since = posture, self._clock

    def _end(self, cause: Cause, detail: str, since: int) -> None:
        rate = self._window.rate() if self._hold() is None else None
        self._stall = self._pulse(Life.STALLED, since, rate=rate, cause=cause, detail=detail)

    def _pulse(
        self,
        state: Life,
        since: int,
        *,
        rate: float | None = None,
        hold: Hold | None = None,
        cause: Cause | None = None,
        detail: str = "",
    ) -> Pulse:
        at, began = self._clock / MICRO, since / MICRO
        return Pulse(state, at, began, self.tokens, self.config.floor, rate, hold, cause, detail)
