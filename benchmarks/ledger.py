"""How fast a ledger takes events, in a file and in a PostgreSQL database beside it; both wait for the disk."""

import statistics
import tempfile
import time
import uuid
from pathlib import Path

from pydantic import SecretStr

from benchmarks.figure import Figure
from orchestrator.ledger import Address, Entry, Ledger, canonical

ROUNDS = 8
APPENDS = 100
AT = "2026-01-01T00:00:00+00:00"


def append(ledger: Ledger, start: int) -> float:
    """Appends a second, each of three events and two rows: what a step of a trial writes."""
    began = time.perf_counter()
    for number in range(start, start + APPENDS):
        entries = [Entry("turn", canonical({"turn": number, "part": part, "pad": "x" * 300})) for part in range(3)]
        ledger.append(entries, {("node", str(number)): "x" * 600, ("count", "turns"): str(number)}, AT)
    return APPENDS / (time.perf_counter() - began)


async def measure() -> list[Figure]:
    from private_postgres import postgres

    files: list[float] = []
    databases: list[float] = []
    with tempfile.TemporaryDirectory() as folder, postgres(Path(folder) / "apt.log") as server:
        address = Address(SecretStr(server.url()), uuid.uuid4().hex)
        with Ledger.create(Path(folder) / "ledger.sqlite3") as file, Ledger.create(address) as database:
            database.hold()
            for ledger in (file, database):
                ledger.seize("benchmark")
            for number in range(ROUNDS):
                files.append(append(file, number * APPENDS))
                databases.append(append(database, number * APPENDS))
    ratios = [ours / theirs for ours, theirs in zip(databases, files, strict=True)]
    return [
        Figure("appends to an SQLite file", statistics.median(files), "/s"),
        Figure("appends to PostgreSQL on loopback", statistics.median(databases), "/s"),
        Figure("appends, PostgreSQL / SQLite", statistics.median(ratios), "x"),
    ]
