"""The tables. Events are appended and never touched; all else can be made again from them, but for the inbox."""

from sqlalchemy import CheckConstraint, Column, Integer, MetaData, Table, Text

VERSION = 1

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# No other column is unique: a conflict in it would let REPLACE remove the older row.
events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

# What the events add up to, kept in the same transaction, so that nobody has to read them all again.
projection = Table(
    "projection",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

# By these, another terminal asks the orchestrator at work for something.
requests = Table(
    "requests",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    sqlite_autoincrement=True,
)

# One row. Whoever raises the epoch last is the only one whose events are taken.
fence = Table(
    "fence",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False),
    Column("holder", Text, nullable=False),
)
