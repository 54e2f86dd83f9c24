"""The state of a campaign as its rows tell it, each read when it is asked for: the campaign may be longer than memory.

A ledger keeps its rows in step with its events, so one who only looks folds nothing. Some thousand records are kept;
the one who hears of an event says which of them to read again.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence, ValuesView
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from orchestrator.budget import BOOKS
from orchestrator.domain.census import Census, Counted, Notable, take_census
from orchestrator.domain.lines import AnyNode, Line, NodeLine, line_reader
from orchestrator.domain.records import Draft, Node, Phase, Role, Trial
from orchestrator.domain.state import SHORT_KINDS, State
from orchestrator.ledger import Ledger, LedgerError
from orchestrator.views.page.board_line import BoardLine

# So many records of each kind: with them, a campaign of some thousand attempts is read once.
KEPT = {"node": 6000, "draft": 3000, "trial": 3000}
_LONG: dict[str, type[BaseModel]] = {"node": Node, "draft": Draft, "trial": Trial}
_CENSUS = ("census", "notable")


L = TypeVar("L", bound=Line)


class Closed(LedgerError):
    """A reader that is still there is told to stop."""


class _Streamed(ValuesView[Any]):
    def __init__(self, rows: "_Rows") -> None:
        super().__init__(rows)
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return (record for _, record in self._rows.each())


class _Rows(MutableMapping[str, Any]):
    """Records of one kind. Nobody writes through it."""

    def __init__(self, ledger: Ledger, kind: str) -> None:
        self._ledger = ledger
        self._kind = kind
        self._model = _LONG[kind]
        self._most = KEPT[kind]
        self._kept: dict[str, Any] = {}
        # What was read before somebody said that it changed must not be kept after that.
        self._turn = threading.Lock()
        self._changes = 0
        # Which fields were given: all of them, the same for every record. One set of their own takes more than half of
        # the memory of a node.
        self._given = set(self._model.model_fields)
        self.closed = False

    def __getitem__(self, name: str) -> Any:
        if (known := self._kept.get(name)) is not None:
            return known
        self._check()
        changes = self._changes
        body = self._ledger.row(self._kind, name)
        if body is None:
            raise KeyError(name)
        return self._made(name, body, changes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._kept or self._ledger.row(self._kind, name) is not None)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.each())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def values(self) -> ValuesView[Any]:
        return _Streamed(self)

    def each(self) -> Iterator[tuple[str, Any]]:
        """All of them, in the order of their names; as many are kept as there is room for."""
        changes = self._changes
        for name, body in self._ledger.each_row(self._kind):
            self._check()
            yield name, self._kept.get(name) or self._made(name, body, changes)

    def lines(self, line: type[L]) -> Iterator[L]:
        """Of each as much as the line has."""
        # Where it is a record after all, that has the same under the same names.
        read = cast("Callable[[str], L]", line_reader(line, self._model))
        for _, body in self._ledger.each_row(self._kind):
            self._check()
            yield read(body)

    def forget(self, names: Iterable[str]) -> None:
        with self._turn:
            self._changes += 1
            for name in names:
                self._kept.pop(name, None)

    def read(self, names: Sequence[str]) -> list[Any]:
        """Those of them that there are, as they are now, in one look."""
        self.forget(names)
        changes = self._changes
        found = self._ledger.rows_named(self._kind, names)
        return [self._made(name, found[name], changes) for name in names if name in found]

    def _made(self, name: str, body: str, changes: int) -> Any:
        record = self._model.model_validate_json(body)
        object.__setattr__(record, "__pydantic_fields_set__", self._given)
        with self._turn:
            if changes == self._changes and len(self._kept) < self._most:
                self._kept[name] = record
        return record

    def _check(self) -> None:
        if self.closed:
            raise Closed("the page is being closed")

    def __setitem__(self, name: str, record: Any) -> None:
        raise TypeError("one who looks changes nothing")

    def __delitem__(self, name: str) -> None:
        raise TypeError("one who looks changes nothing")


class RowState(State):
    """`refresh` reads again what is short; of what is long, `forget` names what changed. `books` are what the accounts
    are made from.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger
        self._long = {kind: _Rows(ledger, kind) for kind in _LONG}
        self._short = [kind for kind in SHORT_KINDS if kind not in _CENSUS]
        self._bodies: dict[tuple[str, str], str] = {}
        self.books: str | None = None
        self.refresh()

    def refresh(self) -> None:
        """In one look; a record whose row is as it was stays as it is."""
        rows = self._ledger.rows(*self._short, BOOKS[0])
        self.books = rows.pop(BOOKS, None)
        made = State.from_rows({key: body for key, body in rows.items() if self._bodies.get(key) != body})._records
        short: dict[str, MutableMapping[str, Any]] = {kind: {} for kind in self._short}
        for kind, name in rows:
            short[kind][name] = made[kind].get(name) or self._records[kind][name]
        self._bodies = rows
        self._hold({**short, **self._long})

    def counted(self) -> Counted:
        known, names = self._notable()
        if names is None:
            return Counted.of(*take_census(self.node_lines()))
        bodies = self._ledger.rows_named("node", names)
        census = Census.model_validate_json(known["census", "census"])
        return Counted.of(census, map(line_reader(NodeLine, Node), bodies.values()))

    def notable_names(self, role: Role) -> list[str]:
        known, names = self._notable()
        if names is None:
            return [node.id for node in self.counted().notable if node.role is role]
        return [name for name in names if Notable.model_validate_json(known["notable", name]).role is role]

    def _notable(self) -> tuple[dict[tuple[str, str], str], list[str] | None]:
        """None where no census was kept. It is read when it is asked for: it may have more rows than all else."""
        rows = self._ledger.rows("campaign", *_CENSUS)
        names = self.rows_to_glance(rows)
        return rows, None if names is None else names["node"]

    def read_nodes(self, names: Sequence[str]) -> list[Node]:
        """Those of them that there are, as they are now."""
        return self._long["node"].read(names)

    def forget(self, kind: str, names: Iterable[str]) -> None:
        self._long[kind].forget(names)

    def close(self) -> None:
        for rows in self._long.values():
            rows.closed = True

    def lines(self, kind: str, line: type[L]) -> Iterator[L]:
        """Of each record of a kind as much as the line has; none is kept."""
        return self._long[kind].lines(line)

    def node_lines(self) -> Iterator[AnyNode]:
        return self.lines("node", NodeLine)

    def each_line(self) -> Iterator[BoardLine]:
        """Of every node as much as is shown of it beside the others; none is kept. Whose child it is, and whether it is
        at work, is known from then on.
        """
        for line in self.lines("node", BoardLine):
            parent, _, last = line.id.rpartition(".")
            if parent:
                self.children[parent] = max(int(last), self.children.get(parent, 0))
            if line.phase is not Phase.ENDED:
                self.unfinished[line.id] = None
            yield line
