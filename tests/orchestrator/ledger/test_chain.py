"""A chain shows every change to it, except that its end is gone."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.ledger.chain import GENESIS, START, Entry, Head, Record, canonical, link, seal, verify
from orchestrator.ledger.errors import ChainBroken

AT = "2026-01-02T03:04:05+00:00"
SEALED = "986dfb034c2277608486f5f44237369d07feeac14abe510b65286b0162e24eca"


def chain(length: int) -> list[Record]:
    return link(START, [Entry("kind", f'{{"n":{number}}}') for number in range(length)], AT, 1)


def test_seal_is_fixed() -> None:
    """The seal of a record never changes, or old ledgers could not be proven; the form is this one."""
    fields = (GENESIS, "1", AT, "kind", "{}", "1", "rows")
    expected = b"blastdoor ledger 1\n" + b"".join(f"{len(field)}:{field}".encode() for field in fields)
    assert seal(GENESIS, 1, AT, "kind", "{}", 1, "rows") == hashlib.sha256(expected).hexdigest()
    assert seal(GENESIS, 1, AT, "kind", "{}", 1, "rows") == SEALED


@given(st.tuples(*[st.text()] * 4), st.tuples(*[st.text()] * 4))
def test_seal_is_unambiguous(one: tuple[str, str, str, str], other: tuple[str, str, str, str]) -> None:
    """Text cannot move from one field to the next unseen."""
    seals = {seal(GENESIS, 1, at, kind, body, 1, rows) for at, kind, body, rows in (one, other)}
    assert (len(seals) == 1) == (one == other)


def test_length_is_part_of_the_seal() -> None:
    """Fields that look like another field's length do not confuse it."""
    assert seal(GENESIS, 1, "a", "b2:cd", "", 1, "") != seal(GENESIS, 1, "a", "b", "cd", 1, "")
    assert seal(GENESIS, 11, "1", "", "", 1, "") != seal(GENESIS, 1, "11", "", "", 1, "")


def test_whole_chain() -> None:
    """A chain as it was written is proven, from none to many records, and gives its head."""
    assert verify([]).head == START
    records = chain(10)
    assert verify(records).head == Head(10, records[-1].hash)
    assert verify(records).records == 10


def test_link_goes_on() -> None:
    """What is linked later follows what was there."""
    records = chain(3)
    more = link(Head(3, records[-1].hash), [Entry("later", "{}")], AT, 2)
    assert verify([*records, *more]).records == 4


CHANGES: dict[str, Any] = {
    "seq": 7,
    "at": AT.replace("2026", "2025"),
    "kind": "kinD",
    "body": '{"n":7}',
    "epoch": 2,
    "previous": "f" * 64,
    "hash": "f" * 64,
    "rows": "f" * 64,
}


@pytest.mark.parametrize("field", CHANGES)
@pytest.mark.parametrize("seq", [1, 3, 5])
def test_changed_field(field: str, seq: int) -> None:
    """Another value in any field of any record is found, and named by its number."""
    records = chain(5)
    records[seq - 1] = replace(records[seq - 1], **{field: CHANGES[field]})
    with pytest.raises(ChainBroken) as caught:
        verify(records)
    assert caught.value.seq == seq
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, b"bytes", "lone \udcff"])
@pytest.mark.parametrize("field", ["at", "kind", "body", "previous", "hash", "rows"])
def test_other_types(field: str, value: Any) -> None:
    """What only damage can put there is a broken chain too, and no crash."""
    records = chain(3)
    records[1] = replace(records[1], **{field: value})
    with pytest.raises(ChainBroken):
        verify(records)


def test_removed_swapped_repeated() -> None:
    """Records cannot vanish, change places or come twice."""
    one, two, three, four = chain(4)
    for damaged in ([one, three, four], [two, three, four], [one, three, two, four], [one, two, two, three]):
        with pytest.raises(ChainBroken):
            verify(damaged)


def test_older_epoch() -> None:
    """A record of an orchestrator that had been replaced is found, even if it was sealed right."""
    records = link(START, [Entry("kind", "{}")], AT, 2)
    records += link(Head(1, records[0].hash), [Entry("kind", "{}")], AT, 1)
    with pytest.raises(ChainBroken, match="replaced"):
        verify(records)


def test_cut_short_needs_a_head() -> None:
    """The chain alone does not know its end; a head that was kept does."""
    records = chain(5)
    kept = Head(5, records[-1].hash)
    assert verify(records[:3]).records == 3
    with pytest.raises(ChainBroken, match="ends before it") as caught:
        verify(records[:3], kept)
    assert caught.value.seq == 4


def test_written_anew_needs_a_head() -> None:
    """A chain that was sealed again from some record on is whole in itself, but not the one of the head."""
    records = chain(5)
    forged = link(START, [Entry("kind", "{}")] * 7, AT, 1)
    assert verify(forged).records == 7
    for seq in (1, 3, 5):
        with pytest.raises(ChainBroken, match="written again"):
            verify(forged, Head(seq, records[seq - 1].hash))


def test_any_head_of_the_past() -> None:
    """Every head that the chain ever had is on it, the very first included; others are not."""
    records = chain(5)
    for head in (START, *(Head(record.seq, record.hash) for record in records)):
        assert verify(records, head).records == 5
    for head in (Head(0, "f" * 64), Head(-1, GENESIS)):
        with pytest.raises(ChainBroken):
            verify(records, head)


def test_canonical() -> None:
    """One value has one text, in ASCII; what JSON cannot say is refused."""
    assert canonical({"b": [1, 2.5, None], "a": "ä\udcff\0"}) == '{"a":"\\u00e4\\udcff\\u0000","b":[1,2.5,null]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))
