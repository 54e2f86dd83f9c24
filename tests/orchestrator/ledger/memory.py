"""A ledger in memory, for tests that look at no file: the contract of the others, without a database underneath.

At its place is a file with nothing but a token, by which the ledger is found again as long as the test lasts: so it
can be closed, moved and resumed. A process that the test starts finds no ledger there, and neither does a copy.
"""

import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestrator.ledger import (
    START,
    Corrupt,
    Entry,
    Exists,
    Head,
    Ledger,
    LedgerError,
    ReadOnly,
    Record,
    Replaced,
    Request,
)
from orchestrator.ledger import rows as sums
from orchestrator.ledger.chain import link
from orchestrator.ledger.database import Rows
from orchestrator.ledger.errors import Fenced
from orchestrator.ledger.lock import Holder
from orchestrator.ledger.sqlite import make_file
from orchestrator.ledger.store import Snapshot, Where

_TOKEN = b"kept in memory by tests: "


@dataclass
class Kept:
    """What a file would hold."""

    inode: int
    records: list[Record] = field(default_factory=list)
    rows: Rows = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    sum: int = 0
    epoch: int = 0
    holder: str = ""
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def head(self) -> Head:
        return Head(self.records[-1].seq, self.records[-1].hash) if self.records else START


class MemoryLedger(Ledger):
    def __init__(self, where: Path, kept: Kept, *, read_only: bool) -> None:
        self.where = where
        self.epoch: int | None = None
        self.last: Head | None = None
        self._kept = kept
        self._read_only = read_only
        self.turn = threading.Lock()

    def hold(self) -> None: ...

    def held_by(self) -> Holder | None:
        return None

    def close(self) -> None: ...

    def give_up(self) -> None: ...

    def seize(self, holder: str) -> int:
        self._check_writable()
        with self.turn, self._kept.guard:
            self._kept.epoch, self._kept.holder = self._kept.epoch + 1, holder
            self.epoch, self.last = self._kept.epoch, self._kept.head
            return self.epoch

    def append(self, entries: Sequence[Entry], rows: Mapping[tuple[str, str], str | None], at: str) -> list[Record]:
        self._check_writable()
        self._check_text(at, *(text for entry in entries for text in (entry.kind, entry.body)))
        self._check_text(*(text for key, body in rows.items() for text in (*key, body or "")))
        if rows and not entries:
            raise ValueError("rows change with an event, which seals them")
        with self.turn, self._kept.guard:
            if self.epoch is None:
                raise Fenced(f"{self.where} was opened without seizing it; seize it before appending")
            if self.epoch != self._kept.epoch:
                raise Fenced(
                    f"another orchestrator ({self._kept.holder}) has taken over this campaign; this one must stop"
                )
            if self.last != self._kept.head:
                raise Corrupt(f"{self.where} does not end with the last record of this session")
            old = {key: self._kept.rows[key] for key in rows.keys() & self._kept.rows.keys()}
            new = {key: body for key, body in rows.items() if body is not None}
            self._kept.sum += sums.added_up(new) - sums.added_up(old)
            written = link(self._kept.head, entries, at, self.epoch, sums.digest(self._kept.sum))
            self._kept.records += written
            self._kept.rows |= new
            for key in rows.keys() - new.keys():
                self._kept.rows.pop(key, None)
            self.last = self._kept.head
        return written

    def read(self, after: int = 0, limit: int | None = None, kinds: Collection[str] | None = None) -> Iterator[Record]:
        left = limit
        while after < len(self._kept.records) and left != 0:
            record = self._kept.records[after]
            after += 1
            if kinds is None or record.kind in kinds:
                left = None if left is None else left - 1
                yield record

    def rows(self, *kinds: str) -> Rows:
        rows = self.snapshot(checked=False).rows
        return {key: body for key, body in rows.items() if not kinds or key[0] in kinds}

    def rows_named(self, kind: str, names: Sequence[str]) -> dict[str, str]:
        rows = self.snapshot(checked=False).rows
        return {name: rows[kind, name] for name in names if (kind, name) in rows}

    def row(self, kind: str, name: str) -> str | None:
        return self.snapshot(checked=False).rows.get((kind, name))

    def glance(self, kinds: Collection[str], more: Callable[[Rows], Mapping[str, Sequence[str]]]) -> Snapshot:
        head, rows = self.snapshot(checked=False)
        found = {key: body for key, body in rows.items() if key[0] in kinds}
        named = {(kind, name) for kind, names in more(found).items() for name in names}
        return Snapshot(head, found | {key: rows[key] for key in named & rows.keys()})

    def snapshot(self, *, checked: bool = True) -> Snapshot:
        with self._kept.guard:
            seen = Snapshot(self._kept.head, dict(self._kept.rows))
        if checked:
            self.check(seen)
        return seen

    def check(self, seen: Snapshot) -> int:
        last = self._kept.records[seen.head.seq - 1] if seen.head != START else None
        return sums.checked(seen.rows, last, str(self.where))

    def head(self) -> Head:
        return self._kept.head

    def has(self, head: Head) -> bool:
        return head in (Head(record.seq, record.hash) for record in self._kept.records)

    def holder(self) -> tuple[int, str]:
        return self._kept.epoch, self._kept.holder

    def ask(self, kind: str, body: str, at: str, of: Head | None = None) -> int:
        self._check_writable()
        with self._kept.guard:
            if of is not None and not self.has(of):
                raise Replaced(f"{self.where} is another campaign than the one that this was asked of")
            self._kept.requests.append(Request(len(self._kept.requests) + 1, at, kind, body))
            return len(self._kept.requests)

    def requests(self, after: int = 0) -> list[Request]:
        return self._kept.requests[after:]

    def _check_writable(self) -> None:
        if self._read_only:
            raise ReadOnly(f"{self.where} was opened for reading only")

    def _check_text(self, *texts: str) -> None:
        try:
            "".join(texts).encode()
        except UnicodeEncodeError as error:
            raise LedgerError(f"{self.where} cannot hold text with lone surrogates; escape them first") from error


def keep_ledgers_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no ledger is made in a file. Those that are there, and those in databases, stay what they are."""
    all_kept: dict[bytes, Kept] = {}
    create, open_ = Ledger.create, Ledger.open

    def found(where: Where) -> Kept | None:
        if not isinstance(where, Path) or not where.is_file():
            return None
        with where.open("rb") as file:
            kept = all_kept.get(file.read(len(_TOKEN) + 32))
        assert kept is None or kept.inode == where.stat().st_ino, f"{where} is a copy: this test needs a ledger on disk"
        return kept

    def create_here(where: Where) -> Ledger:
        if not isinstance(where, Path) or (where.exists() and where.stat().st_size and not found(where)):
            return create(where)
        if found(where):
            raise Exists(f"{where} is there already; open it, or name another")
        make_file(where)
        token = _TOKEN + secrets.token_hex(16).encode()
        where.write_bytes(token)
        all_kept[token] = Kept(where.stat().st_ino)
        return MemoryLedger(where, all_kept[token], read_only=False)

    def open_here(where: Where, *, read_only: bool = False, waits_to_read: bool = True) -> Ledger:
        kept = found(where)
        if kept is None or not isinstance(where, Path):
            return open_(where, read_only=read_only, waits_to_read=waits_to_read)
        return MemoryLedger(where, kept, read_only=read_only)

    monkeypatch.setattr(Ledger, "create", create_here)
    monkeypatch.setattr(Ledger, "open", open_here)
