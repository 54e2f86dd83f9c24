"""The seam between the ledger and where it is kept: all that one kind of database does in its own way."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from orchestrator.ledger.chain import Head
from orchestrator.ledger.lock import Holder

T = TypeVar("T")
Columns = Sequence[Mapping[str, object]]
Key = tuple[str, str]
Rows = dict[Key, str]


class Standing(NamedTuple):
    """Who may write, what the next record follows, and the rows that were asked for, as they are."""

    epoch: int
    holder: str
    head: Head
    rows: Rows


class Connection(Protocol):
    """The driver's own, with the same words for all; one thread at a time uses it."""

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be said over it any more."""

    def transaction(self, *, writes: bool = False) -> AbstractContextManager[None]:
        """All of it or nothing. It reads one state of the database; one that writes sees what was committed last."""

    def execute(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """The rows that it gives. A value stands in the statement as `:name`."""

    def execute_all(self, *statements: str, **values: object) -> list[list[tuple[Any, ...]]]:
        """The rows of each, one after the other, and without a wait between them."""

    def write(self, events: Columns, kept: Columns, gone: Columns) -> None:
        """Add events, set rows and take others away, in the transaction of the caller."""

    def close(self) -> None: ...


class Database(Protocol):
    """One campaign's place in a database; SQLite's is a file, PostgreSQL's a schema."""

    @property
    def name(self) -> str:
        """For a person. It never holds a secret."""

    def prepare(self) -> None:
        """What must be there before anything can be opened to be filled. Raises LedgerErrors."""

    def connect(self) -> Connection:
        """Raises LedgerErrors, and within `attempt` the driver's."""

    def settle(self, connection: Connection) -> None:
        """What is set once, for good, outside of any transaction."""

    def finish(self, connection: Connection) -> None:
        """For the one who worked on it, at the end: what lies in a log beside the ledger goes into the ledger."""

    def make_tables(self, connection: Connection) -> None:
        """With all that the database itself refuses, in the transaction of the caller."""

    def drop_tables(self, connection: Connection) -> None:
        """All that was made, in the transaction of the caller, who has seen that nothing is in it."""

    def is_empty(self, connection: Connection) -> bool:
        """Whether it was never filled: the process that wanted to was killed before."""

    def is_ours(self, connection: Connection) -> bool: ...

    def standing(self, connection: Connection, rows: Sequence[Key] = ()) -> Standing:
        """Asked with every append. Until the transaction ends, nobody else can write."""

    def last_change(self, connection: Connection) -> int | None:
        """A number that is another one once anybody else has written; None where the database has none."""

    def lock(self, connection: Connection) -> bool:
        """Hold the campaign for as long as this connection lives; False when another one does. Raises Away where that
        is an earlier one of ours, which the database has not let go yet.
        """

    def unlock(self, connection: Connection) -> None: ...

    def held_by(self, connection: Connection) -> Holder | None:
        """Who holds the campaign, as far as the database knows."""

    def attempt(self, work: Callable[[], T], *, patient: bool = True) -> T:
        """Do it, with every error as one of ours. `patient` does it again while a connection is lost, within a bound:
        whether an earlier try came through is for the work to find out."""

    def give_up(self) -> None:
        """From now on nobody is patient, in whatever thread: a person wants an end."""
