"""A database as anybody else sees it, in whose hands nothing of ours is."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from orchestrator.ledger import Address


@dataclass(frozen=True)
class Raw:
    """`execute` takes ? for a value, and gives the rows; `without_triggers` takes what the database refuses by."""

    execute: Callable[..., list[Any]]
    without_triggers: Callable[[], None]


@contextmanager
def raw_sqlite(path: Path) -> Iterator[Raw]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:

        def execute(statement: str, *values: object) -> list[Any]:
            return connection.execute(statement, values).fetchall()

        def without_triggers() -> None:
            for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
                execute(f"DROP TRIGGER {name}")

        yield Raw(execute, without_triggers)


@contextmanager
def raw_postgres(address: Address) -> Iterator[Raw]:
    with psycopg.connect(address.url.get_secret_value(), autocommit=True) as connection:

        def execute(statement: str, *values: object) -> list[Any]:
            done = connection.execute(statement.replace("?", "%s").encode(), values or None)
            return done.fetchall() if done.description else []

        def without_triggers() -> None:
            for table in ("events", "fence", "requests"):
                execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")

        execute(f"SET search_path = {address.schema}")
        yield Raw(execute, without_triggers)
