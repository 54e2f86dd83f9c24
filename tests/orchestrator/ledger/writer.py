"""Processes to be killed. Their word is where: a file, or the name of a campaign in the database BLASTDOOR_LEDGER."""

import os
import sys
from pathlib import Path

from pydantic import SecretStr

from orchestrator.ledger import Address, Entry, Ledger, Where, canonical


def found(text: str) -> Where:
    return Path(text) if "/" in text else Address(SecretStr(os.environ["BLASTDOOR_LEDGER"]), text)


def told(where: Where) -> tuple[str, dict[str, str]]:
    """What to tell a process of it: a word, and its environment. A password is on no command line."""
    if isinstance(where, Path):
        return str(where), dict(os.environ)
    return where.campaign, {**os.environ, "BLASTDOOR_LEDGER": where.url.get_secret_value()}


def main() -> None:
    """Append for ever. Each append is one transaction of three events and two rows."""
    with Ledger.open(found(sys.argv[1])) as ledger:
        ledger.seize("writer")
        number = int(ledger.rows().get(("count", "turns"), "0"))
        while True:
            number += 1
            entries = [Entry("turn", canonical({"turn": number, "part": part, "pad": "x" * 300})) for part in range(3)]
            rows = {("count", "turns"): str(number), ("count", "events"): str(number * 3)}
            ledger.append(entries, rows, "2026-01-01T00:00:00+00:00")
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def create() -> None:
    """Say so, then make the ledger."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    Ledger.create(found(sys.argv[1]))
