"""Streams on disk: what is written is read again, and what somebody else wrote is read with care.

Drawn streams are what their labels say, and the detector tells them apart where it was tuned.
"""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.stalls import looks
from benchmarks.stream_ranges import CHECKING, TUNING, Ranges
from benchmarks.streams import STALLS, WALL_S, WELL, drawn
from orchestrator.watch import (
    BadStream,
    Config,
    Header,
    Hold,
    Kind,
    Outcome,
    Signal,
    StreamWriter,
    read_streams,
    replay,
)
from orchestrator.watch.recording import Stream, recorded_files, stream_lines
from orchestrator.watch.writing import KEPT, TOGETHER_S, recording_path

HEADER = Header("1.4-1", "claude-code", "model", "plain", floor=1.0)
GOOD = '{"stream":1,"name":"x"}\n'


def written(path: Path, stream: Stream, started: float = 1000.0) -> Stream:
    """As an attempt would be recorded, and read again."""
    writer = StreamWriter(path, stream.header, started)
    for it in stream.signals:
        writer.hear(Signal(started + it.at, it.kind, it.call, it.tokens, it.digest, it.hold, it.cpu_s))
    writer.close(started + stream.ended, stream.outcome)
    [found] = read_streams(path)
    return found


@pytest.mark.parametrize("ranges", [TUNING, CHECKING], ids=lambda it: it.name)
@pytest.mark.parametrize("label", [*WELL, *STALLS])
def test_a_recording_says_the_same(label: str, ranges: Ranges, tmp_path: Path) -> None:
    """What the detector says of a recording is what it said of the stream itself, but for a fraction of a second."""
    stream = drawn(label, ranges, 0).stream
    live, recorded = replay(stream, Config()), replay(written(tmp_path / "x.jsonl", stream), Config())
    assert recorded.pulse.cause == live.pulse.cause
    assert recorded.pulse.at == pytest.approx(live.pulse.at, abs=Config().window_s / 60 + TOGETHER_S)
    assert recorded.tokens == live.tokens
    assert recorded.header == stream.header


def test_tokens_become_few_signals(tmp_path: Path) -> None:
    """A thousand deltas a second are some lines a second, and none of their tokens is lost."""
    signals = [Signal(0.0, Kind.REQUESTED, "call-0123456789abcdef")]
    signals += [Signal(n / 1000, Kind.TOKENS, "call-0123456789abcdef", tokens=1) for n in range(10_000)]
    stream = Stream(HEADER, tuple(signals), 10.0, Outcome.WELL)
    found = written(tmp_path / "x.jsonl", stream)
    assert len(found.signals) <= 42
    assert sum(it.tokens for it in found.signals) == 10_000
    assert (tmp_path / "x.jsonl").stat().st_size < 4000


def test_calls_side_by_side(tmp_path: Path) -> None:
    """Tokens of two calls, thought and shown, are kept apart."""
    signals = [Signal(n / 100, Kind.TOKENS, call, 1, hold=hold) for n in range(20) for call, hold in MIXED]
    found = written(tmp_path / "x.jsonl", Stream(HEADER, tuple(signals), 1.0, Outcome.WELL))
    assert [(it.call, it.tokens, it.hold) for it in found.signals] == [("1", 20, None), ("2", 20, Hold.THINKING)]


MIXED: list[tuple[str, Hold | None]] = [("a", None), ("b", Hold.THINKING)]


def test_a_crash_leaves_a_stream(tmp_path: Path) -> None:
    """A stream without an end, cut in the middle of a line, is read up to there and did not end well."""
    path = tmp_path / "x.jsonl"
    lines = list(stream_lines(drawn("healthy", TUNING, 1).stream))
    path.write_text("".join(lines[:40]) + lines[40][:10])
    [found] = read_streams(path)
    assert len(found.signals) == 39
    assert found.outcome is Outcome.CUT_OFF
    assert found.ended == found.signals[-1].at


