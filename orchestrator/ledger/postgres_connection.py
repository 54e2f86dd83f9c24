"""psycopg in the words of the ledger."""

import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel

from orchestrator.ledger.database import Columns

# A line to a database may be long: one statement, for which it is waited once. One that sends several ahead would leave
# the server without a clock for a client that freezes between them, and the fence with it.
_WRITE = (
    "WITH gone AS (DELETE FROM projection"
    " USING unnest(CAST(:gone_kind AS text[]), CAST(:gone_id AS text[])) AS named (kind, id)"
    ' WHERE projection.kind = named.kind COLLATE "C" AND projection.id = named.id COLLATE "C"),'
    " kept AS (INSERT INTO projection (kind, id, body)"
    " SELECT * FROM unnest(CAST(:kept_kind AS text[]), CAST(:kept_id AS text[]), CAST(:kept_body AS text[]))"
    " ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body)"
    " INSERT INTO events (seq, at, kind, body, epoch, previous, hash, rows)"
    " SELECT * FROM unnest(CAST(:seq AS bigint[]), CAST(:at AS text[]), CAST(:kind AS text[]), CAST(:body AS text[]),"
    " CAST(:epoch AS bigint[]), CAST(:previous AS text[]), CAST(:hash AS text[]), CAST(:rows AS text[]))"
    " AS event (seq) ORDER BY seq"
)
_EVENT = ("seq", "at", "kind", "body", "epoch", "previous", "hash", "rows")
_ROW = ("kind", "id", "body")


# More than the server gives a statement. It may answer no more all the same, on a line that is well: one that waits for
# its disk, or a proxy whose server is gone.
ANSWER_S = 75.0
# Once a person wants an end: more than a commit takes on a disk that somebody keeps busy, for what is under way then is
# still to be recorded.
HURRIED_S = 5.0

V = TypeVar("V")


class Driver(psycopg.Connection[Any]):
    """psycopg's own, which gives up a server that says nothing for too long, and is lost then.

    Whoever connects says how one asks whether a person wants an end.
    """

    is_hurried: Callable[[], bool]

    def wait(self, gen: Generator[Any, Any, V], *given: Any, **more: Any) -> V:
        return super().wait(self._heard(gen), *given, **more)

    def _heard(self, work: Generator[Any, Any, V]) -> Generator[Any, Any, V]:
        heard, ready = time.monotonic(), None
        while True:
            try:
                wanted = work.send(ready)
            except StopIteration as done:
                found: V = done.value
                return found
            ready = yield wanted
            if ready:
                heard = time.monotonic()
            elif (silent_s := time.monotonic() - heard) > (HURRIED_S if self.is_hurried() else ANSWER_S):
                self.close()
                raise psycopg.OperationalError(f"it did not answer for {silent_s:.0f} s")


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

    def execute_all(self, *statements: str, **values: object) -> list[list[tuple[Any, ...]]]:
        # Several statements take no values, so these are written out by the client.
        done = psycopg.ClientCursor(self._driver).execute(_native("; ".join(statements)), values or None)
        found = [done.fetchall()]
        while done.nextset():
            found.append(done.fetchall())
        return found

    def write(self, events: Columns, kept: Columns, gone: Columns) -> None:
        self.execute(
            _WRITE,
            **_arrays("", _EVENT, events),
            **_arrays("kept_", _ROW, kept),
            **_arrays("gone_", _ROW[:2], gone),
        )


def _arrays(before: str, names: Sequence[str], rows: Columns) -> dict[str, list[object]]:
    """A column each."""
    return {f"{before}{name}": [row[name] for row in rows] for name in names}


@cache
def _native(statement: str) -> bytes:
    """With values as the driver wants them: `:name` is `%(name)s`."""
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()
