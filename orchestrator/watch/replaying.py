"""What the detector would have done to recorded streams."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.text import short
from orchestrator.watch.config import Config
from orchestrator.watch.detector import IDLE_S, StallWatch
from orchestrator.watch.pulse import Cause, Pulse
from orchestrator.watch.recording import FOLDER, BadStream, Header, Outcome, Stream, read_streams, recorded_files
from orchestrator.watch.signals import Kind

_NEWEST = 200


@dataclass(frozen=True)
class Replayed:
    """`pulse` is the stall, or the last one where there was none. Saved is what the recording has after the stall.

    `lowest` is the highest floor that would not have ended it by its rate; None for a stream too short to tell.
    """

    header: Header
    outcome: Outcome
    pulse: Pulse
    ended: float
    tokens: int
    lowest: float | None

    @property
    def stalled(self) -> bool:
        return self.pulse.stalled

    @property
    def saved_s(self) -> float:
        return max(0.0, self.ended - self.pulse.at) if self.stalled else 0.0

    @property
    def saved_tokens(self) -> int:
        return self.tokens - self.pulse.tokens if self.stalled else 0

    @property
    def wrong(self) -> bool:
        """It would have been ended, and yet it ended well."""
        return self.stalled and self.outcome is Outcome.WELL


def replay(stream: Stream, config: Config) -> Replayed:
    watch = StallWatch(config, 0.0)
    for signal in stream.signals:
        watch.hear(signal)
    pulse = watch.pulse(stream.ended)
    return Replayed(stream.header, stream.outcome, pulse, stream.ended, watch.tokens, watch.lowest)


def idle_end(stream: Stream, idle_s: float = IDLE_S) -> float:
    """When a plain time-out would have ended it, which every byte of a stream starts anew, a ping too."""
    last = 0.0
    for signal in stream.signals:
        if signal.kind in (Kind.HELD, Kind.RELEASED, Kind.CPU):
            continue
        if signal.at - last >= idle_s:
            break
        last = max(last, signal.at)
    return min(stream.ended, last + idle_s)


def replay_files(places: Iterable[Path], config: Config) -> Iterator[Replayed]:
    """Raises BadStream and OSError."""
    for place in places:
        for path in recorded_files(place):
            for stream in read_streams(path):
                yield replay(stream, config)


def lowest_rates(campaign: Path, config: Config, agent: str, model: str) -> list[float]:
    """Of an agent's streams that ended well, what a floor can be learnt from.

    Only those count that ran under no higher floor than the configured one: a learnt floor would otherwise see only
    what it had let live, and climb. Streams that can not be read teach nothing.
    """
    found = []
    for stream in _newest(campaign, []):
        header = stream.header
        known = header.floor is not None and header.floor <= config.floor
        if (header.agent, header.model) == (agent, model) and known and stream.outcome is Outcome.WELL:
            lowest = replay(stream, config).lowest
            if lowest is not None:
                found.append(lowest)
    return found


def floor_warnings(campaign: Path, config: Config) -> list[str]:
    """Lines for a person where this configuration would have ended streams of the campaign that ended well."""
    unreadable: list[str] = []
    well = [it for it in _newest(campaign, unreadable) if it.outcome is Outcome.WELL]
    ended = [it for it in (replay(stream, config) for stream in well) if it.stalled]
    lines = [f"one of the recorded streams can not be read: {unreadable[0]}"] if unreadable else []
    if ended:
        first = ended[0]
        lines.append(
            f"{_culprit(first, config)} would have ended {len(ended)} of {len(well)} streams that ended well, first "
            f"{short(first.header.name, 40)} after {first.pulse.at:.0f} s ({first.pulse.cause}: {first.pulse.detail}); "
            f"be more patient, or see blastdoor stalls --replay {campaign / FOLDER}"
        )
    return lines


def _culprit(found: Replayed, config: Config) -> str:
    """The key of the task file that decided, and its value."""
    keys = {
        Cause.NO_FIRST_TOKEN: ("first_token", f"{config.first_token_s:g} s"),
        Cause.THINKING: ("thinking", f"{config.thinking_s:g} s"),
        Cause.TOOL: ("tool", f"{config.tool_s:g} s"),
        Cause.WAITING: ("waiting", f"{config.waiting_s:g} s"),
        Cause.LOOP: ("loop", str(config.loop)),
    }
    key, value = keys.get(found.pulse.cause or Cause.SILENT, ("floor", f"{config.floor:g}"))
    return f"stall.{key} of {value}"


def _newest(campaign: Path, unreadable: list[str]) -> Iterator[Stream]:
    """Those of the last attempts, so that a long campaign does not take long to look at."""
    folder = campaign / FOLDER
    if not folder.is_dir():
        return
    files = sorted(recorded_files(folder), key=lambda path: path.stat().st_mtime)
    for path in files[-_NEWEST:]:
        try:
            yield from read_streams(path)
        except BadStream as error:
            unreadable.append(str(error))
