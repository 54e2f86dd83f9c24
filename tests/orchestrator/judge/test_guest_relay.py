"""How a judge's module takes times: over a channel that a busy machine disturbs, and from candidates that cheat.

The channel is scripted, clock and all: what it adds to a call is drawn, so a machine that is busy is busy alike in
every run of these tests.
"""

import importlib
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from orchestrator.judge.calibration import quieter, spread
from orchestrator.judge.guest.blastdoor_values import decode, encode
from orchestrator.judge.relay import Met
from tests.orchestrator.judge.guests import fresh_guests

EMPTY_S = 0.0003
BASELINE_S = 0.035
FAST_S = BASELINE_S / 35
JITTERS = (0.00002, 0.0002, 0.002, 0.02)


@pytest.fixture
def guest() -> Iterator[ModuleType]:
    """The module as a judge has it, with its neighbours beside it."""
    with fresh_guests():
        yield importlib.import_module("blastdoor_relay")


@dataclass
class Channel:
    """Orchestrator and candidate as the judge sees them. `work` is what a call takes, by its number; `jitter` what the
    machine adds at most, by how often the channel was measured; `null` what the candidate adds to its empty calls.
    """

    work: Callable[[int], float] = lambda _: FAST_S
    jitter: Callable[[int], float] = lambda _: 0.0
    null: Callable[[], float] = lambda: 0.0
    answer: Callable[[int, Any], Any] = lambda _, asked: asked + 1
    carry: Callable[[int], float] = lambda _: 0.0
    now: float = 0.0
    calls: list[Any] = field(default_factory=list)
    rehearsed: list[tuple[int, int]] = field(default_factory=list)
    measured: int = 0
    streamed: int = 0
    finished: dict[str, bytes] | None = None
    _rng: random.Random = field(default_factory=lambda: random.Random(13))
    _next: bytes = b""

    def __post_init__(self) -> None:
        self._figures = self._measure()
        self._next = b"B" + encode({**_table(self._figures), "functions": ["solve"]})

    def receive(self) -> tuple[bytes, memoryview]:
        return b"", memoryview(self._next)

    def send(self, _: bytes, *parts: bytes) -> None:
        wish = b"".join(parts)
        if wish[:1] == b"S":
            self.streamed += 1
            wish = wish[1:]
        match wish[:1]:
            case b"C":
                number = len(self.calls)
                self.calls.append(decode(wish[1:])[1])
                answer = encode(self.answer(number, self.calls[-1]))
                taken = self._way() + self.carry(len(wish) + len(answer)) + self.work(number)
                self.now += taken
                self._next = _reply(taken, b"V" + answer)
            case b"P":
                size = struct.unpack_from("<I", wish, 1)[0]
                self.rehearsed.append((len(wish) - 5, size))
                taken = self._way() + self.carry(len(wish) - 5 + size)
                self.now += taken
                self._next = _reply(taken, b"")
            case b"M":
                found = self._measure()
                self._figures = quieter(self._figures, found)
                self._next = _reply(0.0, encode(_table(self._figures)))
            case b"F":
                self.finished = decode(wish[1:])

    def _way(self) -> float:
        extra = self._rng.random() * self.jitter(self.measured)
        self.now += EMPTY_S + extra
        return EMPTY_S + extra

    def _measure(self) -> tuple[float, float]:
        """As the orchestrator does: the judge's channel, then the candidate's."""
        self.measured += 1
        ours = spread([self._way() for _ in range(32)])
        own = spread([self._way() + self.null() for _ in range(32)])
        return min(ours[0], own[0]), max(ours[1], own[1])


def _table(figures: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("median", "jitter"), figures, strict=True))


def _reply(taken: float, payload: bytes) -> bytes:
    return b"R" + struct.pack("<d", taken) + payload


