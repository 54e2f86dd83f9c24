"""The database refuses every change to what was written; whoever gets around that is found by the chain."""

# ruff: noqa: S608 - the statements are the test's own

import hashlib
import sqlite3
import uuid
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from orchestrator.ledger import ChainBroken, Corrupt, Entry, Forged, Ledger, LedgerError
from tests.orchestrator.ledger.raw import Raw

AT = "2026-01-02T03:04:05+00:00"

INSERT = "INTO events (seq, at, kind, body, epoch, previous, hash, rows) "
UNSEALED = INSERT.replace(", rows", "")
LAST = "(SELECT hash FROM events WHERE seq = 5)"


REFUSED = {
    "both": [
        "UPDATE events SET body = '{}' WHERE seq = 2",
        "DELETE FROM events WHERE seq = 5",
        "DELETE FROM events",
        f"INSERT {INSERT} VALUES (5, 'a', 'k', 'b', 1, 'p', 'h', '')",
        f"INSERT {INSERT} VALUES (5, 'a', 'k', 'b', 1, 'p', 'h', '') ON CONFLICT (seq) DO UPDATE SET body = 'x'",
        f"INSERT {INSERT} VALUES (0, 'a', 'k', 'b', 1, {LAST}, 'h', '')",
        f"INSERT {INSERT} VALUES (7, 'a', 'k', 'b', 1, {LAST}, 'h', '')",
        f"INSERT {INSERT} VALUES (NULL, 'a', 'k', 'b', 1, {LAST}, 'h', '')",
        f"INSERT {INSERT} VALUES (6, 'a', 'k', 'b', 1, 'another', 'h', '')",
        f"INSERT {INSERT} VALUES (6, 'a', 'k', 'b', 1, NULL, 'h', '')",
        f"INSERT {INSERT} VALUES (6, 'a', 'k', 'b', 0, {LAST}, 'h', '')",
        f"INSERT {INSERT} VALUES (6, 'a', 'k', 'b', 2, {LAST}, 'h', '')",
        f"INSERT {INSERT} VALUES (6, 'a', 'k', 'b', 1, {LAST}, 'h', ''), (6, 'a', 'k', 'b', 1, 'h', 'i', '')",
        f"INSERT {UNSEALED} VALUES (6, 'a', 'k', 'b', 1, {LAST}, 'h')",
        "UPDATE fence SET epoch = 0",
        "UPDATE fence SET epoch = 1, holder = 'me'",
        "DELETE FROM fence",
        "INSERT INTO fence VALUES (1, 9, 'me')",
        "INSERT INTO fence VALUES (2, 9, 'me')",
        "UPDATE requests SET body = 'x'",
        "DELETE FROM requests",
        "INSERT INTO requests VALUES (1, 'a', 'k', 'b')",
    ],
    "sqlite": [
        "UPDATE OR REPLACE events SET seq = 1 WHERE seq = 2",
        "UPDATE OR IGNORE events SET kind = 'x'",
        f"INSERT OR REPLACE {INSERT} VALUES (5, 'a', 'k', 'b', 1, 'p', 'h', '')",
        f"REPLACE {INSERT} VALUES (2, 'a', 'k', 'b', 1, 'p', 'h', '')",
        f"REPLACE {INSERT} SELECT seq, at, kind, '{{}}', epoch, previous, hash, '' FROM events WHERE seq = 5",
        f"INSERT OR IGNORE {INSERT} VALUES (7, 'a', 'k', 'b', 1, {LAST}, 'h', '')",
        "REPLACE INTO fence VALUES (1, 0, 'me')",
        "REPLACE INTO requests VALUES (1, 'a', 'k', 'b')",
    ],
    "postgres": [
        "TRUNCATE events",
        "TRUNCATE requests, events CASCADE",
        "TRUNCATE fence",
        "UPDATE events SET body = '{}' WHERE false",
        f"INSERT {INSERT} VALUES (7, 'a', 'k', 'b', 1, {LAST}, 'h', '') ON CONFLICT DO NOTHING",
        "INSERT INTO fence VALUES (1, 0, 'me') ON CONFLICT (id) DO UPDATE SET epoch = 0",
        "INSERT INTO requests VALUES (1, 'a', 'k', 'b') ON CONFLICT (id) DO UPDATE SET body = 'x'",
        "MERGE INTO events USING (VALUES (5)) AS v (n) ON seq = n WHEN MATCHED THEN DELETE",
    ],
}
CASES = [
    pytest.param(kind, statement, marks=[pytest.mark.postgres] if kind == "postgres" else [])
    for kind in ("sqlite", "postgres")
    for statement in REFUSED["both"] + REFUSED[kind]
]


