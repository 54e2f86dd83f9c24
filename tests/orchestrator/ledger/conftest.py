"""Ledgers for the tests of this folder, each in a file and in a PostgreSQL database."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from orchestrator.ledger import Address, Entry, Ledger, Where, canonical
from private_postgres import PrivatePostgres
from tests.orchestrator.ledger.memory import keep_ledgers_in_memory
from tests.orchestrator.ledger.raw import Raw, raw_postgres, raw_sqlite

AT = "2026-01-02T03:04:05+00:00"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def kind(request: pytest.FixtureRequest) -> str:
    """A test about one of them alone says so: `@pytest.mark.parametrize("kind", ["sqlite"])`."""
    return str(request.param)


@pytest.fixture
def where(kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Where:
    if kind == "memory":
        keep_ledgers_in_memory(monkeypatch)
    if kind != "postgres":
        return tmp_path / "ledger.sqlite3"
    server: PrivatePostgres = request.getfixturevalue("postgres_server")
    return Address(SecretStr(server.url()), uuid.uuid4().hex)


@pytest.fixture
def path(where: Where) -> Path:
    assert isinstance(where, Path)
    return where


@pytest.fixture
def address(where: Where) -> Address:
    assert isinstance(where, Address)
    return where


@pytest.fixture
def ledger(where: Where) -> Iterator[Ledger]:
    """New, seized and empty."""
    with Ledger.create(where) as made:
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
def raw(filled: Ledger) -> Iterator[Raw]:
    """The database without us, and without a single setting of ours."""
    opened = raw_sqlite(filled.where) if isinstance(filled.where, Path) else raw_postgres(filled.where)
    with opened as connection:
        yield connection
