"""Whether an agent is alive: a pure detector over the signals of its streams. The time is always an argument."""

from orchestrator.watch.config import Config
from orchestrator.watch.detector import IDLE_S, StallWatch
from orchestrator.watch.learning import Learnt, learn_floor
from orchestrator.watch.pulse import Cause, Life, Pulse
from orchestrator.watch.recording import BadStream, Header, Outcome, Stream, read_streams
from orchestrator.watch.replaying import Replayed, fair_floor, floor_warnings, lowest_rates, replay, replay_files
from orchestrator.watch.signals import Hold, Kind, Signal
from orchestrator.watch.writing import StreamWriter, recording_path

__all__ = [
    "IDLE_S",
    "BadStream",
    "Cause",
    "Config",
    "Header",
    "Hold",
    "Kind",
    "Learnt",
    "Life",
    "Outcome",
    "Pulse",
    "Replayed",
    "Signal",
    "StallWatch",
    "Stream",
    "StreamWriter",
    "fair_floor",
    "floor_warnings",
    "learn_floor",
    "lowest_rates",
    "read_streams",
    "recording_path",
    "replay",
    "replay_files",
]
