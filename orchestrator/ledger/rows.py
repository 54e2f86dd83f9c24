"""All rows in one number, which each record of the chain seals: a row that changes beside the events is found.

Each row is stretched to a long number, and these are added up: so an append costs what it changes, and a check one look
at every row. Other rows of the same sum are a birthday problem of many lists: with 2,688 bits, 2^100 steps and more.
"""

import hashlib
from collections.abc import Mapping

from orchestrator.ledger import chain
from orchestrator.ledger.chain import Head, Record
from orchestrator.ledger.errors import Forged

_BYTES = 336  # two blocks of SHAKE128: as quick as one byte more than half of it
_MASK = (1 << 8 * _BYTES) - 1


def added_up(rows: Mapping[tuple[str, str], str]) -> int:
    """Written for speed: a resume adds up every row of a campaign. Raises UnicodeEncodeError for lone surrogates."""
    found, shake, number = 0, hashlib.shake_128, int.from_bytes
    for (kind, id_), body in rows.items():
        # With their lengths before them, so that no two rows are one text.
        found += number(shake(f"{len(kind)},{len(id_)}:{kind}{id_}{body}".encode()).digest(_BYTES))
    return found


def digest(rows: int) -> str:
    return hashlib.sha256((rows & _MASK).to_bytes(_BYTES)).hexdigest()


def checked(rows: Mapping[tuple[str, str], str], last: Record | None, name: str) -> int:
    """The sum of rows, which the last record seals. Raises Forged and ChainBroken."""
    if last is not None:
        chain.check(last, Head(last.seq - 1, last.previous), last.epoch)
    try:
        found = added_up(rows)
        is_sealed = found == 0 if last is None else last.rows == digest(found)
    except UnicodeEncodeError:  # bytes that are no text
        is_sealed = False
    if not is_sealed:
        raise Forged(f"rows of {name} were changed beside its events; `blastdoor ledger verify` says which")
    return found
