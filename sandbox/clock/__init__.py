"""The clock of relayed calls, in a process of its own: nothing that this process does is in their times."""

from sandbox.clock.clock import HUNG_S, Clock
from sandbox.clock.times import CallTimes

__all__ = ["HUNG_S", "CallTimes", "Clock"]