def candidate_of(guest: ModuleType, channel: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BLASTDOOR_SEED", "7")
    monkeypatch.setattr(guest, "Frames", lambda: channel)
    monkeypatch.setattr(guest, "time", SimpleNamespace(monotonic=lambda: channel.now))
    return guest.Candidate()


def question(rng: random.Random) -> tuple[int]:
    return (rng.randrange(10**12),)


def check(answer: int, asked: int) -> None:
    blastdoor_judge = importlib.import_module("blastdoor_judge")
    if answer != asked + 1:
        raise blastdoor_judge.BadOutput("a wrong answer")


@pytest.mark.parametrize("jitter", JITTERS)
@pytest.mark.parametrize("calms_down", [True, False])
def test_the_fastest_is_scored_and_wins(
    guest: ModuleType, monkeypatch: pytest.MonkeyPatch, jitter: float, calms_down: bool
) -> None:
    """On a machine that is busy for a moment, or all the time, a candidate that is 35 times as fast has a time, and it
    is far below the baseline's.
    """
    seen = {}
    for name, work in (("baseline", BASELINE_S), ("fast", FAST_S)):
        channel = Channel(
            work=lambda _, work=work: work,  # type: ignore[misc]  # a default that binds it
            jitter=lambda measured: 0.00002 if calms_down and measured > 1 else jitter,
        )
        timing = candidate_of(guest, channel, monkeypatch).time("solve", question, check)
        seen[name] = timing.seconds
        assert timing.seconds >= work * 0.9, "less than it takes is never told"
        assert timing.seconds >= timing.resolution
    assert seen["baseline"] / seen["fast"] > (15 if calms_down or jitter < 0.001 else 2.5)


def test_as_many_calls_as_the_jitter_needs(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven calls where that is clear; where it is not, more of them, until it is; and never more than allowed."""
    counts = []
    for jitter in JITTERS:
        channel = Channel(jitter=lambda _, jitter=jitter: jitter)  # type: ignore[misc]  # a default that binds it
        counts.append(candidate_of(guest, channel, monkeypatch).time("solve", question, check).calls)
        assert len(channel.calls) == counts[-1] + 1, "the first one is not timed"
    assert counts[0] == 7
    assert counts == sorted(counts)
    assert counts[-1] > 100
    channel = Channel(work=lambda _: 0.0, jitter=lambda _: 0.02)
    assert candidate_of(guest, channel, monkeypatch).time("solve", question, check, most=50).calls == 50
    channel = Channel(work=lambda _: 0.0, jitter=lambda _: 0.02)
    candidate_of(guest, channel, monkeypatch).time("solve", question, check, seconds=1.0)
    assert channel.calls
    assert 1.0 <= channel.now < 3.0


def test_t37_no_question_twice(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many calls it takes, each has a question of its own: an answer that was kept is a wrong one."""
    channel = Channel(jitter=lambda _: 0.02)
    candidate_of(guest, channel, monkeypatch).time("solve", question, check)
    assert len(set(channel.calls)) == len(channel.calls) > 100


def test_every_answer_is_checked(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right for as long as it expects to be looked at, and wrong in the calls that were added: no solution."""
    channel = Channel(jitter=lambda _: 0.02, answer=lambda number, asked: asked + (number < 20))
    candidate = candidate_of(guest, channel, monkeypatch)
    with pytest.raises(importlib.import_module("blastdoor_judge").BadOutput, match="a wrong answer"):
        candidate.time("solve", question, check)


def test_too_fast_for_any_number_of_calls(guest: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It gets the least that can be told, never less and never nothing, and the orchestrator is told so."""
    for name in ("RESULT_PATH", "TRACES_DIR", "METRICS_PATH"):
        monkeypatch.setenv(f"BLASTDOOR_{name}", str(tmp_path / name))
    for work, at_most in ((0.0, True), (FAST_S, False)):
        channel = Channel(work=lambda _, work=work: work, jitter=lambda _: 0.001)  # type: ignore[misc]  # binds it
        candidate_of(guest, channel, monkeypatch)
        with guest.relay() as candidate:
            timing = candidate.time("solve", question, check)
        assert timing.resolved is not at_most
        assert 0 < timing.resolution <= timing.seconds <= timing.slowest
        assert channel.finished == ({"at-most": b""} if at_most else {})


def test_t27_empty_calls_that_dawdle(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """T27, T80: a candidate that is slow or erratic over empty calls gains no time by it, measured again or not."""
    rng = random.Random(3)
    for null in (lambda: 0.005, lambda: 0.05 * rng.random()):
        channel = Channel(jitter=lambda _: 0.002, null=null)
        assert candidate_of(guest, channel, monkeypatch).time("solve", question, check).seconds >= 0.95 * FAST_S


def test_both_sides_reckon_alike(guest: ModuleType) -> None:
    """What the judge's module gives as the least is what the orchestrator holds it against."""
    for calls in (1, 3, 8, 300):
        met = Met(seed="7", calls=calls, jitter_s=0.02)
        assert guest.least_told(0.02, calls) == met.resolution_s <= 0.02


@pytest.mark.parametrize("jitter", JITTERS)
def test_a_single_call(guest: ModuleType, monkeypatch: pytest.MonkeyPatch, jitter: float) -> None:
    """`reply.net` is never less than the channel can tell and never an error; a channel that was busy is measured again
    before that is said.
    """
    channel = Channel(jitter=lambda measured: jitter if measured == 1 else 0.00002)
    candidate = candidate_of(guest, channel, monkeypatch)
    first = candidate.channel
    reply = candidate.call("solve", 1)
    value, elapsed, told = reply
    assert (value, told) == (2, first)
    assert 0.9 * FAST_S <= reply.net <= elapsed
    assert reply._replace(elapsed=0.0).net == first.jitter
    assert channel.measured == (1 if elapsed - first.median >= first.jitter else 2)


def test_a_single_call_that_is_too_short(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the jitter at most, and the channel is measured a few times for it, not for every call."""
    channel = Channel(work=lambda _: 0.0, jitter=lambda _: 0.002)
    candidate = candidate_of(guest, channel, monkeypatch)
    for _ in range(20):
        assert candidate.call("solve", 1).net >= candidate.channel.jitter
    assert channel.measured == 5


def texts(rng: random.Random) -> tuple[str]:
    return (str(rng.randrange(10**9)) * 50_000,)


@pytest.mark.parametrize("jitter", JITTERS[:3])
def test_what_packing_costs_is_taken_off(guest: ModuleType, monkeypatch: pytest.MonkeyPatch, jitter: float) -> None:
    """Large arguments take longer to bring than to work on: without their way, a speed-up is what it is natively."""
    found = {}
    for work in (0.050, 0.005):
        for packing in (True, False):
            channel = Channel(
                work=lambda _, work=work: work,  # type: ignore[misc]  # a default that binds it
                jitter=lambda _: jitter,
                carry=lambda size: size * 1e-7,
                answer=lambda _, asked: asked,
            )
            candidate = candidate_of(guest, channel, monkeypatch)
            found[work, packing] = candidate.time("solve", texts, lambda *_: None, packing=packing).seconds
            assert len(channel.rehearsed) == (0 if packing else 7)
    assert found[0.050, True] / found[0.005, True] < 2
    assert found[0.050, False] / found[0.005, False] == pytest.approx(10, rel=0.15 if jitter < 0.001 else 0.4)
    channel = Channel(work=lambda _: 0.005, carry=lambda size: size * 1e-7, answer=lambda _, asked: asked)
    reply = candidate_of(guest, channel, monkeypatch).call("solve", "x" * 200_000)
    assert reply.work == pytest.approx(0.005, rel=0.1)
    assert reply.net > 0.04


def test_t27_a_long_answer_takes_nothing_off(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken off is bounded by what was asked: one that answers at length pays for its own bytes."""
    for length in (0, 10_000_000):
        channel = Channel(
            work=lambda _: 0.005,
            carry=lambda size: size * 1e-7,
            answer=lambda _, asked, length=length: "x" * length,  # type: ignore[misc]  # a default that binds it
        )
        reply = candidate_of(guest, channel, monkeypatch).call("solve", "x" * 1000)
        assert reply.work >= 0.0049 + 0.9 * length * 1e-7
        [(request, size)] = channel.rehearsed
        assert size <= request


def test_a_rehearsal(guest: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge unpacks its own request, and sends back as many bytes as it was told."""
    sent: list[bytes] = []
    asked, begun = encode(["solve", "x" * 100]), encode({"median": 0.0, "jitter": 0.0, "functions": []})
    answers = [
        b"B" + begun,
        _reply(1.0, b"V" + encode(b"")),
        b"Q" + struct.pack("<I", 6) + b"C" + asked,
        _reply(0.5, b""),
    ]
    frames = SimpleNamespace(
        receive=lambda: (b"nonce", memoryview(answers.pop(0))), send=lambda _, *parts: sent.append(b"".join(parts))
    )
    reply = candidate_of(guest, frames, monkeypatch).call("solve", "x" * 100)
    assert reply.work == 0.5
    assert sent == [b"C" + asked, b"P" + struct.pack("<I", 6) + b"C" + asked, b"Q" + asked[:6]]


def test_only_large_arguments_of_calls_that_nobody_times_are_streamed(
    guest: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate could work on what it has while the rest comes, so a call whose time counts is sent whole."""
    channel = Channel(answer=lambda _, asked: len(asked))
    candidate = candidate_of(guest, channel, monkeypatch)
    large, small = bytes(1 << 20), bytes(1000)
    assert (candidate.value("solve", small), candidate.call("solve", large).value, channel.streamed) == (
        1000,
        1 << 20,
        0,
    )
    assert (candidate.value("solve", large), candidate.function("solve")(large)) == (1 << 20, 1 << 20)
    assert channel.streamed == 2
