"""An exported ledger proves itself, and a spreadsheet that opens it runs nothing."""

import csv
import io
import json
import random
from pathlib import Path

import pytest

from orchestrator.ledger import (
    START,
    ChainBroken,
    Corrupt,
    Entry,
    Head,
    Ledger,
    LedgerError,
    NewerVersion,
    NotALedger,
    canonical,
    read_head,
    to_csv,
    to_jsonl,
    verify_jsonl,
    write_head,
)

AT = "2026-01-02T03:04:05+00:00"


def exported(ledger: Ledger) -> str:
    out = io.StringIO()
    to_jsonl(ledger, out)
    return out.getvalue()


def test_d4_export_proves_itself(filled: Ledger) -> None:
    """The file alone is enough to prove every record, and any head that the ledger had."""
    text = exported(filled)
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0] == {"format": "blastdoor ledger", "version": 1}
    assert [line["seq"] for line in lines[1:-1]] == [1, 2, 3, 4, 5]
    assert lines[-1] == {"head": {"seq": 5, "hash": filled.head().hash}}
    assert text.isascii()
    assert verify_jsonl(io.StringIO(text)).head == filled.head()
    third = lines[3]
    assert verify_jsonl(io.StringIO(text), Head(3, third["hash"])).records == 5


def test_empty_ledger(ledger: Ledger) -> None:
    """A ledger without a record is exported and proven too."""
    assert verify_jsonl(io.StringIO(exported(ledger))).head == START


def test_later_appends_do_not_show(filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is appended while the file is written does not spoil it."""
    monkeypatch.setattr("orchestrator.ledger.store.PAGE", 2)

    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            filled.append([Entry("meanwhile", "{}")], {}, AT)
            return super().write(text)

    out = Slow()
    assert to_jsonl(filled, out).seq == 5
    assert verify_jsonl(io.StringIO(out.getvalue())).records == 5


def test_every_changed_byte_is_found(filled: Ledger) -> None:
    """No byte of the file can be another one."""
    text = exported(filled)
    chance = random.Random(1)
    for at in range(len(text)):
        other = chance.choice([one for one in '0aZ"{}:, \n' if one != text[at]])
        with pytest.raises((Corrupt, NotALedger, NewerVersion)):
            verify_jsonl(io.StringIO(text[:at] + other + text[at + 1 :]))


def test_every_cut_is_found(filled: Ledger) -> None:
    """A file that was cut short anywhere is not taken for a whole one."""
    text = exported(filled)
    for end in range(len(text) - 1):
        with pytest.raises((Corrupt, NotALedger)):
            verify_jsonl(io.StringIO(text[:end]))


def test_lines_can_not_be_played_with(filled: Ledger) -> None:
    """Lines that are removed, swapped, doubled or added, and keys given twice, are found."""
    header, *records, head = exported(filled).splitlines(keepends=True)
    twice = records[1].replace('"at":', '"kind":"other","at":', 1)
    for lines in (
        [header, *records[:4], head],
        [header, *records[1:], head],
        [header, records[1], records[0], *records[2:], head],
        [header, *records, records[-1], head],
        [header, *records, head, head],
        [header, *records, head, "\n"],
        [header, records[0], twice, *records[2:], head],
        [header, *records[:2], '{"head":{"hash":"x","seq":2}}\n'],
        [header, "[" * 100_000 + "\n", head],
        [header, '{"seq":' + "9" * 5000 + "}\n", head],
    ):
        with pytest.raises(ChainBroken):
            verify_jsonl(io.StringIO("".join(lines)))


def test_cut_and_closed_again(filled: Ledger) -> None:
    """A file that was shortened with a right last line proves itself, but not the kept head."""
    header, *records, _ = exported(filled).splitlines(keepends=True)
    shorter = canonical({"head": {"seq": 2, "hash": json.loads(records[1])["hash"]}}) + "\n"
    text = "".join([header, *records[:2], shorter])
    assert verify_jsonl(io.StringIO(text)).records == 2
    with pytest.raises(ChainBroken, match="record 3"):
        verify_jsonl(io.StringIO(text), filled.head())


def test_other_files(tmp_path: Path) -> None:
    """What was never exported by us, or by a later version, is refused as such."""
    for text in ("", "hello\n", "{}\n", "[]\n", '{"format":"blastdoor ledger"}\n', '{"format":"blastdoor head"}\n'):
        with pytest.raises(NotALedger):
            verify_jsonl(io.StringIO(text))
    with pytest.raises(NewerVersion, match="schema 2, this one knows 1"):
        verify_jsonl(io.StringIO('{"format":"blastdoor ledger","version":2}\n'))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with (tmp_path / "bytes").open(encoding="utf-8") as stream, pytest.raises(NotALedger, match="not text"):
        verify_jsonl(stream)


def test_table(ledger: Ledger) -> None:
    """One row per record, with the node where the body names one."""
    ledger.append([Entry("a", canonical({"node": "1.3"})), Entry("b", "{}"), Entry("c", "no json")], {}, AT)
    ledger.append([Entry("d", canonical({"node": 7})), Entry("e", "[" * 100_000)], {}, AT)
    out = io.StringIO(newline="")
    assert to_csv(ledger, out) == 5
    rows = list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))
    assert [row["node"] for row in rows] == ["1.3", "", "", "", ""]
    assert rows[0] == {"seq": "1", "at": AT, "kind": "a", "node": "1.3", "body": '{"node":"1.3"}'}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_t57_table_holds_no_formula(ledger: Ledger, start: str) -> None:
    """A cell that a spreadsheet would run as a formula is marked as text, in every column."""
    evil = f"{start}cmd|'/c calc'!A0"
    ledger.append([Entry(evil, canonical({"node": evil})), Entry("k", evil)], {}, evil)
    out = io.StringIO(newline="")
    to_csv(ledger, out)
    rows = list(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert rows[1][1:4] == [f"'{evil}"] * 3
    assert rows[2][4] == f"'{evil}"
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for row in rows for cell in row)


def test_head_file(filled: Ledger, tmp_path: Path) -> None:
    """A head is a small file; writing it again replaces it whole, and leaves no scraps."""
    path = tmp_path / "heads" / "head.json"
    path.parent.mkdir()
    write_head(path, START)
    write_head(path, filled.head())
    assert read_head(path) == filled.head()
    assert filled.verify(read_head(path)).records == 5
    assert [file.name for file in path.parent.iterdir()] == ["head.json"]


def test_other_head_files(tmp_path: Path) -> None:
    """What is no head is refused in one line."""
    path = tmp_path / "head"
    with pytest.raises(LedgerError, match="cannot be read"):
        read_head(path)
    for data in (b"", b"{}", b"\xff", b'{"format":"blastdoor head","version":1,"seq":"1","hash":"x"}'):
        path.write_bytes(data)
        with pytest.raises(LedgerError):
            read_head(path)
    path.write_text('{"format":"blastdoor head","version":9,"seq":1,"hash":"x"}')
    with pytest.raises(NewerVersion):
        read_head(path)
    with pytest.raises(LedgerError):
        write_head(tmp_path / "no/folder", START)
