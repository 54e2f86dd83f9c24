"""What there is to say, before anybody decides how it looks. A section is made once from the state; each renderer
writes it in its own way, and is the one place that makes words of others harmless there.

Nothing here knows a terminal, a file format or a campaign.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Quote:
    """Words of others: at most `width` characters in one line, or all of their lines where it is None."""

    text: str
    width: int | None = 200
    style: str = ""


@dataclass(frozen=True)
class Own:
    """Words of ours in a style, like "bold green"."""

    text: str
    style: str


@dataclass(frozen=True)
class Figure:
    """A number: a program gets the value, a person the text."""

    value: float | None
    text: str


@dataclass(frozen=True)
class Gauge:
    """How much of a cap is used, and held for open work. Only a picture shows it; words stand beside it."""

    used: int
    held: int
    cap: int | None


@dataclass(frozen=True)
class Look:
    """A word, a sign that needs no colour, and a colour; `rank` decides which of several in one place is seen."""

    word: str
    sign: str
    ascii: str
    style: str
    rank: int

    def mark(self, unicode: bool) -> str:
        return self.sign if unicode else self.ascii


@dataclass(frozen=True)
class Break:
    """A new line, where there is room for several."""


BREAK = Break()
Part = str | Quote | Own | Figure | Gauge | Look | Break
Words = Part | Sequence[Part]


@dataclass(frozen=True)
class Prose:
    words: Words


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    rows: Sequence[tuple[str, Words]]


@dataclass(frozen=True)
class Table:
    columns: Sequence[Words]
    rows: Sequence[Sequence[Words]]


@dataclass(frozen=True)
class Lines:
    """One below the other; `cut` where a screen shows only as much of each as fits, `numbered` where each is known by
    its number.
    """

    rows: Sequence[Words]
    cut: bool = False
    numbered: bool = False


@dataclass(frozen=True)
class Listing:
    """Text of others as it is, line by line. `more` says where the rest is, if only the first lines are shown."""

    text: str
    language: str = ""
    more: str = ""


class Point(NamedTuple):
    """`score` is None where there is none, and then nothing is drawn in its place; `screened` is one of a single run of
    a noisy task.
    """

    node: str
    order: int
    look: Look
    score: float | None
    cohort: str | None
    screened: bool = False


@dataclass(frozen=True)
class Step:
    """The best kept score from `order` on, until the next step. A new cohort starts again: `fresh`."""

    order: int
    score: float
    node: str
    fresh: bool


@dataclass(frozen=True)
class Series:
    """Every node's score over its order, and the stair of the best."""

    name: str
    goal: str
    run: int
    points: Sequence[Point]
    steps: Sequence[Step]


Block = Prose | Facts | Table | Lines | Listing | Series


@dataclass(frozen=True)
class Section:
    """`line` is all of it in one line, for the status and the end of a run; where it is None, one is made of the body.
    Where there is no `title`, a document lists the line among its facts. The body of an `open` section is on the
    status screen, too. A document leaves out the line of one whose `body_says_all`. `data` are keys for programs; where
    it is None, `key` gets what people see.
    """

    key: str
    title: Words = ""
    line: Words | None = None
    body: Sequence[Block] = ()
    data: Mapping[str, Any] | None = None
    name: str = ""
    open: bool = False
    body_says_all: bool = False

    @property
    def label(self) -> str:
        return self.name or self.key

    @property
    def brief(self) -> Sequence[Part]:
        return parts(self.line) if self.line is not None else _brief(self.body)


def parts(words: Words) -> Sequence[Part]:
    """Without those that are empty."""
    found: Iterable[Part] = (words,) if isinstance(words, Part) else words
    return [part for part in found if part != ""]


def facts(rows: Mapping[str, Words]) -> Sequence[Facts]:
    """What is empty is left out, and nothing is there where all is."""
    kept = [(name, words) for name, words in rows.items() if raw(words)]
    return [Facts(kept)] if kept else []


def others(rows: Mapping[str, str], width: int | None = None) -> Sequence[Facts]:
    """Facts in words of others."""
    return facts({name: Quote(value, width) for name, value in rows.items()})


def join(items: Iterable[Words], between: Part) -> list[Part]:
    joined: list[Part] = []
    for item in items:
        joined += [between, *parts(item)] if joined else parts(item)
    return joined


def raw(words: Words) -> str:
    """As it is, for a program: not to be shown."""
    return "".join(map(_raw, parts(words)))


def _raw(part: Part) -> str:
    match part:
        case str():
            return part
        case Quote() | Own() | Figure():
            return part.text
        case Look():
            return part.sign
        case Break():
            return "\n"
        case Gauge():
            return ""


def _brief(body: Sequence[Block]) -> Sequence[Part]:
    for block in body:
        match block:
            case Prose():
                return parts(block.words)
            case Facts():
                return join([[f"{name} ", *parts(words)] for name, words in block.rows], ", ")
            case Table():
                return [f"{len(block.rows):,} rows"] if block.rows else []
            case Lines():
                return join(block.rows, "; ")
            case _:
                continue
    return []
