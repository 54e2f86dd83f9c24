"""All rows in one number, which each record of the chain seals: a row that changes beside the events is found.

Each row is stretched to a long number, and these are added up: so an append costs what it changes, and a check one look
at every row. Other rows of the same sum are a birthday problem of many lists: with 2,688 bits, 2^100 steps and more.
"""

import hashlib
from collections.abc import Iterable

from orchestrator.ledger import chain
from orchestrator.ledger.chain import Head, Record
from orchestrator.ledger.errors import Forged

_BYTES = 336  # two blocks of SHAKE128: as quick as one byte more than half of it
_MASK = (1 << 8 * _BYTES) - 1

EMPTY = 0


def added_up(rows: Iterable[tuple[str, str, str]]) -> int:
    """Of kind, id and body of each row."""
    shake, number = hashlib.shake_128, int.from_bytes
    return sum(
        number(shake(f"{len(kind)},{len(id_)}:{kind}{id_}{body}".encode("utf-8", "surrogateescape")).digest(_BYTES))
        for kind, id_, body in rows
    )


def digest(rows: int) -> str:
    return hashlib.sha256((rows & _MASK).to_bytes(_BYTES)).hexdigest()


def check(rows: int, last: Record | None, name: str) -> None:
    """Whether the last record seals a sum of rows. A ledger from before records sealed rows tells nothing of them.
    Raises Forged and ChainBroken.
    """
    if last is None:
        is_sealed = rows == EMPTY
    else:
        chain.check(last, Head(last.seq - 1, last.previous), last.epoch)
        is_sealed = last.rows in (None, digest(rows))
    if not is_sealed:
        raise Forged(f"rows of {name} were changed beside its events; `blastdoor ledger verify` says which")