@pytest.mark.parametrize(("kind", "statement"), CASES)
def test_d4_database_refuses(filled: Ledger, raw: Raw, statement: str) -> None:
    """Events, requests and the fence cannot be changed, removed, replaced or put out of order, by no one's hand."""
    filled.ask("pause", "{}", AT)
    before = (list(filled.read()), filled.requests(), filled.holder())
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        raw.execute(statement)
    assert (list(filled.read()), filled.requests(), filled.holder()) == before


def test_right_insert_is_taken(filled: Ledger, raw: Raw) -> None:
    """The triggers do not refuse what follows: the cases above fail for their reason alone."""
    raw.execute(f"INSERT {INSERT} VALUES (6, 'a', 'k', 'b', 1, {LAST}, 'h', '')")
    with pytest.raises(ChainBroken, match="record 6"):
        filled.verify()


def tampered(raw: Raw, statement: str, *values: object) -> None:
    raw.without_triggers()
    raw.execute(statement, *values)


@pytest.mark.parametrize("column", ["seq", "at", "kind", "body", "epoch", "previous", "hash"])
@pytest.mark.parametrize("seq", [1, 3, 5])
def test_d4_tampering_is_found(filled: Ledger, raw: Raw, column: str, seq: int) -> None:
    """One changed byte in any column of any row is found, once the triggers are out of the way."""
    ((old,),) = raw.execute(f"SELECT {column} FROM events WHERE seq = ?", seq)
    new = old + 1000 if isinstance(old, int) else chr(ord(old[0]) ^ 1) + old[1:]
    tampered(raw, f"UPDATE events SET {column} = ? WHERE seq = ?", new, seq)
    with pytest.raises(ChainBroken) as caught:
        filled.verify()
    assert caught.value.seq == seq


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize("column", ["at", "kind", "body", "previous", "hash"])
@pytest.mark.parametrize("value", ["x'ff00'", "CAST(x'22ff22' AS TEXT)", "3"])
def test_damage_is_no_crash(filled: Ledger, raw: Raw, column: str, value: str) -> None:
    """Bytes that are no text, or of another type, are a broken chain and not an error of ours."""
    tampered(raw, f"UPDATE events SET {column} = {value} WHERE seq = 3")
    with pytest.raises(ChainBroken):
        filled.verify()


ROWS = {
    "changed": "UPDATE projection SET body = '9' WHERE id = '1.3'",
    "renamed": "UPDATE projection SET id = '1.4' WHERE id = '1.3'",
    "of another kind": "UPDATE projection SET kind = 'edon' WHERE id = '1.3'",
    "removed": "DELETE FROM projection WHERE id = '1.3'",
    "added": "INSERT INTO projection (kind, id, body) VALUES ('node', '1.4', '1')",
    "all gone": "DELETE FROM projection",
}


@pytest.mark.parametrize("statement", ROWS.values(), ids=ROWS)
def test_t99_forged_rows_are_found(filled: Ledger, raw: Raw, statement: str) -> None:
    """Rows that were changed beside an intact chain are read by nobody who acts, and no record follows them."""
    assert filled.snapshot().rows == {("node", "1.3"): "1"}
    raw.execute(statement)
    assert filled.verify().records == 5
    with Ledger.open(filled.where) as ledger:
        with pytest.raises(Forged, match="changed beside its events"):
            ledger.snapshot()
        ledger.seize("another")
        with pytest.raises(Forged):
            ledger.append([Entry("noted", "{}")], {}, AT)
        assert ledger.head() == filled.head()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_t99_a_row_that_is_there_twice(filled: Ledger, raw: Raw) -> None:
    """A table made again without its key gives one row to who reads all, and may give another to who asks for one."""
    for statement in (
        "CREATE TABLE other AS SELECT * FROM projection",
        "INSERT INTO other SELECT kind, id, 'forged' FROM projection",
        "DROP TABLE projection",
        "ALTER TABLE other RENAME TO projection",
    ):
        raw.execute(statement)
    with pytest.raises(Forged, match="twice"):
        filled.snapshot()


