"""Whether an agent is alive: a pure detector over the signals of its streams. The time is always an argument."""

from orchestrator.watch.config import Config
from orchestrator.watch.detector import IDLE_S, StallWatch
from orchestrator.watch.pulse import Cause, Life, Pulse
from orchestrator.watch.signals import Hold, Kind, Signal

__all__ = ["IDLE_S", "Cause", "Config", "Hold", "Kind", "Life", "Pulse", "Signal", "StallWatch"]
