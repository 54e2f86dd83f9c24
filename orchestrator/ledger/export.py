"""The ledger in files that others can read: JSON lines that prove themselves, and a table for a spreadsheet."""

import csv
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from orchestrator.ledger.chain import Head, Record, Verified, canonical, verify
from orchestrator.ledger.errors import ChainBroken, LedgerError, NewerVersion, NotALedger, translating_os_errors
from orchestrator.ledger.store import Ledger

FORMAT = "blastdoor ledger"
HEAD_FORMAT = "blastdoor head"
VERSION = 1
COLUMNS = ("seq", "at", "kind", "node", "body")

_LINE_CHARACTERS = 256 << 20
_HEAD_CHARACTERS = 4096
# A spreadsheet takes a cell that starts so for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def to_jsonl(ledger: Ledger, out: TextIO) -> Head:
    """A header, one record per line, and the head as the last line: a file that was cut short shows it."""
    head = ledger.head()
    out.write(canonical({"format": FORMAT, "version": VERSION}) + "\n")
    for record in ledger.read(limit=head.seq):
        out.write(_line(record))
    out.write(canonical({"head": vars(head)}) + "\n")
    return head


def verify_jsonl(stream: TextIO, head: Head | None = None) -> Verified:
    """Prove an exported file by itself; with a head that was kept, also that it is on this chain.

    Raises ChainBroken, NotALedger, NewerVersion.
    """
    ends: list[Head] = []
    try:
        _check_header(_parsed(stream.readline(_LINE_CHARACTERS)))
        verified = verify(_records(stream, ends), head)
    except UnicodeDecodeError:
        raise NotALedger("the file is not text, so it is no exported ledger; name another") from None
    if not ends:
        raise ChainBroken(verified.head.seq + 1, "the file was cut short")
    if ends[0] != verified.head:
        raise ChainBroken(verified.head.seq, "the file's last line does not name its last record")
    return verified


def to_csv(ledger: Ledger, out: TextIO) -> int:
    """A flat table of all records; open `out` with newline="". Returns how many there were."""
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for record in ledger.read(limit=ledger.head().seq):
        writer.writerow([record.seq, *map(_cell, (record.at, record.kind, _node(record.body), record.body))])
        count += 1
    return count


def write_head(path: Path, head: Head) -> None:
    """A small file to sign, or to keep where the ledger's owner cannot change it. Whole or not at all."""
    text = canonical({"format": HEAD_FORMAT, "version": VERSION, **vars(head)}) + "\n"
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with translating_os_errors(path):
        try:
            with beside.open("x", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.rename(path)
        finally:
            beside.unlink(missing_ok=True)


def read_head(path: Path) -> Head:
    """Raises NotALedger and NewerVersion."""
    try:
        with path.open(encoding="utf-8") as file:
            value = _parsed(file.read(_HEAD_CHARACTERS))
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"the head {path} cannot be read: {error}") from error
    if value.get("format") != HEAD_FORMAT:
        raise NotALedger(f"{path} is not a head that blastdoor wrote; name another file")
    _check_version(value, str(path))
    head = _head(value)
    if head is None:
        raise NotALedger(f"{path} is not a whole head; export it again")
    return head


def _line(record: Record) -> str:
    return canonical(vars(record)) + "\n"


def _records(stream: TextIO, ends: list[Head]) -> Iterator[Record]:
    """The records up to the last line, whose head is left in `ends`."""
    seq = 0
    while line := stream.readline(_LINE_CHARACTERS):
        seq += 1
        if ends:
            raise ChainBroken(seq, "there is more behind the last line")
        value = _parsed(line)
        if set(value) == {"head"} and (head := _head(value["head"])):
            ends.append(head)
            continue
        try:
            record = Record(**value)
        except TypeError:
            raise ChainBroken(seq, "its line is no record") from None
        # Two keys of one name, or a number that is written in another way, would be read differently elsewhere.
        if canonical(value) + "\n" != line:
            raise ChainBroken(seq, "its line is not written as we write it")
        yield record


def _parsed(line: str) -> dict[str, Any]:
    """An object, or an empty one for anything else."""
    try:
        value = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _head(value: object) -> Head | None:
    if not isinstance(value, dict):
        return None
    seq, hash_ = value.get("seq"), value.get("hash")
    return Head(seq, hash_) if type(seq) is int and type(hash_) is str else None


def _check_header(header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT:
        raise NotALedger("the file is not an exported ledger of blastdoor; name another")
    _check_version(header, "the file")


def _check_version(value: dict[str, Any], what: str) -> None:
    version = value.get("version")
    if type(version) is not int or version < 1:
        raise NotALedger(f"{what} does not say its version; name another")
    if version > VERSION:
        raise NewerVersion(what, version, VERSION)


def _node(body: str) -> str:
    node = _parsed(body).get("node")
    return node if isinstance(node, str) else ""


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
