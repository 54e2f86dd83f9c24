"""The tables. Events are appended and never touched; all else can be made again from them, but for the inbox."""

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, MetaData, Table, Text

VERSION = 1

# SQLite's own integers are as long, and only by this name are they the key of the table itself.
_LONG = BigInteger().with_variant(Integer(), "sqlite")
# Compared byte by byte: an order that depends on the server's language changes when its libraries do.
_KEY = Text().with_variant(Text(collation="C"), "postgresql")

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", _KEY, primary_key=True),
    Column("value", Text, nullable=False),
)

# No other column is unique: a conflict in it would let REPLACE remove the older row.
events = Table(
    "events",
    metadata,
    Column("seq", _LONG, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("epoch", _LONG, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

# What the events add up to, kept in the same transaction, so that nobody has to read them all again.
projection = Table(
    "projection",
    metadata,
    Column("kind", _KEY, primary_key=True),
    Column("id", _KEY, primary_key=True),
    Column("body", Text, nullable=False),
)

# By these, another terminal asks the orchestrator at work for something.
requests = Table(
    "requests",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
)

# One row. The process that raised the epoch last is the only one whose events are taken.
fence = Table(
    "fence",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("epoch", _LONG, nullable=False),
    Column("holder", Text, nullable=False),
)
