"""Every test of the loop leaves books that balance."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.loop import campaign
from orchestrator.wiring.ledgers import FILE, NOTE, open_ledger
from tests.orchestrator.loop.books import check_books
from tests.orchestrator.loop.scripted import write_task


@pytest.fixture(autouse=True)
def _checked_books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledgers_in_memory: None) -> Iterator[None]:
    monkeypatch.setattr(campaign, "POLL_S", 0.01)
    yield
    for folder, folders, files in os.walk(tmp_path):
        folders[:] = [
            name for name in folders if name not in ("artifacts", "candidates.git")
        ]  # hundreds, and no ledger
        if {FILE, NOTE} & set(files):
            with open_ledger(Path(folder), read_only=True) as ledger:
                check_books(ledger)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The scripted task in its simplest form."""
    return write_task(tmp_path / "task")
