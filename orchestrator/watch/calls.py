"""The calls that are open, and the processor time that the agent's chamber uses."""

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.watch.config import MICRO
from orchestrator.watch.signals import Hold

_OPEN = 1024
_CLOSED = 1024
_FRESH = 15 * MICRO
_LEAST_SPAN = MICRO

# What a call that shows nothing is waiting for, the first one that applies.
ORDER = (Hold.THINKING, Hold.QUEUED, Hold.FIRST_TOKEN)


@dataclass
class _Call:
    """`heard` is the time of its last word, or of its beginning. A hold's age stays when the call leaves the hold."""

    heard: int
    hold: Hold | None = None
    spoke: bool = False
    ages: dict[Hold, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hung:
    """The call that reaches a cap next if it stays as it is: in `room`, and silent since `heard`."""

    room: int
    hold: Hold
    heard: int


class Calls:
    """Bounded: of more than a thousand at once, the oldest are forgotten. One that is closed is not opened again.

    `hold` is what any of them waits for; None where all of them stream, or there is none. Each has ages of its own,
    which the end of another call does not touch: a call that hangs is not kept alive by those beside it.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, _Call] = OrderedDict()
        self._closed: deque[str] = deque(maxlen=_CLOSED)
        self._gone: set[str] = set()
        self._holds: Counter[Hold] = Counter()
        self._aging: dict[str, _Call] = {}
        self.hold: Hold | None = None

    def __bool__(self) -> bool:
        return bool(self._open)

    def waits(self, name: str, hold: Hold, at: int, *, unless_it_streams: bool = False) -> None:
        if name in self._gone:
            return
        call = self._open.get(name)
        if call is None:
            if len(self._open) >= _OPEN:
                self.close(next(iter(self._open)))
            call = self._open[name] = _Call(heard=at)
        elif unless_it_streams and call.hold is not Hold.QUEUED:
            return
        self._put(call, hold)
        self._aging[name] = call

    def streams(self, name: str, at: int) -> None:
        self._speaks(name, at, None)

    def thinks_aloud(self, name: str, at: int) -> None:
        self._speaks(name, at, Hold.THINKING)

    def close(self, name: str) -> bool:
        """Whether it had said anything."""
        call = self._open.pop(name, None)
        if call is None:
            return False
        self._put(call, None)
        self._aging.pop(name, None)
        if len(self._closed) == _CLOSED:
            self._gone.discard(self._closed[0])
        self._closed.append(name)
        self._gone.add(name)
        return call.spoke

    def next_hung(self, caps: Mapping[Hold, int]) -> Hung | None:
        """None where no call waits."""
        nearest: Hung | None = None
        for call in self._aging.values():
            if call.hold is not None:
                room = max(0, caps[call.hold] - call.ages.get(call.hold, 0))
                if nearest is None or room < nearest.room:
                    nearest = Hung(room, call.hold, call.heard)
        return nearest

    def grow(self, span: int) -> None:
        for call in self._aging.values():
            if call.hold is not None:
                call.ages[call.hold] = call.ages.get(call.hold, 0) + span

    def give_back(self, span: int) -> None:
        for name, call in list(self._aging.items()):
            call.ages = {hold: age - span for hold, age in call.ages.items() if age > span}
            if call.hold is None and not call.ages:
                del self._aging[name]

    def _speaks(self, name: str, at: int, hold: Hold | None) -> None:
        if call := self._open.get(name):
            self._put(call, hold)
            call.spoke, call.heard = True, at
            if hold is not None:
                self._aging[name] = call

    def _put(self, call: _Call, hold: Hold | None) -> None:
        if call.hold is hold:
            return
        if call.hold is not None:
            self._holds[call.hold] -= 1
        if hold is not None:
            self._holds[hold] += 1
        call.hold = hold
        self.hold = next((it for it in ORDER if self._holds[it]), None)


class Processor:
    """Whether the chamber works, by what its cgroup has used. A sample holds for a few seconds."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._before: tuple[int, float] | None = None
        self.busy_until = 0

    def hear(self, at: int, used_s: float) -> None:
        if not math.isfinite(used_s):
            return
        if self._before is None or used_s < self._before[1]:
            self._before = (at, used_s)
            return
        since, before_s = self._before
        if at - since < _LEAST_SPAN:
            return
        if (used_s - before_s) * MICRO >= self._share * (at - since) and used_s > before_s:
            self.busy_until = at + _FRESH
        self._before = (at, used_s)
