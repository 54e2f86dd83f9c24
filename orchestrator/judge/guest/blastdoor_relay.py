"""A judge that calls the candidate. Standard library only, Python 3.9 up.

    from blastdoor_judge import BadOutput, publish
    from blastdoor_relay import relay

    def question(rng):                                 # the arguments of one call, from a generator of its own
        return ([rng.random() for _ in range(1000)],)

    def check(answer, numbers):
        if answer != sorted(numbers):
            raise BadOutput("not sorted")

    with relay() as candidate:                         # BadOutput inside means: no solution, no score
        timing = candidate.time("solve", question, check)
        publish(timing.seconds, metrics={"seconds": timing.seconds})

`candidate.call("solve", [3, 1, 2])` is a single call in another chamber; only plain values cross. Times are measured by
the orchestrator's clock, outside of both chambers. What an empty call takes is taken off, and what is so short that the
channel cannot tell it from nothing is called again, with new questions, and again, before the least that it can tell
is given in its place. Where you call by hand, draw each question from a `candidate.rng()` of its own: its seed is new
each time, and the candidate does not know it. The result is handed over when the block is left; what is published after
that, and an error that leaves the block, is no result.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import random
import statistics
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from blastdoor_frames import Frames
from blastdoor_judge import BadOutput, invalid
from blastdoor_kinds import (
    ENUM,
    Named,
    Remote,
    decode_exact,
    exact_pieces,
    member_of,
    named_of,
    number_of_member,
    rebuilt,
    tuple_classes,
)
from blastdoor_values import Malformed, NotPlain, Writer, decode, encode

__all__ = [
    "BadReply",
    "BelowJitter",
    "Candidate",
    "Channel",
    "Handle",
    "NoFunction",
    "NotPlain",
    "Raised",
    "Reply",
    "Timing",
    "relay",
]

# So often a channel is measured again in one judging: it costs some dozens of empty calls each time.
_MEASURES = 4
# A time is clear once it is so many times the least that the calls so far can tell.
_CLEAR = 2
# So many empty calls the channel's figures are from; the orchestrator has the same number.
_EMPTY_CALLS = 32
_AT_MOST = "at-most"
# Objects of the candidate's that are held at most, and how many numbers each place has; its module has the same.
OBJECTS = 10_000
_PLACES = 1 << 20
# From so many bytes on it is worth sending a request on before it is whole; the orchestrator has the same number.
_LARGE = 1 << 20


class BadReply(BadOutput):  # type: ignore[misc]  # the helper beside it has no types where this is checked
    """The candidate's answer is no plain value."""


class NoFunction(BadReply):
    """The candidate has no function of that name."""


class Raised(BadReply):
    """The candidate's function raised an error; the message is the candidate's own word.

    `error` is an error of Python's own, made here: of the name that the candidate gave, if it is one of a fixed list,
    else a RuntimeError.
    """

    error: Exception = RuntimeError()


class BelowJitter(BadOutput):  # type: ignore[misc]  # as above
    """For judges that name it. It is no longer raised: a call that is too short to be timed is nobody's fault."""


class Channel(NamedTuple):
    """What an empty call takes, and how far nine of ten differ from that; in seconds, by the orchestrator's clock."""

    median: float
    jitter: float


class _Answer(NamedTuple):
    value: Any
    elapsed: float
    channel: Channel


class Reply(_Answer):
    """`elapsed` is from the request leaving the orchestrator to the answer being there."""

    _least: Callable[[float], Channel] | None = None
    _rehearse: Callable[[], float] | None = None

    @property
    def net(self) -> float:
        """The seconds that are the candidate's own, and never less than the channel's jitter: what is shorter is not
        known any better from a single call. `Candidate.time` is for that.
        """
        channel = self._least(self.elapsed) if self._least else self.channel
        return max(self.elapsed - channel.median, channel.jitter)

    @property
    def work(self) -> float:
        """As `net`, without what it takes to bring the arguments there, to unpack them, and to bring as many bytes
        back: that is measured now, in the judge's own chamber. For arguments that are large.
        """
        way = self._rehearse() if self._rehearse else self.channel.median
        return max(self.elapsed - way, self.channel.jitter)


def least_told(jitter: float, calls: int) -> float:
    """The least that the median of so many calls tells from nothing; the orchestrator reckons the same. A call tells no
    less than the jitter, and many tell less, as far as it is known what an empty call takes.
    """
    return jitter * min(1.0, 2 * math.sqrt(1 / calls + 1 / _EMPTY_CALLS))


