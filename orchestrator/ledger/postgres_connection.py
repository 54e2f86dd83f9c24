"""psycopg in the words of the ledger."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
from psycopg import IsolationLevel


class PostgresConnection:
    """One that the server or the line between ended is lost, which the next statement finds out."""

    def __init__(self, driver: "psycopg.Connection[Any]") -> None:
        self._driver = driver
        self.close = driver.close

    @property
    def is_lost(self) -> bool:
        return self._driver.closed

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[None]:
        # A write's statement sees what was committed before it: one that waited for the fence must see what came
        # meanwhile.
        level = IsolationLevel.READ_COMMITTED if writes else IsolationLevel.REPEATABLE_READ
        if self._driver.isolation_level is not level:
            self._driver.isolation_level = level
        try:
            yield
            self._driver.commit()
        except BaseException:
            try:
                self._driver.rollback()
            except psycopg.Error:
                self._driver.close()
            raise

    def execute(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        done = self._driver.execute(_native(statement) if values else statement.encode(), values or None)
        return done.fetchall() if done.description else []

    def execute_all(self, *statements: str) -> list[list[tuple[Any, ...]]]:
        done = self._driver.execute("; ".join(statements).encode())
        found = [done.fetchall()]
        while done.nextset():
            found.append(done.fetchall())
        return found


@cache
def _native(statement: str) -> bytes:
    """With values as the driver wants them: `:name` is `%(name)s`."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()
