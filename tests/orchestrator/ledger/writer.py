"""A process that appends until it is killed. Each append is one transaction of three events and two rows.

python writer.py LEDGER
"""

import sys
from pathlib import Path

from orchestrator.ledger import Entry, Ledger, canonical


def main() -> None:
    with Ledger.open(Path(sys.argv[1])) as ledger:
        ledger.seize("writer")
        number = int(ledger.rows().get(("count", "turns"), "0"))
        while True:
            number += 1
            entries = [Entry("turn", canonical({"turn": number, "part": part, "pad": "x" * 300})) for part in range(3)]
            rows = {("count", "turns"): str(number), ("count", "events"): str(number * 3)}
            ledger.append(entries, rows, "2026-01-01T00:00:00+00:00")
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
