"""Each record is sealed together with the seal of the one before it, so none can change, vanish or move unseen.

What the chain alone cannot show is that its end was cut off: for that, someone keeps a head.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.ledger.errors import ChainBroken

GENESIS = "0" * 64

_FORMAT = b"blastdoor ledger 1\n"


@dataclass(frozen=True)
class Entry:
    """What happened: a kind and a body, which is canonical JSON. `at` is when, where all that is appended with it did
    not happen at once.
    """

    kind: str
    body: str
    at: str | None = None


@dataclass(frozen=True)
class Record:
    """An entry in its place. `epoch` says which orchestrator wrote it, and `rows` what all rows are once it is written
    (see rows.py): empty where more was written with it.
    """

    seq: int
    at: str
    kind: str
    body: str
    epoch: int
    previous: str
    hash: str
    rows: str


@dataclass(frozen=True)
class Head:
    """The end of a chain at some moment: it stands for every record up to there."""

    seq: int
    hash: str


@dataclass(frozen=True)
class Verified:
    """What was proven: every record up to this head is as it was written."""

    head: Head

    @property
    def records(self) -> int:
        return self.head.seq


START = Head(0, GENESIS)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted, without spaces, ASCII. Raises ValueError for NaN and infinities."""
    return _CANONICAL.encode(value)


def seal(previous: str, seq: int, at: str, kind: str, body: str, epoch: int, rows: str) -> str:
    """SHA-256 over all fields, each with its length before it, so that no two records have one encoding.

    Raises UnicodeEncodeError for text that is not Unicode (lone surrogates).
    """
    digest = hashlib.sha256(_FORMAT)
    for field in (previous, str(seq), at, kind, body, str(epoch), rows):
        raw = field.encode()
        digest.update(b"%d:%s" % (len(raw), raw))
    return digest.hexdigest()


def link(head: Head, entries: Sequence[Entry], at: str, epoch: int, rows: str = "") -> list[Record]:
    """The records that come after a head; the last of them seals the rows."""
    records = []
    for left, entry in enumerate(entries, 1 - len(entries)):
        seq = head.seq + 1
        when, of_rows = at if entry.at is None else entry.at, "" if left else rows
        sealed = seal(head.hash, seq, when, entry.kind, entry.body, epoch, of_rows)
        records.append(Record(seq, when, entry.kind, entry.body, epoch, head.hash, sealed, of_rows))
        head = Head(seq, sealed)
    return records


def verify(records: Iterable[Record], head: Head | None = None) -> Verified:
    """Walk a chain from its start. With a head that was kept, prove also that it is on it. Raises ChainBroken."""
    end, epoch = START, 0
    if head is not None and head.seq <= 0 and head != START:
        raise ChainBroken(head.seq, "the head that was kept is none of this ledger")
    for record in records:
        check(record, end, epoch)
        end, epoch = Head(record.seq, record.hash), record.epoch
        if head is not None and head.seq == end.seq and head != end:
            raise ChainBroken(end.seq, "it is not the record that the kept head names: the chain was written again")
    if head is not None and head.seq > end.seq:
        raise ChainBroken(end.seq + 1, f"the chain ends before it, but the kept head names record {head.seq}")
    return Verified(end)


def check(record: Record, end: Head, epoch: int) -> None:
    """One step of the walk: whether a record follows the end of a chain, written in `epoch` or later. Raises
    ChainBroken.
    """
    seq = end.seq + 1
    texts = (record.at, record.kind, record.body, record.previous, record.hash, record.rows)
    if not (all(type(text) is str for text in texts) and type(record.seq) is int and type(record.epoch) is int):
        raise ChainBroken(seq, "a field is of another type")
    if record.seq != seq:
        raise ChainBroken(seq, f"record {record.seq} stands in its place")
    if record.previous != end.hash:
        raise ChainBroken(seq, "it does not follow the record before it")
    if record.epoch < epoch:
        raise ChainBroken(seq, "it was written by an orchestrator that had been replaced")
    try:
        sealed = seal(record.previous, record.seq, record.at, record.kind, record.body, record.epoch, record.rows)
    except UnicodeEncodeError:
        raise ChainBroken(seq, "a field holds bytes that are no text") from None
    if record.hash != sealed:
        raise ChainBroken(seq, "its content is not what was sealed")
