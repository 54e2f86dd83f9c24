"""Records of a long campaign, of which few are looked at: each is made of its row when somebody asks for it.

One who goes through all of them needs little of each: a line has that, under the names that the record has, and is read
in a seventh of the time. What a record must have, a line must have, so a row that is none is found by both.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Generic, Protocol, TypeVar

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder
from pydantic import BaseModel

from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Draft, Node, OpenedPlace, Phase, Purpose, Role, Trial, opened_place

R = TypeVar("R", bound=BaseModel)
L = TypeVar("L", bound="Line")


class Line(Struct, frozen=True, gc=False):
    """What a row has beside these fields is passed over, and takes hardly any time."""


class There(Line, frozen=True):
    """Something is; what it says is left to the record."""


class SpentLine(Line, frozen=True):
    microdollars: int = 0
    milliseconds: int = 0
    tokens: int = 0


class VerdictLine(Line, frozen=True):
    metrics: dict[str, float]
    cohort: str
    tasks: dict[str, float] = {}
    valid: bool = True
    suspect: tuple[str, ...] = ()


class NodeLine(Line, frozen=True):
    """Fields as a Node has them."""

    id: str
    parent: str | None
    role: Role
    number: int
    branch: int = 0
    step: int = 0
    phase: Phase = Phase.OPEN
    drafts: int = 0
    diff: str | None = None
    trials: int = 0
    verdict: VerdictLine | None = None
    certification: There | None = None
    measured: tuple[str, ...] = ()
    asking: int | None = None
    heldout: dict[str, There] = {}
    agent_log: str | None = None
    finding: str | None = None
    ending: Ending | None = None
    kept: bool = False
    opened_at: str = ""
    opened_order: int = 0
    ended_at: str = ""
    ended_order: int = 0

    @property
    def opened_place(self) -> OpenedPlace:
        return opened_place(self.id, self.opened_order, self.opened_at)

    @property
    def ended_place(self) -> tuple[int, str]:
        return self.ended_order, self.ended_at


class TrialLine(Line, frozen=True):
    """Fields as a Trial has them."""

    id: str
    node: str
    purpose: Purpose
    draft: int
    started_at: str
    ended: bool = False
    outputs: str | None = None
    outputs_bytes: int = 0
    log: str | None = None
    judging: str | None = None
    traces: str | None = None
    traces_bytes: int = 0
    let_go: bool = False


class LikenessLine(Line, frozen=True):
    form: str


class DraftLine(Line, frozen=True):
    """Fields as a Draft has them."""

    node: str
    number: int
    operator: str
    description: str
    change: str | None = None
    tree: str | None = None
    origin: str | None = None
    known_as: str | None = None
    likeness: LikenessLine | None = None


AnyNode = Node | NodeLine
AnyTrial = Trial | TrialLine
AnyDraft = Draft | DraftLine


def line_reader(line: type[L], record: type[R]) -> Callable[[str], R | L]:
    """Makes a line of a row. Of a row that gives none, the record is made, or says what is wrong with it."""
    decode = Decoder(line).decode

    def read(body: str) -> R | L:
        try:
            return decode(body)
        except MsgspecError:
            return record.model_validate_json(body)

    return read


class Rest(Protocol):
    """Where the rows are that were not read yet: a ledger."""

    def row(self, kind: str, name: str) -> str | None: ...
    def rows(self, *kinds: str) -> Mapping[tuple[str, str], str]: ...


class LateRecords(MutableMapping[str, R], Generic[R, L]):
    """Records of one kind, by their names. Other threads may look while one writes.

    With a `rest`, `rows` are a part of them: one that is asked for by its name is read from there, and all are by one
    who goes through them. What is read so late is of a later moment.
    """

    def __init__(
        self, kind: str, model: type[R], line: type[L], rows: Mapping[str, R | str], rest: Rest | None = None
    ) -> None:
        self._kind = kind
        self._model = model
        self._line = line
        self._rest = rest
        self._read_line = line_reader(line, model)
        self._found = dict(rows)
        self._lines: dict[str, R | L] = {}
        self._turn = threading.Lock()

    def copy(self) -> "LateRecords[R, L]":
        return LateRecords(self._kind, self._model, self._line, self._found, self._rest)

    def line(self, name: str) -> R | L:
        """The record itself where it was asked for before."""
        found = self._found.get(name) or self._one(name)
        if not isinstance(found, str):
            return found
        return self._lines.get(name) or self._read_line(found)

    def lines(self) -> list[R | L]:
        """The same of all, kept until they are forgotten."""
        read, known, every = self._read_line, self._lines, self._all()
        if not known:
            known |= {name: read(found) for name, found in every.items() if isinstance(found, str)}
        return [known[name] if isinstance(found, str) else found for name, found in every.items()]

    def lines_of_now(self) -> Iterator[R | L]:
        """For another thread: what is written meanwhile is not seen. None of these lines is kept."""
        taken = list(self._all().values())
        return (self._read_line(it) if isinstance(it, str) else it for it in taken)

    def forget_lines(self) -> None:
        self._lines.clear()

    def _one(self, name: str) -> R | str:
        if name not in self._found and self._rest:
            body = self._rest.row(self._kind, name)
            if body is not None:
                self._found[name] = body
        return self._found[name]

    def _all(self) -> dict[str, R | str]:
        if self._rest:
            every = {name: body for (_, name), body in self._rest.rows(self._kind).items()}
            self._found, self._rest = {**every, **self._found}, None
        return self._found

    def __getitem__(self, name: str) -> R:
        found = self._found.get(name) or self._one(name)
        if not isinstance(found, str):
            return found
        made = self._model.model_validate_json(found)
        with self._turn:  # one that was written meanwhile stays
            if self._found.get(name) is found:
                self._found[name] = made
        return made

    def __contains__(self, name: object) -> bool:
        if not self._rest or name in self._found or not isinstance(name, str):
            return name in self._found
        return self._rest.row(self._kind, name) is not None

    def __setitem__(self, name: str, record: R) -> None:
        with self._turn:
            self._found[name] = record

    def __delitem__(self, name: str) -> None:
        with self._turn:
            del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
