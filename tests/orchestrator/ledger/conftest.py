"""Ledgers for the tests of this folder."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.ledger import Entry, Ledger, canonical

AT = "2026-01-02T03:04:05+00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """New, seized and empty."""
    with Ledger.create(path) as made:
        made.seize("test")
        yield made


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    """Five events in three transactions."""
    for sizes in (1, 3, 1):
        entries = [Entry("noted", canonical({"node": "1.3", "size": size, "ä": "ö"})) for size in range(sizes)]
        ledger.append(entries, {("node", "1.3"): str(sizes)}, AT)
    return ledger


@pytest.fixture
def raw(filled: Ledger, path: Path) -> Iterator[sqlite3.Connection]:
    """The database without us, and without a single pragma of ours."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection
