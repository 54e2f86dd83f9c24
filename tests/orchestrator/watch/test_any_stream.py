"""What is true of the detector whatever it hears."""

import math
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.watch import Cause, Config, Hold, Kind, Signal, StallWatch

CONFIG = Config(trial_s=600, judging_s=600)
# In quarters of a second, so that a sum of spans is exact.
spans = st.integers(0, 400).map(lambda quarters: quarters / 4)
signals = st.builds(
    Signal,
    at=spans,
    kind=st.sampled_from(Kind),
    call=st.sampled_from(["", "a", "b", "c"]),
    tokens=st.integers(-3, 200),
    digest=st.sampled_from(["", "x", "y"]),
    hold=st.none() | st.sampled_from(Hold),
    cpu_s=st.floats(0, 1e4),
)


def in_order(drawn: list[Signal]) -> list[Signal]:
    """Their times are taken as spans."""
    now, told = 0.0, []
    for signal in drawn:
        now += signal.at
        told.append(Signal(now, signal.kind, signal.call, signal.tokens, signal.digest, signal.hold, signal.cpu_s))
    return told


@given(st.lists(signals, max_size=60), st.lists(spans, max_size=30))
@settings(deadline=None)
def test_asking_changes_nothing(drawn: list[Signal], asked: list[float]) -> None:
    """However often and whenever it is asked, a stall is found at the same moment for the same cause."""
    told = in_order(drawn)
    plain, curious = StallWatch(CONFIG, 0.0), StallWatch(CONFIG, 0.0)
    for signal in told:
        plain.hear(signal)
        for before in asked:
            curious.pulse(signal.at - before)
        curious.hear(signal)
    end = (told[-1].at if told else 0.0) + 1000
    assert plain.pulse(end) == curious.pulse(end)


@given(st.lists(signals, max_size=60))
@settings(deadline=None)
def test_silence_can_not_be_drawn_out(drawn: list[Signal]) -> None:
    """Without a token, no signals at all put off a stall for longer than the sum of the caps and one window.

    A release is the orchestrator's own word and gives a hold its age back, so there is none here.
    """
    watch = StallWatch(CONFIG, 0.0)
    mute = [it for it in drawn if it.kind not in (Kind.TOKENS, Kind.TOOL_CALLED, Kind.RELEASED)]
    for signal in in_order(mute):
        watch.hear(signal)
    # The deadline of the first token starts again with the first request.
    latest = CONFIG.longest_silence_s + CONFIG.first_token_s
    assert watch.pulse(latest).stalled


@given(st.lists(signals, max_size=60), st.sampled_from([Kind.REQUESTED, Kind.WAITING, Kind.THINKING]))
@settings(deadline=None)
def test_a_hung_call_is_found(drawn: list[Signal], kind: Kind) -> None:
    """Whatever other calls do, one that hangs is found at its cap, and what the floor gives for their tokens.

    While the orchestrator itself holds, no call ages, so it does not here.
    """
    watch = StallWatch(CONFIG, 0.0)
    watch.hear(Signal(0.0, Kind.REQUESTED, "hung"))
    watch.hear(Signal(0.0, kind, "hung"))
    cap = {Kind.REQUESTED: CONFIG.first_token_s, Kind.WAITING: CONFIG.waiting_s, Kind.THINKING: CONFIG.thinking_s}[kind]
    for signal in in_order([it for it in drawn if it.kind is not Kind.HELD]):
        watch.hear(signal)
    assert watch.pulse(cap + watch.tokens / CONFIG.floor).stalled


@given(st.lists(signals | st.builds(Signal, st.floats(), st.sampled_from(Kind), tokens=st.integers()), max_size=60))
@settings(deadline=None)
def test_any_clock(drawn: list[Signal]) -> None:
    """Signals of any time, order or call break nothing, and a clock that goes back stands still."""
    watch = StallWatch(Config(window_s=10), 0.0)
    latest = 0.0
    for signal in drawn:
        if abs(signal.at) > 1e9 and math.isfinite(signal.at):
            continue
        watch.hear(signal)
        pulse = watch.pulse(signal.at)
        assert pulse.stalled or pulse.at >= latest
        latest = max(latest, pulse.at)
        assert pulse.tokens >= 0
        assert (pulse.cause is not None) == pulse.stalled


@given(st.lists(st.tuples(spans, st.integers(1, 400)), min_size=30, max_size=60), st.floats(0.1, 20))
@settings(deadline=None)
def test_the_lowest_rate_decides(portions: list[tuple[float, int]], floor: float) -> None:
    """What the detector calls the lowest is exactly the highest floor that lets the stream live."""
    found = replayed(portions, Config(floor=0))
    if found.lowest is None:
        return
    ended = replayed(portions, Config(floor=floor)).pulse(0)
    by_rate = ended.cause in (Cause.BELOW_FLOOR, Cause.SILENT)
    assert by_rate == (floor > found.lowest)


def replayed(portions: list[tuple[float, int]], config: Config) -> StallWatch:
    watch, now = StallWatch(config, 0.0), 0.0
    watch.hear(Signal(now, Kind.REQUESTED, "a"))
    for span, tokens in portions:
        watch.hear(Signal(now, Kind.TOKENS, "a", tokens=tokens))
        now += span
    watch.pulse(now)
    return watch


def test_memory() -> None:
    """A stream of any length, with any number of calls and tools, takes the same memory."""

    def size_after(turns: int) -> int:
        watch = StallWatch(Config(), 0.0)
        for turn in range(turns):
            call = f"call {turn:06d}"
            watch.hear(Signal(turn, Kind.REQUESTED, call))
            watch.hear(Signal(turn, Kind.TOKENS, call, tokens=50))
            watch.hear(Signal(turn, Kind.TOOL_CALLED, call, digest=f"{turn:06d}"))
            if turn % 2:
                watch.hear(Signal(turn, Kind.FINISHED, call))
        assert not watch.pulse(turns).stalled
        return len(pickle.dumps(watch))

    assert size_after(12_000) < size_after(4_000) * 1.1
