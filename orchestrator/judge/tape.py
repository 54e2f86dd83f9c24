"""What passed between a judge and a candidate, as it went: the questions, and what was answered.

The bytes are compared, not understood. Answers are a candidate's: the few that are looked into are read within bounds,
and what cannot be read is not known.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from orchestrator.judge.guest.blastdoor_twists import field_names, has_both, place_names
from orchestrator.judge.guest.blastdoor_values import CODES, SIZES, Malformed, Reader, encode

_CALLS = 2_000
_BYTES = 16 << 20
# So many answers are looked into, and no longer ones than this.
_LOOKED_INTO = 3
_LOOKED_BYTES = 1 << 20
_YES = b"VT"
_NO_ARGUMENTS = encode([]) + encode({})
_CLASSES = encode("classes")[1:] + b"l"


@dataclass
class Tape:
    """`calls` are request and answer; the first ones, where there are many or long ones."""

    calls: list[tuple[bytes, bytes]] = field(default_factory=list)
    _left: int = _BYTES

    def keep(self, request: bytes, answer: bytes) -> None:
        self._left -= len(request) + len(answer)
        if self._left >= 0 and len(self.calls) < _CALLS:
            self.calls.append((request, answer))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Functions that were called, without those that make an object."""
        return tuple(dict.fromkeys(_name(request) for request, _ in self._plain))

    @cached_property
    def graders(self) -> tuple[str, ...]:
        """Functions that said yes, and nothing else, to every question."""
        said: dict[str, set[bytes]] = {}
        for request, answer in self._plain:
            said.setdefault(_name(request), set()).add(answer)
        return tuple(name for name, answers in said.items() if answers == {_YES})

    @property
    def questions(self) -> int:
        return len({request for request, _ in self._plain})

    @property
    def asks_again(self) -> bool:
        return self.questions < len(self._plain)

    @property
    def asks_without_question(self) -> bool:
        """Whether a function is called without arguments."""
        return any(_is_bare(request) for request, _ in self._plain)

    @property
    def uses_objects(self) -> bool:
        return len(self._plain) < len(self.calls) or any(_names_classes(request) for request, _ in self.calls)

    @cached_property
    def _plain(self) -> list[tuple[bytes, bytes]]:
        return [(request, answer) for request, answer in self.calls if answer[1:2] != b"h"]

    def always_answers(self, value: object) -> bool:
        return bool(self.calls) and {answer for _, answer in self._plain} == {b"V" + encode(value)}

    @property
    def always_answers_the_question(self) -> bool:
        """Where it is a single value."""
        return bool(self.calls) and all(
            request[_end_of_name(request) :] == answer[1:] for request, answer in self.calls
        )

    @property
    def has_both(self) -> bool:
        """Whether answers have whole numbers beside fractions."""
        return any(map(has_both, self._values()))

    def is_changed_by(self, twist: Callable[[Any], Any]) -> bool:
        """Whether something becomes of an answer that it was not; of what cannot be read, that is taken for granted."""
        found = list(self._values())
        return not found or any(repr(twist(it)) != repr(it) for it in found)

    @property
    def has_objects(self) -> bool:
        parts = (part for it in self._values() for part in (it if type(it) is tuple else (it,)))
        return any(isinstance(it, dict) for it in parts)

    @property
    def fields(self) -> list[str]:
        return list(dict.fromkeys(name for it in self._values() for name in field_names(it)))[:4]

    @property
    def places(self) -> list[str]:
        """Those of numbers, where several are answered and nothing else."""
        found = (it for it in self._values() if type(it) is tuple)
        return next((names[:4] for it in found if len(names := place_names(it)) == len(it)), [])

    def recurring(self, other: "Tape") -> int:
        """How many questions of this one, with something in them, the other has as well."""
        mine = {request for request, _ in self._plain if len(request) > _end_of_name(request)}
        return len(mine & {request for request, _ in other.calls})

    def _values(self) -> Iterator[Any]:
        for _, answer in self._plain[:_LOOKED_INTO]:
            if answer[:1] == b"V" and len(answer) <= _LOOKED_BYTES:
                try:
                    yield _Looking(memoryview(answer)[1:], arrays=False).whole()
                except Malformed:
                    continue


class _Looking(Reader):
    """Also of exact kinds, as far as it matters to one who only looks: a set, an array or an iterator is a list of what
    is in it, a named tuple is a tuple, keys are texts, and an object of the candidate's is nothing.
    """

    def other(self, tag: bytes, depth: int) -> Any:
        if tag == b"t":
            return tuple(self.items(depth))
        if tag in (b"S", b"Z", b"g"):
            return self.items(depth)
        if tag == b"u":
            self.take(self.number("<B"))
            return tuple(self.items(depth))
        if tag == b"c":
            return list(struct.unpack("<dd", self.take(16)))
        if tag == b"n":
            dtype = str(self.take(self.number("<B")), "ascii", "replace")
            return self._numbers(dtype, self.take(SIZES.get(dtype, 0)))[0]
        if tag == b"m":
            return {repr(self.value(depth - 1)): self.value(depth - 1) for _ in range(self.number("<I"))}
        if tag == b"h":
            self.take(self.number("<B") + 8)
            return None
        if tag == b"a":
            dtype, _, data = self.raw_array()
            return self._numbers(dtype, data)
        return super().other(tag, depth)

    @staticmethod
    def _numbers(dtype: str, data: memoryview) -> list[Any]:
        """In one row, whatever the shape: a side of 0 can hide sides that are very long."""
        if dtype not in CODES:
            raise Malformed("a number of no known kind")
        code = CODES[dtype]
        return list(struct.unpack(f"<{len(data) // SIZES[dtype] * len(code)}{code[0]}", data))


def _name(request: bytes) -> str:
    """A request is a list, and its first member a text."""
    return request[11 : _end_of_name(request)].decode("utf-8", "replace")


def _end_of_name(request: bytes) -> int:
    return 11 + int.from_bytes(request[7:11], "little")


def _is_bare(request: bytes) -> bool:
    """Nothing comes after the name, or no arguments and no keywords."""
    rest = request[_end_of_name(request) :]
    return not rest or (request[:1] == b"K" and rest.startswith(_NO_ARGUMENTS))


def _names_classes(request: bytes) -> bool:
    """The options come last; they are the judge's own bytes."""
    at = request.rfind(_CLASSES)
    return request[:1] == b"K" and at >= 0 and request[at + len(_CLASSES) : at + len(_CLASSES) + 4] != bytes(4)
