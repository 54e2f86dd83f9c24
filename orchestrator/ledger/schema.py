"""The tables, and what is said to them in the same words everywhere, with values as `:name`.

Events are appended and never touched; all else can be made again from them, but for the inbox.
"""

from collections.abc import Collection

VERSION = 2

# No other column of events is unique: a conflict in it would let REPLACE remove the older row.
# Projection is what the events add up to, kept in the same transaction, so that nobody has to read them all again; the
# last event of each transaction seals it.
# By requests, another terminal asks the orchestrator at work for something.
# The fence has one row. The orchestrator that raised the epoch last is the only one whose events are taken.
_TABLES = {
    "meta": ('"key" {key} NOT NULL', "value TEXT NOT NULL", 'PRIMARY KEY ("key")'),
    "events": (
        "seq {long} NOT NULL",
        "at TEXT NOT NULL",
        "kind TEXT NOT NULL",
        "body TEXT NOT NULL",
        "epoch {long} NOT NULL",
        "previous TEXT NOT NULL",
        "hash TEXT NOT NULL",
        "rows TEXT NOT NULL",
        "PRIMARY KEY (seq)",
    ),
    "projection": ("kind {key} NOT NULL", "id {key} NOT NULL", "body TEXT NOT NULL", "PRIMARY KEY (kind, id)"),
    "requests": (
        "id INTEGER NOT NULL",
        "at TEXT NOT NULL",
        "kind TEXT NOT NULL",
        "body TEXT NOT NULL",
        "PRIMARY KEY (id)",
    ),
    "fence": (
        "id INTEGER NOT NULL CHECK (id = 1)",
        "epoch {long} NOT NULL",
        "holder TEXT NOT NULL",
        "PRIMARY KEY (id)",
    ),
}
TABLES = tuple(_TABLES)

LAST = "SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1"
APPEND = (
    "INSERT INTO events (seq, at, kind, body, epoch, previous, hash, rows)"
    " VALUES (:seq, :at, :kind, :body, :epoch, :previous, :hash, :rows)"
)
ROWS = "SELECT kind, id, body FROM projection"
ROW = "SELECT body FROM projection WHERE kind = :kind AND id = :id"
ROWS_AFTER = "SELECT id, body FROM projection WHERE kind = :kind AND id > :after ORDER BY id LIMIT :size"
SET = (
    "INSERT INTO projection (kind, id, body) VALUES (:kind, :id, :body)"
    " ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body"
)
FORGET = "DELETE FROM projection WHERE kind = :kind AND id = :id"
FENCE = "SELECT epoch, holder FROM fence"
MAKE_FENCE = "INSERT INTO fence (id, epoch, holder) VALUES (1, 0, '')"
SEIZE = "UPDATE fence SET epoch = epoch + 1, holder = :holder"
TOLD = 'SELECT value FROM meta WHERE "key" = :key'
TELL = 'INSERT INTO meta ("key", value) VALUES (:key, :value) ON CONFLICT ("key") DO UPDATE SET value = excluded.value'
REQUESTS = "SELECT id, at, kind, body FROM requests WHERE id > :after ORDER BY id"
LAST_REQUEST = "SELECT coalesce(max(id), 0) FROM requests"
ASK = "INSERT INTO requests (id, at, kind, body) VALUES (:id, :at, :kind, :body)"
ASKED = "SELECT min(id) FROM requests WHERE id > :after AND at = :at AND kind = :kind AND body = :body"


def make_tables(*, long: str, key: str) -> list[str]:
    """`long` is an integer of 64 bits, `key` a text that is compared byte by byte."""
    made = (f"CREATE TABLE {name} (\n\t" + ", \n\t".join(columns) + "\n)" for name, columns in _TABLES.items())
    return [statement.format(long=long, key=key) for statement in made]


def rows_of(kinds: Collection[str]) -> tuple[str, dict[str, str]]:
    """The statement for all rows of these kinds, and the values that name the kinds."""
    names, listed = _listed(kinds)
    return f"{ROWS} WHERE kind IN ({listed})", names


def rows_named(ids: Collection[str]) -> tuple[str, dict[str, str]]:
    """The statement for the rows of one `:kind` that have these ids, and the values that name them."""
    names, listed = _listed(ids)
    return f"SELECT id, body FROM projection WHERE kind = :kind AND id IN ({listed})", names  # noqa: S608  no value is in it


def _listed(values: Collection[str]) -> tuple[dict[str, str], str]:
    names = {f"one_{number}": value for number, value in enumerate(values)}
    return names, ", ".join(f":{name}" for name in names)


def page(kinds: Collection[str] | None) -> tuple[str, dict[str, str]]:
    """The statement for the next `:size` records after `:after`, and the values that name the kinds."""
    names, listed = _listed(kinds or ())
    wanted = f" AND kind IN ({listed})" if names else ""
    columns = "seq, at, kind, body, epoch, previous, hash, rows"
    return f"SELECT {columns} FROM events WHERE seq > :after{wanted} ORDER BY seq LIMIT :size", names  # noqa: S608  no value is in it
