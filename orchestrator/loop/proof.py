"""Proof that the rows of a ledger are what its events add up to: the events are folded again, and each row compared."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.budget import BOOKS, Accounts, DoesNotFit
from orchestrator.domain.events import read_event
from orchestrator.domain.folding import fold
from orchestrator.domain.state import Key, State
from orchestrator.ledger import ChainBroken, Forged, Head, Ledger, Record, Verified, verify
from orchestrator.loop.book import book
from orchestrator.text import short

_NAMED = 6


@dataclass(frozen=True)
class Proof:
    """`rows` is how many there are."""

    chain: Verified
    rows: int


def prove(ledger: Ledger, head: Head | None = None) -> Proof:
    """Walk the chain, with the head on it, and compare what its events add up to with every row of the same moment.
    Raises ChainBroken and Forged.
    """
    seen = ledger.snapshot(checked=False)
    folded = _Folded()
    chain = verify(folded.each(ledger.read(limit=seen.head.seq)), head)
    if chain.head != seen.head:
        raise ChainBroken(chain.head.seq + 1, "it was changed while it was read")
    if wrong := sorted(folded.differing(seen.rows)):
        names = ", ".join(short(" ".join(key), 80) for key in wrong[:_NAMED])
        more = f" and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
        raise Forged(f"rows are not what the events add up to: {names}{more}; keep them, and go back to a copy")
    ledger.check(seen)
    return Proof(chain, len(seen.rows))


class _Folded:
    """What events add up to."""

    def __init__(self) -> None:
        self._state, self._accounts, self._booked = State(), Accounts(), False

    def each(self, records: Iterator[Record]) -> Iterator[Record]:
        """Folded once who asked for it has taken it, which is once it is known to be on the chain."""
        for record in records:
            yield record
            self._fold(record)

    def differing(self, rows: dict[Key, str]) -> set[Key]:
        """The keys of rows that are others, are missing, or come of no event."""
        expected = {key: body for key in self._state.touched if (body := self._state.row(key)) is not None}
        if self._booked or BOOKS in rows:
            expected[BOOKS] = json.dumps(self._accounts.as_rows())
        return {key for key in rows.keys() | expected.keys() if not _is_same(key, rows.get(key), expected.get(key))}

    def _fold(self, record: Record) -> None:
        try:
            event = read_event(record.body)
            self._booked |= book(self._accounts, event)
            fold(self._state, event, record.at)
        except (KeyError, ValueError, AttributeError, DoesNotFit) as error:
            raise ChainBroken(record.seq, f"its event fits none before it ({type(error).__name__})") from None


def _is_same(key: Key, body: str | None, expected: str | None) -> bool:
    """An earlier version may have written more, or less, of the same."""
    if body == expected or body is None or expected is None:
        return body == expected
    try:
        found = json.loads(body) if key == BOOKS else json.loads(State.row_of_today(key, body))
    except (ValueError, RecursionError):
        return False
    return bool(found == json.loads(expected))