def test_t99_forged_while_it_is_written(filled: Ledger, raw: Raw) -> None:
    """A row that is changed beside the one who writes is not sealed by what is written next."""
    raw.execute(ROWS["added"])
    filled.append([Entry("noted", "{}")], {("node", "1.3"): "2"}, AT)
    with pytest.raises(Forged):
        filled.snapshot()


def takes_null(raw: Raw) -> None:
    """Make the table again as one that takes anything."""
    for statement in (
        "CREATE TABLE other AS SELECT * FROM events",
        "DROP TABLE events",
        "ALTER TABLE other RENAME TO events",
    ):
        raw.execute(statement)


@pytest.mark.parametrize("rows", [None, ""])
def test_t99_appended_record_that_seals_no_rows(filled: Ledger, raw: Raw, rows: str | None) -> None:
    """Nobody gets around the seal by a record behind it that has none and is whole in itself."""
    raw.execute(ROWS["changed"])
    takes_null(raw)
    ((*fields, last),) = raw.execute("SELECT at, kind, body, epoch, hash FROM events WHERE seq = 5")
    at, kind, body, epoch = fields
    texts = (last, "6", at, kind, body, str(epoch), *(() if rows is None else (rows,)))
    sealed = hashlib.sha256(b"blastdoor ledger 1\n" + b"".join(f"{len(it)}:{it}".encode() for it in texts)).hexdigest()
    columns = "VALUES (6, ?, ?, ?, ?, ?, ?, ?)"
    raw.execute(f"INSERT {INSERT} {columns}", at, kind, body, epoch, last, sealed, rows)
    with pytest.raises(Corrupt):
        filled.snapshot()
    with Ledger.open(filled.where) as ledger:
        ledger.seize("another")
        with pytest.raises(LedgerError):
            ledger.append([Entry("noted", "{}")], {}, AT)
    if rows is None:
        with pytest.raises(ChainBroken, match="record 6"):
            filled.verify()


@pytest.mark.parametrize("value", ["NULL", "''", "'f'"])
def test_t99_seal_of_rows_is_part_of_the_chain(filled: Ledger, raw: Raw, value: str) -> None:
    """What a record says of the rows cannot be changed, nor can a record be made one that says nothing."""
    takes_null(raw)
    raw.execute(f"UPDATE events SET rows = {value} WHERE seq = 5")
    for read in (filled.verify, filled.snapshot):
        with pytest.raises(ChainBroken, match="record 5"):
            read()


def test_removed_row_is_found(filled: Ledger, raw: Raw) -> None:
    """A row that is gone from the middle is missed."""
    tampered(raw, "DELETE FROM events WHERE seq = 3")
    with pytest.raises(ChainBroken, match="record 3"):
        filled.verify()


def test_d4_truncation_is_found_with_a_head(filled: Ledger, raw: Raw) -> None:
    """An end that was cut off is seen by whoever kept a head."""
    kept = filled.head()
    tampered(raw, "DELETE FROM events WHERE seq > 3")
    assert filled.verify().records == 3
    with pytest.raises(ChainBroken, match="record 4"):
        filled.verify(kept)


def test_d4_rewriting_is_found_with_a_head(filled: Ledger, tmp_path: Path) -> None:
    """A ledger written again, whole in itself, is not the one of the kept head."""
    where = filled.where
    other = tmp_path / "forged" if isinstance(where, Path) else replace(where, campaign=uuid.uuid4().hex)
    with Ledger.create(other) as forged:
        forged.seize("forger")
        forged.append([Entry("noted", "{}")] * 8, {}, AT)
        assert forged.verify().records == 8
        with pytest.raises(ChainBroken, match="record 5"):
            forged.verify(filled.head())