class Timing(NamedTuple):
    """`seconds` is what a call takes, the median of `calls`; `slowest` is the longest of them.

    `resolution` is the least that so many calls can tell from nothing over their channel. Where `seconds` is no more
    than that, the candidate may have been faster.
    """

    seconds: float
    slowest: float
    calls: int
    resolution: float

    @property
    def resolved(self) -> bool:
        return self.seconds > self.resolution


class Handle:
    """An object of a class that the judge named, which stays in the candidate's chamber; here it is a number.

    Its methods are called as usual and give plain values. It says nothing else of itself: it is neither true nor false,
    has no length and no members, and equals only itself.
    """

    __slots__ = ("_candidate", "_remote")

    def __init__(self, candidate: Candidate, remote: Remote) -> None:
        self._candidate = candidate
        self._remote = remote

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(f"{name} of a candidate's object cannot be reached")
        return partial(self._candidate.function(f"{self._remote.kind}.{name}"), self)

    def __bool__(self) -> bool:
        raise TypeError("an object of the candidate is neither true nor false; call one of its methods")

    def __repr__(self) -> str:
        return f"<{self._remote.kind} {self._remote.number} of the candidate>"


class Candidate:
    """Whom the judge calls. `functions` are those that it says it has, `channel` the best that was measured."""

    def __init__(
        self,
        *,
        exact: bool = False,
        classes: Sequence[str] = (),
        enums: Sequence[str] = (),
        tuples: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._exact = exact or bool(classes) or bool(enums) or bool(tuples)
        self._classes = list(classes)
        self._enums = list(enums)
        self.tuples: dict[str, Any] = tuple_classes(tuples or {})
        self._handles: dict[Remote, Handle] = {}
        # For one who has a Handle of its own kind.
        self.new_handle: Callable[[Candidate, Remote], Handle] = Handle
        # Of the last call of `value`; None where nobody knows it.
        self.elapsed: float | None = None
        self.rehearse: Callable[[], float] | None = None
        self.size = 0
        self._frames = Frames()
        while True:
            self._nonce, request = self._frames.receive()
            if bytes(request[:1]) != b"N":
                break
            self._frames.send(self._nonce, b"N")
        begun = decode(request[1:])
        self.channel = Channel(begun["median"], begun["jitter"])
        self.functions: tuple[str, ...] = tuple(begun["functions"])
        self.seed = int(os.environ["BLASTDOOR_SEED"])
        self._drawn = 0
        self._measures = _MEASURES
        self._at_most = False
        self._finished = False

    def rng(self) -> random.Random:
        """A generator for one question. Take a new one for each: one who sees enough of what one generator drew can
        tell what it draws next, and nothing of any other.
        """
        self._drawn += 1
        digest = hashlib.sha256(f"{self.seed}/{self._drawn}".encode()).digest()
        # What it starts from can be calculated back from its numbers, so that must not be the seed itself.
        return random.Random(int.from_bytes(digest, "big"))  # noqa: S311

    def call(self, function: str, /, *arguments: Any, **keywords: Any) -> Reply:
        """The candidate's answer. Raises NotPlain for arguments that cannot be sent; NoFunction, Raised, BadReply."""
        elapsed, answer = self._ask(*self._request(function, arguments, keywords))
        reply = Reply(self._value(function, answer), elapsed, self.channel)
        reply._least = self._channel_for
        reply._rehearse = partial(self._rehearsed, function, arguments, keywords, len(answer))
        return reply

    def value(self, function: str, /, *arguments: Any, **keywords: Any) -> Any:
        """As `call`, for one who takes no time: arguments that are large reach the candidate while they are sent."""
        request = self._request(function, arguments, keywords)
        streamed = [b"S"] if sum(map(len, request)) >= _LARGE else []
        elapsed, answer = self._ask(*streamed, *request)
        self.elapsed, self.size = None if streamed else elapsed, sum(map(len, request))
        self.rehearse = partial(self._carried, self.size, len(answer))
        return self._value(function, answer)

    def load(self, number: int, place: int, gone: Sequence[int] = ()) -> None:
        """Have the program loaded once more, as a module of its own, or go back to an earlier load of this number. All
        calls are for the last one. Another place is another Python. What is `gone` is not gone back to. Raises Raised.
        """
        answer = self._ask(b"L", encode([number, place, list(gone)]))[1]
        if bytes(answer[:1]) != b"L":
            self._value("the program", answer)

    def holds(self, place: int) -> bool:
        """Whether there is a handle of an object there."""
        return any(it.number // OBJECTS == place for it in self._handles)

    def _value(self, function: str, answer: memoryview) -> Any:
        kind, body = bytes(answer[:1]), answer[1:]
        try:
            value = decode_exact(body, self.found) if self._exact and kind == b"V" else decode(body)
        except Malformed as error:
            raise BadReply(f"{function}: the answer is no plain value: {error}") from None
        if kind == b"V":
            return value
        if kind != b"E" or not isinstance(value, list) or len(value) < 2 or not all(type(it) is str for it in value):
            raise BadReply(f"{function}: neither a value nor an error")
        told = {"missing": NoFunction, "raised": Raised}.get(value[0], BadReply)(f"{function}: {value[1][:500]}")
        if isinstance(told, Raised):
            told.error = rebuilt(*value[2:4]) if len(value) == 4 else RuntimeError(value[1][:500])
        raise told

    def function(self, name: str) -> Callable[..., Any]:
        """A function that calls the candidate's of this name, for code that was written to call it directly: it gives
        the value, and raises what the candidate's raised, as an error of Python's own (see Raised).
        """

        def called(*arguments: Any, **keywords: Any) -> Any:
            try:
                return self.value(name, *arguments, **keywords)
            except Raised as raised:
                raise raised.error from None

        called.__name__ = called.__qualname__ = name
        return called

    def _request(self, function: str, arguments: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        if not self._exact and not keywords:
            return [b"C", *Writer().pieces([function, *arguments])]
        options = {"exact": self._exact, "classes": self._classes, "enums": self._enums}
        options |= {"tuples": list(self.tuples)} if self.tuples else {}
        request = [function, list(arguments), keywords, options]
        return [b"K", *(exact_pieces(request, self._remote, given=True) if self._exact else Writer().pieces(request))]

    def _remote(self, value: Any) -> Remote | Named | None:
        if issubclass(type(value), Handle) and value._candidate is self:
            found: Remote = value._remote
            return found
        return named_of(value, self.tuples) or number_of_member(value, self._enums)

    def found(self, remote: Remote | Named) -> Any:
        """A Handle, one for each number, a member of an enumeration or a named tuple. Raises Malformed for what was not
        named.
        """
        if isinstance(remote, Named):
            return remote.made(self.tuples)
        if remote.kind.startswith(ENUM):
            if remote.kind[len(ENUM) :] not in self._enums:
                raise Malformed("a member of an enumeration that was not named")
            return member_of(remote)
        if remote.kind not in self._classes or remote.number >= OBJECTS * _PLACES:
            raise Malformed("an object of a class that was not named")
        if remote not in self._handles:
            if len(self._handles) >= OBJECTS:
                raise Malformed(f"more than {OBJECTS} objects")
            self._handles[remote] = self.new_handle(self, remote)
        return self._handles[remote]

    def time(
        self,
        function: str,
        question: Callable[[random.Random], Sequence[Any]],
        check: Callable[..., Any],
        *,
        calls: int = 7,
        most: int = 256,
        seconds: float = 5.0,
        packing: bool = True,
    ) -> Timing:
        """What a call takes. `question(rng)` gives the arguments of one, drawn for each call; `check(answer, ...)` gets
        the answer and these arguments, and raises BadOutput for a wrong one. The first call of all is not timed.

        At least so many `calls` are made. As long as what they take is not clear, the channel is measured again and
        there are twice as many, up to `most` of them, or until `seconds` have passed, drawing and checking included.
        Without `packing`, what it takes to bring the arguments there and to unpack them is taken off (`Reply.work`).
        """
        self._checked(function, question, check)
        until = time.monotonic() + seconds
        taken: list[float] = []
        ways: list[float] = []
        goal = max(1, calls)
        while True:
            while len(taken) < goal and (len(taken) < calls or time.monotonic() < until):
                reply = self._checked(function, question, check)
                taken.append(reply.elapsed)
                if not packing and reply._rehearse and len(ways) < max(1, calls):
                    ways.append(reply._rehearse())
            timing = self._timing(taken, ways)
            if timing.seconds >= _CLEAR * timing.resolution or len(taken) >= most or time.monotonic() >= until:
                self._at_most |= not timing.resolved
                return timing
            before = self.channel
            if self._measures and self.measure() != before:
                taken, ways, goal = [], [], max(1, calls)  # they are of a busier moment than what is taken off
            else:
                goal = min(2 * len(taken), most)

    def _checked(self, function: str, question: Callable[..., Sequence[Any]], check: Callable[..., Any]) -> Reply:
        arguments = question(self.rng())
        reply = self.call(function, *arguments)
        check(reply.value, *arguments)
        return reply

    def _timing(self, taken: Sequence[float], ways: Sequence[float] = ()) -> Timing:
        """`ways` is what arguments and answer took by themselves; without any, an empty call is taken off."""
        resolution = least_told(self.channel.jitter, len(taken))
        way = statistics.median(ways) if ways else self.channel.median
        if ways:
            far = sorted(abs(it - way) for it in ways)[9 * (len(ways) - 1) // 10]
            resolution = max(resolution, least_told(far, len(ways)))
        own = max(statistics.median(taken) - way, resolution)
        return Timing(own, max(own, max(taken) - way), len(taken), resolution)

    def _rehearsed(self, function: str, arguments: Sequence[Any], keywords: dict[str, Any], answer: int) -> float:
        """The seconds of the same call without the candidate: the orchestrator sends the request to us, we unpack it,
        and as many bytes go back. Never more than the request has: what is taken off is for us to say, not for one who
        answers at length.
        """
        request = self._request(function, arguments, keywords)
        size = min(answer, sum(map(len, request)) - 1)
        return self._ask(b"P", struct.pack("<I", size), *request)[0]

    def _carried(self, size: int, answer: int) -> float:
        """The seconds that so many bytes take there, in one piece that needs no unpacking: one who unpacks less than we
        do must not have its work taken off in place of that.
        """
        return self._rehearsed("", [bytes(size)], {}, answer)

    def _rehearse(self, request: memoryview) -> None:
        size = struct.unpack_from("<I", request, 1)[0]
        decode_exact(request[6:], lambda remote: remote)
        self._frames.send(self._nonce, b"Q", request[6 : 6 + size])

    def null(self) -> float:
        """The seconds that a call takes which does nothing."""
        return self._ask(b"N")[0]

    def measure(self) -> Channel:
        """Measure the channel again: the machine may have been busy when it was measured before. What is clearly less
        than before counts from then on.
        """
        self._measures = max(0, self._measures - 1)
        found = decode(self._ask(b"M")[1])
        self.channel = Channel(found["median"], found["jitter"])
        return self.channel

    def _channel_for(self, elapsed: float) -> Channel:
        """The channel, measured again if it cannot tell a call that took so long from nothing."""
        while elapsed - self.channel.median < self.channel.jitter and self._measures:
            self.measure()
        self._at_most |= elapsed - self.channel.median < self.channel.jitter
        return self.channel

    def _ask(self, *parts: bytes) -> tuple[float, memoryview]:
        if self._finished:  # a frame more would break what was handed over
            raise RuntimeError("the candidate was called after relay() had ended; call it inside of the with block")
        self._frames.send(self._nonce, *parts)
        while True:
            self._nonce, answer = self._frames.receive()
            kind = bytes(answer[:1])
            if kind == b"Q":
                self._rehearse(answer)
            elif kind == b"N":
                self._frames.send(self._nonce, b"N")
            else:
                return struct.unpack_from("<d", answer, 1)[0], answer[9:]

    def _finish(self) -> None:
        self._measures = 0
        self._finished = True
        files = _results()
        self._frames.send(self._nonce, b"F", encode({**files, _AT_MOST: b""} if self._at_most else files))


@contextlib.contextmanager
def relay(
    *,
    exact: bool = False,
    classes: Sequence[str] = (),
    enums: Sequence[str] = (),
    tuples: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Candidate]:
    """The candidate, loaded and waiting. BadOutput becomes a result that says so.

    With `exact`, more kinds of values cross, and each arrives as what it was: tuples, sets, complex numbers, numpy's
    numbers, dicts with any plain key. `classes` are the candidate's classes whose objects the judge may hold as a
    Handle. `enums` are enumerations, as `module.Name`, that lie beside judge and candidate alike: their members cross,
    and each side finds its own. `tuples` are the candidate's classes of named tuples, with the names of their fields.
    All of them imply `exact`.
    """
    candidate = Candidate(exact=exact, classes=classes, enums=enums, tuples=tuples)
    try:
        yield candidate
    except BadOutput as bad:
        invalid(str(bad))
    candidate._finish()


def _results() -> dict[str, bytes]:
    """What was published, by its name."""
    result = Path(os.environ["BLASTDOOR_RESULT_PATH"])
    traces = Path(os.environ["BLASTDOOR_TRACES_DIR"])
    files = {"result.json": result, "metrics.csv": Path(os.environ["BLASTDOOR_METRICS_PATH"])}
    files.update((f"traces/{path.name}", path) for path in sorted(traces.glob("*.json")))
    return {name: path.read_bytes() for name, path in files.items() if path.is_file()}
