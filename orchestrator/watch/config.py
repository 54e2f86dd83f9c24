"""What the detector allows. The defaults are those of the task file's `[stall]`."""

import math
from dataclasses import dataclass, fields

from orchestrator.watch.signals import Hold

BINS = 60
MICRO = 1_000_000


@dataclass(frozen=True)
class Config:
    """All in seconds, but: `floor` in tokens a second (0: none), `loop` in repeats, and three shares.

    `patience` is the part of the window for which the rate must stay below the floor before that is a stall. `recovery`
    is how many times the floor a low rate must reach to count as well again, so that one around the floor does not
    flap. `cpu` is the part of one core that a chamber must use to count as working.
    """

    first_token_s: float = 120.0
    floor: float = 1.0
    window_s: float = 60.0
    grace_s: float = 30.0
    thinking_s: float = 300.0
    tool_s: float = 600.0
    waiting_s: float = 240.0
    trial_s: float = 3600.0
    judging_s: float = 3600.0
    loop: int = 4
    patience: float = 0.25
    recovery: float = 1.5
    cpu: float = 0.05

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = {"floor": 0, "cpu": 0, "window_s": 1, "recovery": 1}.get(field.name, 1e-3)
            if not least <= value < math.inf:
                raise ValueError(f"{field.name} must be a number of at least {least:g}, not {value}")
        if self.loop < 2:
            raise ValueError(f"loop must be at least 2, not {self.loop}: nothing repeats once")

    @property
    def caps(self) -> dict[Hold, float]:
        """How long each hold may last without any progress."""
        return {
            Hold.FIRST_TOKEN: self.first_token_s,
            Hold.THINKING: self.thinking_s,
            Hold.TOOL: self.tool_s,
            Hold.QUEUED: self.waiting_s,
            Hold.TRIAL: self.trial_s,
            Hold.JUDGING: self.judging_s,
        }

    @property
    def patient_bins(self) -> int:
        return max(1, round(self.patience * BINS))

    @property
    def longest_silence_s(self) -> float:
        """Without a token, whatever else is heard, a stall is found no later than this (where there is a floor)."""
        return sum(self.caps.values()) + self.grace_s + (1 + self.patience + 2 / BINS) * self.window_s


def micro(seconds: float) -> int:
    """The detector counts in whole microseconds: sums are exact, however often it is asked."""
    return round(seconds * MICRO)