def test_several_in_a_file(tmp_path: Path) -> None:
    """Streams may follow each other in one file, with or without an end."""
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD + '{"at":1,"kind":"ping"}\n' + GOOD + '{"ended":3,"outcome":"ended well"}\n')
    assert [(it.ended, it.outcome) for it in read_streams(path)] == [(1, Outcome.CUT_OFF), (3, Outcome.WELL)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no stream in it"),
        ("hello\n", "line 1: not JSON"),
        ("[1]\n", "not a JSON object"),
        ('{"at":1,"kind":"ping"}\n', "begins with a line about itself"),
        ('{"stream":2}\n', "another version"),
        ('{"stream":1,"secret":1}\n', "unknown key secret"),
        ('{"stream":1,"name":7}\n', "name is text"),
        (GOOD + '{"at":NaN,"kind":"ping"}\n', "line 2: not JSON"),
        (GOOD + '{"at":-1,"kind":"ping"}\n', "at is a number"),
        (GOOD + '{"at":true,"kind":"ping"}\n', "at is a number"),
        (GOOD + '{"at":1,"kind":"pong"}\n', "no known kind"),
        (GOOD + '{"at":1,"kind":["ping"]}\n', "no known kind"),
        (GOOD + '{"at":1,"kind":"held","hold":"tea"}\n', "no known hold"),
        (GOOD + '{"at":1,"kind":"tokens","tokens":-5}\n', "tokens is a whole number"),
        (GOOD + '{"at":1,"kind":"tokens","tokens":1.5}\n', "tokens is a whole number"),
        (GOOD + '{"ended":1,"outcome":"gold"}\n', "the outcome is one of"),
        (GOOD + "[" * 10_000 + "\n", "not JSON"),
        (GOOD + "x" * 20_000 + "\n", "longer than 16KiB"),
        (GOOD + '{"\x1b[2J":1}\n', "not JSON"),
    ],
)
def test_bad_files(text: str, why: str, tmp_path: Path) -> None:
    """Whatever a file holds, the answer is one plain line that names the file, the line and the fault."""
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(BadStream) as caught:
        list(read_streams(path))
    said = str(caught.value)
    assert why in said
    assert "bad.jsonl, line" in said
    assert said.isprintable()


def complaint(path: Path) -> str:
    """What is wrong with it; empty where it was read, and replayed."""
    try:
        for stream in read_streams(path):
            replay(stream, Config())
    except BadStream as error:
        return str(error)
    return ""


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    """No bytes at all raise anything else."""
    path = tmp_path / "any.jsonl"
    path.write_bytes(GOOD.encode() + data)
    said = complaint(path)
    assert "\n" not in said


@given(st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
def test_garbled_lines(tmp_path: Path, draw: random.Random) -> None:
    """A recording in which values were swapped for others is refused or read, and replayed without harm."""
    path = tmp_path / "garbled.jsonl"
    lines = [json.loads(line) for line in stream_lines(drawn("healthy", TUNING, 3).stream)][:200]
    values: list[object] = [None, -1, 1e300, 10**40, "x" * 500, [], {}, True, "", "tokens", 3]
    for _ in range(3):
        told = draw.choice(lines)
        told[draw.choice([*told])] = draw.choice(values)
    path.write_text("".join(json.dumps(it) + "\n" for it in lines))
    said = complaint(path)
    assert not said or "garbled.jsonl, line" in said


def test_a_full_disk_holds_nothing_up(tmp_path: Path) -> None:
    """Where nothing can be written, the attempt goes on and is not recorded."""
    (tmp_path / "streams").write_text("a file where a folder should be")
    writer = StreamWriter(recording_path(tmp_path, "1.1", 1), HEADER, 0.0)
    writer.hear(Signal(1.0, Kind.REQUESTED, "a"))
    writer.close(2.0, Outcome.WELL)
    writer.close(3.0, Outcome.WELL)
    assert (tmp_path / "streams").is_file()


def test_only_the_last_are_kept(tmp_path: Path) -> None:
    """A long campaign does not fill the disk: the oldest recordings go."""
    folder = tmp_path / "streams"
    folder.mkdir()
    for number in range(KEPT + 5):
        (folder / f"{number}.jsonl").touch()
        os.utime(folder / f"{number}.jsonl", (number, number))
    StreamWriter(recording_path(tmp_path, "1.1", 1), HEADER, 0.0).close(1.0, Outcome.WELL)
    names = {path.name for path in recorded_files(folder)}
    assert len(names) == KEPT
    assert "1.1-1.jsonl" in names
    assert "5.jsonl" not in names


@pytest.fixture(autouse=True)
def _quiet(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """A warning about a disk is for the log."""
    yield
    capsys.readouterr()


@pytest.mark.parametrize("ranges", [TUNING, CHECKING], ids=lambda it: it.name)
@pytest.mark.parametrize("label", [*WELL, *STALLS])
def test_drawn(label: str, ranges: Ranges) -> None:
    """A seed gives the same stream; times go forward; only stalls have an onset, and they last to the wall limit."""
    one, again = drawn(label, ranges, 5), drawn(label, ranges, 5)
    assert one == again
    times = [it.at for it in one.stream.signals]
    assert times == sorted(times)
    assert times[-1] <= one.stream.ended
    assert (one.onset is None) == (label in WELL)
    assert (one.stream.outcome is Outcome.WELL) == (label in WELL)
    if one.onset is not None:
        assert one.onset < WALL_S
        assert one.stream.ended == WALL_S


@pytest.mark.parametrize("label", [*WELL, *STALLS])
def test_told_apart(label: str) -> None:
    """A sample of each kind: the healthy live, the stalled are found."""
    seen = looks(label, CHECKING, 12)
    assert [it.cause is not None for it in seen] == [label in STALLS] * 12
