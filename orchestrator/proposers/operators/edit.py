"""What an operator gives: the file as it would be, and in words what was done, and where."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from orchestrator.change import shown

_SNIPPET = 48
_PATH = 120
_SAID = 260
_PLACE = re.compile(r" in (?:(?P<owner>\S+), )?line \d+ of (?P<path>.+)$")
_CHANGED = re.compile(r"^changed (?P<old>\S+) to (?P<new>\S+) in ")


@dataclass(frozen=True, slots=True)
class Edit:
    """`owner` is the function that was changed, as `pack()`, or a class; empty outside of both."""

    data: bytes
    said: str
    line: int
    owner: str = ""

    def description(self, path: str) -> str:
        where = f"{self.owner}, " if self.owner else ""
        return f"{self.said[:_SAID]} in {where}line {self.line} of {told_path(path)}"


def told_path(path: str) -> str:
    """A path as descriptions have it; what is not printable in it is escaped, and takes more room then."""
    return shown(path, _PATH)[: _PATH + 1]


class Told(NamedTuple):
    """What a description says: the file and function, and of a single number what it was and became."""

    path: str
    owner: str
    old: str
    new: str


def read_description(description: str) -> Told:
    """The other way round. What somebody else wrote gives empty fields."""
    place, change = _PLACE.search(description), _CHANGED.match(description)
    path, owner = (place["path"], place["owner"] or "") if place else ("", "")
    return Told(path, owner, *((change["old"], change["new"]) if change else ("", "")))


@dataclass(frozen=True, slots=True)
class Splice:
    """Bytes `start` to `end` of a file become `new`."""

    start: int
    end: int
    new: bytes


def spliced(data: bytes, splices: Iterable[Splice]) -> bytes:
    """All at once; they must not overlap."""
    parts, at = [], 0
    for splice in sorted(splices, key=lambda one: (one.start, one.end)):
        parts += [data[at : splice.start], splice.new]
        at = splice.end
    return b"".join([*parts, data[at:]])


def line_of(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def snippet(data: bytes) -> str:
    """A piece of a file in one short line."""
    return "`" + shown(b" ".join(data[: 4 * _SNIPPET].split()), _SNIPPET)[: _SNIPPET + 8].replace("`", "'") + "`"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")


def listed(changes: Sequence[str], most: int = 4) -> str:
    more = len(changes) - most
    return ", ".join(changes[:most]) + (f" and {more} more" if more > 0 else "")
