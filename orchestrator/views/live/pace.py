"""How fast a campaign goes, and when it will meet its first cap. Takes the time as an argument."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.budget import Account

_WINDOW_S = 300.0
_LEAST_S = 5.0
_MOST = 2000
PACED = (Account.ATTEMPTS, Account.COMBINATION, Account.USD, Account.SECONDS, Account.TOKENS)

Units = Mapping[Account, int]


@dataclass
class Pace:
    """What was used after each attempt that ended, over the last minutes. `since` is when the session began."""

    since: float
    before: Units = field(default_factory=dict)
    samples: deque[tuple[float, Units]] = field(default_factory=lambda: deque(maxlen=_MOST))

    def note(self, now: float, used: Units) -> None:
        self.samples.append((now, used))
        while self.samples and self.samples[0][0] < now - _WINDOW_S:
            self.since, self.before = self.samples.popleft()

    def copy(self) -> "Pace":
        return Pace(self.since, self.before, self.samples.copy())

    def per_second(self, account: Account, now: float) -> float | None:
        """None before there is anything to go by. The longer nothing ends, the slower it gets."""
        start, before = self.since, self.before
        for at, used in self.samples:
            if at >= now - _WINDOW_S:
                break
            start, before = at, used
        if not self.samples or now - start < _LEAST_S:
            return None
        return max(0, self.samples[-1][1].get(account, 0) - before.get(account, 0)) / (now - start)

    def until(self, account: Account, left: int, now: float) -> float | None:
        """Seconds to a cap at this pace; None where it is not moving towards it."""
        rate = self.per_second(account, now)
        return left / rate if rate else None
