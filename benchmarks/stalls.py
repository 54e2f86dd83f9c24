"""Whom the stall watch ends, how soon, and what that saves. No containers; streams are drawn (benchmarks/streams.py).

Saved is counted from the moment a stream goes wrong, and against a plain time-out that ends a stream after 1,200 s
without a byte. Any byte starts that again, so it never ends a drip, a loop or a connection that still pings: those run
to the wall limit of an agent's chamber, 1,800 s by default. A stream that the watch misses counts as wasted like that.
Seconds and tokens are summed over all stalled streams, as many of each kind. Tokens are those that a provider bills:
what the model writes, and the whole conversation so far with every request.
"""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from benchmarks.chance import wilson
from benchmarks.figure import Figure
from benchmarks.stream_ranges import CHECKING, HELD_BACK, TUNING, Ranges
from benchmarks.streams import STALLS, WALL_S, WELL, Labelled, drawn
from orchestrator.watch import Cause, Config, Kind, replay
from orchestrator.watch.replaying import idle_end

STREAMS = 4000
FIRST_PROMPT = 6000
TOOL_RESULT = 300
_STALLED_SHARE = 8


@dataclass(frozen=True)
class Seen:
    """One stream: what ended it, how long after its onset, and what was wasted with the watch and with a time-out."""

    cause: Cause | None
    delay: float = 0.0
    idle_delay: float = 0.0
    billed: int = 0
    idle_billed: int = 0
    written: int = 0
    idle_written: int = 0


def look(label: str, ranges: Ranges, config: Config, seed: int) -> Seen:
    one = drawn(label, ranges, seed)
    found = replay(one.stream, config)
    if one.onset is None:
        return Seen(found.pulse.cause)
    by_idle = max(idle_end(one.stream), one.onset)
    ended = found.pulse.at if found.stalled else by_idle
    billed, written = _tokens(one, ended)
    idle_billed, idle_written = _tokens(one, by_idle)
    delay, idle_delay = ended - one.onset, by_idle - one.onset
    return Seen(found.pulse.cause, delay, idle_delay, billed, idle_billed, written, idle_written)


def _tokens(one: Labelled, until: float) -> tuple[int, int]:
    """Billed and written from the onset on."""
    billed = written = 0
    conversation = FIRST_PROMPT
    for signal in one.stream.signals:
        if signal.at > until:
            break
        wrong = signal.at > (one.onset or 0.0)
        if signal.kind is Kind.STARTED:
            billed += conversation * wrong
        elif signal.kind is Kind.TOOL_ANSWERED:
            conversation += TOOL_RESULT
        written += signal.tokens * wrong
        conversation += signal.tokens
    return billed + written, written


def looks(label: str, ranges: Ranges, count: int, config: Config | None = None) -> list[Seen]:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(look, label, ranges, config or Config()), range(count), chunksize=25))


async def measure(streams: int) -> list[Figure]:
    figures = []
    for ranges, share in ((TUNING, 4), (CHECKING, 4), (HELD_BACK, 1)):
        well = {label: looks(label, ranges, streams // share) for label in WELL}
        stalled = {label: looks(label, ranges, max(1, streams // share // _STALLED_SHARE)) for label in STALLS}
        for label, seen in (well | stalled).items():
            figures += _row(f"{ranges.name}: {label}", seen, label in STALLS)
        goals = ranges is HELD_BACK
        figures += _false_kills(ranges.name, [it for seen in well.values() for it in seen], goals)
        figures += _saved(ranges.name, [it for seen in stalled.values() for it in seen], goals)
    return figures


def _row(name: str, seen: list[Seen], stalls: bool) -> list[Figure]:
    """What became of them, as a row of the confusion table; of stalls, how soon they were found."""
    causes = Counter(it.cause for it in seen)
    told = ", ".join(f"{count} {cause}" for cause, count in causes.most_common() if cause)
    ended = sum(count for cause, count in causes.items() if cause)
    what = f"{name}: ended of {len(seen)}" + (f" ({told})" if told else "")
    figures = [Figure(what, 100 * ended / len(seen), "%")]
    if stalls:
        delays = sorted(it.delay for it in seen if it.cause)
        for share in (0.5, 0.95):
            found = delays[min(len(delays) - 1, int(share * len(delays)))] if delays else WALL_S
            figures.append(Figure(f"{name}: found after, p{100 * share:g}", found, "s"))
        early = sum(it.cause is not None and it.delay < 0 for it in seen)
        if early:
            figures.append(Figure(f"{name}: ended before anything was wrong", 100 * early / len(seen), "%"))
    return figures


def _false_kills(name: str, seen: list[Seen], goals: bool) -> list[Figure]:
    ended = sum(it.cause is not None for it in seen)
    low, high = wilson(ended, len(seen))
    told = f"of 1,000 ({ended} of {len(seen)}; 95 %: {1000 * low:.2g} to {1000 * high:.2g})"
    share = 1000 * ended / len(seen)
    return [Figure(f"{name}: healthy streams ended", share, told, "<= 1" if goals else "")]


def _saved(name: str, seen: list[Seen], goals: bool) -> list[Figure]:
    sums = {
        field: sum(max(0, getattr(it, field)) for it in seen) for field in Seen.__dataclass_fields__ if field != "cause"
    }
    goal = {"billed": ">= 95", "delay": ">= 90"} if goals else {}
    words = {"billed": "tokens", "written": "tokens that the model wrote", "delay": "seconds"}
    return [
        Figure(
            f"{name}: {what} saved against 1,200 s of idling",
            100 * (1 - sums[field] / sums[f"idle_{field}"]),
            "%",
            goal.get(field, ""),
        )
        for field, what in words.items()
    ]
