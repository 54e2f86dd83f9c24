"""What the detector would have done to recorded streams."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
    watch, pulse = _heard(stream, config)
    # A stall ends the looking, and what comes after it may be slower still.
    whole = _heard(stream, replace(config, floor=0.0))[0] if pulse.stalled and config.floor else watch
    return Replayed(stream.header, stream.outcome, pulse, stream.ended, watch.tokens, whole.lowest)


def _heard(stream: Stream, config: Config) -> tuple[StallWatch, Pulse]:
    watch = StallWatch(config, 0.0)
    for signal in stream.signals:
        watch.hear(signal)
    return watch, watch.pulse(stream.ended)


def fair_floor(found: Iterable[Replayed]) -> float | None:
    """The highest floor that would have ended none of them by its rate, in three digits; None where none can tell."""
    lowest = min((it.lowest for it in found if it.lowest is not None), default=None)
    if not lowest:
        return lowest
    unit = 10.0 ** (math.floor(math.log10(lowest)) - 2)
    return float(f"{math.floor(lowest / unit) * unit:.3g}")


def idle_end(stream: Stream, idle_s: float = IDLE_S) -> float:
    """When a plain time-out would have ended it, which every byte of a stream starts again, a ping too."""
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
    what it had let live, and climb. Streams that cannot be read teach nothing.
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


def floor_warnings(campaign: Path, config: Config, command: str) -> list[str]:
    """Lines for a person where this configuration would have ended streams of the campaign that ended well.

    `command` shows the same again.
    """
    unreadable: list[str] = []
    well = [replay(it, config) for it in _newest(campaign, unreadable) if it.outcome is Outcome.WELL]
    ended = [it for it in well if it.stalled]
    lines = [f"one of the recorded streams cannot be read: {unreadable[0]}"] if unreadable else []
    if ended:
        first = ended[0]
        key, value = _culprit(first, config)
        lines.append(
            f"stall.{key} of {value} would have ended {len(ended)} of {len(well)} streams that ended well, first "
            f"{short(first.header.name, 40)} after {first.pulse.at:.0f} s ({first.pulse.cause}: {first.pulse.detail}); "
            f"{_remedy(key, well)}; {command} shows all"
        )
    return lines


def _culprit(found: Replayed, config: Config) -> tuple[str, str]:
    """The key of the task file that decided, and its value."""
    keys = {
        Cause.NO_FIRST_TOKEN: ("first_token", f"{config.first_token_s:g} s"),
        Cause.THINKING: ("thinking", f"{config.thinking_s:g} s"),
        Cause.TOOL: ("tool", f"{config.tool_s:g} s"),
        Cause.WAITING: ("waiting", f"{config.waiting_s:g} s"),
        Cause.LOOP: ("loop", str(config.loop)),
    }
    return keys.get(found.pulse.cause or Cause.SILENT, ("floor", f"{config.floor:g}"))


def _remedy(key: str, well: Sequence[Replayed]) -> str:
    floor = fair_floor(well) if key == "floor" else None
    return f"raise stall.{key}" if floor is None else f"lower stall.floor to at most {floor:g}"


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
