"""What must hold of every ledger, whatever happened: the chain, and rows that are the fold of its events."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.budget import BOOKS, Accounts
from orchestrator.domain.census import Counted, take_census
from orchestrator.domain.dots import take_dots
from orchestrator.domain.events import read_event
from orchestrator.domain.folding import fold
from orchestrator.domain.state import State
from orchestrator.ledger import Ledger
from orchestrator.loop.book import book
from orchestrator.loop.proof import prove
from orchestrator.wiring.ledgers import open_ledger

Rows = dict[tuple[str, str], object]


def check_books(ledger: Ledger) -> None:
    """The chain is whole, and a fold of all events gives the rows, and the indexes that a resume makes of them."""
    prove(ledger)
    state, accounts = folded(ledger)
    resumed = State.from_rows(ledger.rows())
    written: Rows = {key: json.loads(body) for key, body in ledger.rows().items()}
    expected: Rows = {key: json.loads(row) for key in state.touched if (row := state.row(key))}
    if BOOKS in written:
        expected[BOOKS] = json.loads(json.dumps(accounts.as_rows()))
    assert written == expected
    assert resumed.children == state.children
    assert set(resumed.unfinished) == set(state.unfinished)
    assert resumed.branches == state.branches
    census, notable = take_census(resumed.nodes.values())
    assert resumed.counted().plain == Counted.of(census, notable).plain
    assert resumed.counted().notable == Counted.of(census, notable).notable
    dots = {name: body for (kind, name), body in ledger.rows("dots").items()}
    assert dots == {name: it.model_dump_json() for name, it in take_dots(resumed.nodes.values()).items()}


def folded(ledger: Ledger) -> tuple[State, Accounts]:
    state, accounts = State(), Accounts()
    for record in ledger.read():
        event = read_event(record.body)
        book(accounts, event)
        fold(state, event, record.at)
    return state, accounts


@contextmanager
def ledger_of(folder: Path) -> Iterator[Ledger]:
    """Of a task folder, for reading."""
    with open_ledger(folder / ".blastdoor", read_only=True) as ledger:
        yield ledger
