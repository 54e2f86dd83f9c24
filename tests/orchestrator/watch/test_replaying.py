"""What the detector would have done to a campaign's own streams, and what can be learnt from them."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.stream_ranges import TUNING
from benchmarks.streams import drawn
from orchestrator.watch import (
    Cause,
    Config,
    Header,
    Kind,
    Outcome,
    Signal,
    Stream,
    fair_floor,
    floor_warnings,
    learn_floor,
    lowest_rates,
    replay,
)
from orchestrator.watch.recording import stream_lines
from orchestrator.watch.replaying import idle_end
from tests.chance import at_least, at_most


def steady(name: str, rate: int, seconds: int = 300, outcome: Outcome = Outcome.WELL, **header: object) -> Stream:
    told = [Signal(0.0, Kind.REQUESTED, "a")]
    told += [Signal(at / 2, Kind.TOKENS, "a", tokens=rate // 2) for at in range(2, 2 * seconds)]
    return Stream(Header(name, "agent", "model", **header), tuple(told), float(seconds), outcome)  # type: ignore[arg-type]


def keep(campaign: Path, *streams: Stream) -> Path:
    folder = campaign / "streams"
    folder.mkdir(exist_ok=True)
    for number, stream in enumerate(streams):
        (folder / f"{number:03}.jsonl").write_text("".join(stream_lines(stream)))
    return folder


def test_a_floor_that_is_too_high(tmp_path: Path) -> None:
    """A floor that would end streams which ended well is told with the evidence; a fair one is not."""
    keep(tmp_path, steady("1.1-1", 80), steady("1.2-1", 40), steady("1.3-1", 20, outcome=Outcome.STALLED))
    assert floor_warnings(tmp_path, Config(floor=10), "see") == []
    [line] = floor_warnings(tmp_path, Config(floor=50), "see")
    assert line.startswith("stall.floor of 50 would have ended 1 of 2 streams that ended well, first 1.2-1 after 45 s")
    assert "below the floor: 40 tokens/s over 60 s, the floor is 50" in line
    assert line.endswith("; lower stall.floor to at most 40; see shows all")


def test_another_key_is_to_blame(tmp_path: Path) -> None:
    """The warning names the key that would have ended them."""
    keep(tmp_path, drawn("slow start", TUNING, 2).stream)
    [line] = floor_warnings(tmp_path, Config(first_token_s=5), "see")
    assert line.startswith("stall.first_token of 5 s would have ended 1 of 1 streams")
    assert line.endswith("; raise stall.first_token; see shows all")


def test_the_advised_floor_is_enough() -> None:
    """Also for a stream that gets slower after the moment at which the floor would have ended it. Saved is what the
    recording has after the stall; a stream too short for the floor to count says nothing.
    """
    slower = [*steady("x", 40, seconds=150).signals]
    slower += [Signal(150 + at / 2, Kind.TOKENS, "a", tokens=7) for at in range(300)]
    stream = Stream(Header("x"), tuple(slower), 300.0, Outcome.WELL)
    found = replay(stream, Config(floor=50))
    floor = fair_floor([found])
    assert floor == pytest.approx(14, rel=0.05)
    assert not replay(stream, Config(floor=floor or 0)).stalled
    assert fair_floor([]) is fair_floor([replay(steady("x", 40, seconds=20), Config())]) is None
    even = replay(steady("x", 20, seconds=300), Config(floor=50))
    assert (even.pulse.cause, even.wrong, even.saved_s) == (Cause.BELOW_FLOOR, True, 300 - even.pulse.at)
    assert even.saved_tokens == pytest.approx(20 * even.saved_s, abs=20)


def test_nothing_recorded(tmp_path: Path) -> None:
    """A campaign without streams has nothing to warn of; one that cannot be read is told."""
    assert floor_warnings(tmp_path, Config(), "see") == []
    (keep(tmp_path) / "x.jsonl").write_text("hello\n")
    [line] = floor_warnings(tmp_path, Config(), "see")
    assert "x.jsonl, line 1: not JSON" in line


def test_idle_end() -> None:
    """A plain time-out ends a dead stream after its span, and one that pings never."""
    dead = Stream(Header("x"), (Signal(10, Kind.PING),), 5000.0)
    pinging = Stream(Header("x"), tuple(Signal(at, Kind.PING) for at in range(0, 5000, 60)), 5000.0)
    busy = Stream(Header("x"), tuple(Signal(at, Kind.CPU, cpu_s=at) for at in range(0, 5000, 60)), 5000.0)
    assert [idle_end(it) for it in (dead, pinging, busy)] == [1210, 5000, 1200]


def test_what_teaches(tmp_path: Path) -> None:
    """Only streams of the same agent and model count, that ended well and ran under no higher floor."""
    keep(
        tmp_path,
        steady("well", 40, floor=1.0),
        steady("stalled", 30, floor=1.0, outcome=Outcome.STALLED),
        steady("under a learnt floor", 30, floor=5.0),
        steady("of unknown floor", 30),
        Stream(Header("of another", "other", "model", floor=1.0), steady("", 30).signals, 300.0, Outcome.WELL),
    )
    [lowest] = lowest_rates(tmp_path, Config(floor=1.0), "agent", "model")
    assert lowest == pytest.approx(40, rel=0.05)


def test_what_is_learnt() -> None:
    """With fewer streams than the rate needs, the configured floor stays and nothing is promised. A learnt one is at
    most five times the configured one, and at least a tenth of it, without a promise there.
    """
    few, low = learn_floor([50.0] * 98, 1.0, 0.01), learn_floor([0.0] * 99, 1.0, 0.01)
    assert (few.floor, few.alarm_rate) == (1.0, None)
    assert few.why == "98 of the 99 streams that it takes to learn a floor"
    assert [learn_floor([rate] * 99, 1.0, 0.01).floor for rate in (4.0, 50.0)] == [4.0, 5.0]
    assert (low.floor, low.alarm_rate) == (0.1, None)
    assert learn_floor([50.0] * 99, 0.0, 0.01).floor == 0.0


@given(st.lists(st.floats(0.5, 4.9), min_size=1, max_size=200), st.floats(0.01, 0.49))
def test_rank(lowest: list[float], rate: float) -> None:
    """Of the past streams themselves, no more than the promised share lies below the learnt floor."""
    learnt = learn_floor(lowest, 1.0, rate)
    if learnt.alarm_rate is not None:
        assert learnt.alarm_rate <= rate + 1e-9
        assert sum(it < learnt.floor for it in lowest) <= learnt.alarm_rate * (len(lowest) + 1)


def test_the_promise_holds() -> None:
    """Over many pasts, a new stream of the same kind is ended no more often than was stated, and about as often.

    The stated share is exact, so chance alone breaks the bounds twice in 100,000 times.
    """
    draw = random.Random(7)
    ended = 0
    for _ in range(5000):
        past = [draw.lognormvariate(1.0, 0.5) for _ in range(39)]
        ended += draw.lognormvariate(1.0, 0.5) < learn_floor(past, 1.0, 0.05).floor
    assert at_least(5000, 0.05) <= ended <= at_most(5000, 0.05)
