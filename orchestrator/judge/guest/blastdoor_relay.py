"""A judge that calls the candidate. Standard library only, Python 3.9 up.

    from blastdoor_judge import BadOutput, publish
    from blastdoor_relay import relay

    with relay() as candidate:                         # BadOutput inside means: no solution, no score
        reply = candidate.call("solve", [3, 1, 2])     # in another chamber; only plain values cross
        if reply.value != [1, 2, 3]:
            raise BadOutput("not sorted")
        publish(reply.net, metrics={"seconds": reply.net})

`reply.elapsed` is measured by the orchestrator's clock, outside of both chambers; `reply.net` is that without what an
empty call takes, and refuses to be less than the channel's jitter. Draw the inputs one after the other, each from a
`candidate.rng()` of its own: its seed is new each time, and the candidate does not know it. The result is handed over
when the block is left; what is published after that, and an error that leaves the block, is no result.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from blastdoor_frames import Frames
from blastdoor_judge import BadOutput, invalid
from blastdoor_values import Malformed, NotPlain, decode, encode

__all__ = ["BadReply", "BelowJitter", "Candidate", "Channel", "NoFunction", "NotPlain", "Raised", "Reply", "relay"]


class BadReply(BadOutput):  # type: ignore[misc]  # the helper beside it has no types where this is checked
    """The candidate's answer is no plain value."""


class NoFunction(BadReply):
    """The candidate has no function of that name."""


class Raised(BadReply):
    """The candidate's function raised an error; the message is the candidate's own word."""


class BelowJitter(BadOutput):  # type: ignore[misc]  # as above
    """A time that the channel can not tell from none. Let one call do more work, or call more often."""


class Channel(NamedTuple):
    """What an empty call takes, and how far nine of ten differ from that; in seconds, by the orchestrator's clock."""

    median: float
    jitter: float


class Reply(NamedTuple):
    """`elapsed` is from the request leaving the orchestrator to the answer being there."""

    value: Any
    elapsed: float
    channel: Channel

    @property
    def net(self) -> float:
        """The seconds that are the candidate's own. Raises BelowJitter where they drown in the channel's."""
        own = self.elapsed - self.channel.median
        if own < self.channel.jitter:
            raise BelowJitter(
                f"a call took {max(0.0, own):.3g} s, less than the channel's jitter of {self.channel.jitter:.3g} s; "
                "time more work in one call"
            )
        return own


class Candidate:
    """Whom the judge calls. `functions` are those that it says it has."""

    def __init__(self) -> None:
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

    def rng(self) -> random.Random:
        """A generator for one question. Take a new one for each: whoever sees enough of what one generator drew can
        tell what it draws next, and nothing of any other.
        """
        self._drawn += 1
        digest = hashlib.sha256(f"{self.seed}/{self._drawn}".encode()).digest()
        # What it starts from can be calculated back from its numbers, so that must not be the seed itself.
        return random.Random(int.from_bytes(digest, "big"))  # noqa: S311

    def call(self, function: str, *arguments: Any) -> Reply:
        """The candidate's answer. Raises NotPlain for arguments that can not be sent; NoFunction, Raised, BadReply."""
        elapsed, answer = self._ask(b"C", encode([function, *arguments]))
        kind, body = bytes(answer[:1]), answer[1:]
        try:
            value = decode(body)
        except Malformed as error:
            raise BadReply(f"{function}: the answer is no plain value: {error}") from None
        if kind == b"V":
            return Reply(value, elapsed, self.channel)
        if kind != b"E" or not isinstance(value, list) or len(value) != 2 or not all(type(it) is str for it in value):
            raise BadReply(f"{function}: neither a value nor an error")
        told = {"missing": NoFunction, "raised": Raised}.get(value[0], BadReply)
        raise told(f"{function}: {value[1][:500]}")

    def null(self) -> float:
        """The seconds that a call takes which does nothing."""
        return self._ask(b"N")[0]

    def _ask(self, *parts: bytes) -> tuple[float, memoryview]:
        self._frames.send(self._nonce, *parts)
        self._nonce, answer = self._frames.receive()
        return struct.unpack_from("<d", answer, 1)[0], answer[9:]

    def _finish(self) -> None:
        self._frames.send(self._nonce, b"F", encode(_results()))


@contextlib.contextmanager
def relay() -> Iterator[Candidate]:
    """The candidate, loaded and waiting. BadOutput becomes a result that says so."""
    candidate = Candidate()
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
