"""A change as data: what an agent's text says, before anybody has asked whether it may."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto


class Form(StrEnum):
    AUTO = "auto"
    UNIFIED = "unified diff"
    BLOCKS = "search/replace blocks"
    WHOLE = "whole files"


class Kind(Enum):
    MODIFY = auto()
    CREATE = auto()
    DELETE = auto()
    RENAME = auto()
    COPY = auto()
    WRITE = auto()


class Sign(Enum):
    KEPT = " "
    GONE = "-"
    NEW = "+"


@dataclass(frozen=True, slots=True)
class Line:
    sign: Sign
    text: bytes


@dataclass(frozen=True)
class Hunk:
    """Lines to find in the file as it was, and what becomes of them."""

    lines: tuple[Line, ...]
    claim: int | None = None  # index of the first old line, as the agent counts
    doubtful_tail: int = 0  # empty lines at the end, which may be context or just the end of the text
    old_open: bool = False  # "\ No newline at end of file"
    new_open: bool = False
    numbers: tuple[int, int] = (0, 0)  # of the first old and the first new line, as a diff's header says

    @property
    def old(self) -> list[bytes]:
        return [line.text for line in self.lines if line.sign is not Sign.NEW]

    @property
    def ends_file(self) -> bool:
        return self.old_open or self.new_open


@dataclass(frozen=True)
class Edit:
    kind: Kind
    path: str
    source: str = ""  # of a rename or a copy
    hunks: tuple[Hunk, ...] = ()
    data: bytes = b""  # of a write
    executable: bool | None = None  # None: as it was

    @property
    def sides(self) -> tuple[str, ...]:
        return (self.source, self.path) if self.source else (self.path,)

    @property
    def removed(self) -> str | None:
        match self.kind:
            case Kind.DELETE:
                return self.path
            case Kind.RENAME:
                return self.source
            case _:
                return None


@dataclass(frozen=True)
class Change:
    form: Form
    edits: tuple[Edit, ...]
