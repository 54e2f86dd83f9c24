"""What PID 1 says on stdout, as a state machine: facts, then `ready`, then one word a step, then an archive or frames.

Words after `unpacked` may be forged by the candidate, so they only ever move the dialogue towards its end.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum, auto

from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.frames import FrameReader
from sandbox.wire.harvest import Harvest
from sandbox.wire.log import printable

LINE_CAP = 1024
FACTS_CAP = 256


class Phase(IntEnum):
    HELLO = auto()
    READY = auto()
    UNPACKED = auto()
    BUILT = auto()
    DONE = auto()
    RAW = auto()


@dataclass(frozen=True, slots=True)
class Said:
    """PID 1 announced a step with its exit code, whether the work directory was full and whether forks failed."""

    phase: Phase
    code: int = 0
    full: bool = False
    forks_refused: bool = False


_WORDS = {"unpacked": Phase.UNPACKED, "built": Phase.BUILT, "done": Phase.DONE}


class Dialogue:
    """Feed it stdout; it yields what was said. In raw mode the bytes go to the harvest or the frame reader."""

    def __init__(self, harvest: Harvest | None = None, frames: FrameReader | None = None) -> None:
        self._harvest = harvest
        self._frames = frames
        self._line = bytearray()
        self._facts: dict[str, str] = {}
        self._facts_left = FACTS_CAP
        self.phase = Phase.HELLO
        self._greeted = False

    @property
    def facts(self) -> Mapping[str, str]:
        return self._facts

    def expect_archive(self, harvest: Harvest) -> None:
        self._harvest = harvest

    def expect_frames(self, frames: FrameReader) -> None:
        """Relay: whatever comes next is frames."""
        self._frames = frames
        self.phase = Phase.RAW
        rest, self._line = bytes(self._line), bytearray()
        if rest:
            frames.feed(rest)

    def feed(self, data: bytes | memoryview) -> Iterator[Said]:
        """One by one, because a fault must not swallow what was said before it: that decides who pays."""
        view = memoryview(data)
        while view:
            if self.phase is Phase.RAW:
                self._feed_raw(view)
                break
            end = bytes(view[: LINE_CAP + 1]).find(b"\n")
            self._line += view[: end if end >= 0 else LINE_CAP + 1]
            if len(self._line) > LINE_CAP:
                raise WireFault(Fault.LINE_TOO_LONG, f"a line of over {LINE_CAP} bytes where a word belongs")
            if end < 0:
                break
            view = view[end + 1 :]
            line, self._line = bytes(self._line), bytearray()
            if heard := self._hear(line):
                yield heard

    def finish(self) -> None:
        """End of stdout."""
        if self.phase is Phase.RAW:
            if self._frames:
                self._frames.finish()
            elif self._harvest:
                self._harvest.finish()
            return
        raise WireFault(Fault.ENDED_EARLY, f"the chamber fell silent after {self.phase.name.lower()}")

    def _feed_raw(self, view: memoryview) -> None:
        if self._frames:
            self._frames.feed(view)
        elif self._harvest:
            self._harvest.feed(view)

    def _hear(self, line: bytes) -> Said | None:
        word, _, rest = printable(line).partition(" ")
        if self.phase is Phase.HELLO:
            return self._hear_hello(word, rest)
        if word == "archive" and not rest and self._harvest and self.phase is not Phase.READY:
            self.phase = Phase.RAW
            return None
        phase = _WORDS.get(word)
        if phase is None or phase <= self.phase or (self.phase is Phase.READY) != (word == "unpacked"):
            raise WireFault(Fault.OUT_OF_TURN, f"{line[:40]!r} after {self.phase.name.lower()}")
        self.phase = phase
        code, full, forks = [*_numbers(rest), 0, 0][:3]
        return Said(phase, code, bool(full), bool(forks))

    def _hear_hello(self, word: str, rest: str) -> Said | None:
        if word == "blastdoor" and rest == "1" and not self._greeted:
            self._greeted = True
        elif word == "fact" and self._greeted and self._facts_left:
            self._facts_left -= 1
            name, _, value = rest.partition(" ")
            value = " ".join(value.replace("\\t", " ").split())
            self._facts[name] = f"{self._facts[name]}; {value}" if name in self._facts else value
        elif word == "ready" and self._greeted and not rest:
            self.phase = Phase.READY
            return Said(Phase.READY)
        else:
            raise WireFault(
                Fault.OUT_OF_TURN,
                f"{word[:40]!r} where a greeting belongs; is sh in the image a POSIX shell?",
            )
        return None


def _numbers(rest: str) -> list[int]:
    told = rest.split(" ")
    numbers = [int(it) for it in told[:3] if it.isascii() and it.isdigit() and len(it) <= 9]
    if len(numbers) < len(told):
        raise WireFault(Fault.OUT_OF_TURN, f"{rest[:40]!r} where an exit code belongs")
    return numbers
