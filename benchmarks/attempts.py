"""Attempts a minute of the task that `init` writes, trial and judge each in a chamber of its own: without a daemon and
by Docker's engine, in turn, each at its best width. Counted from the end of the baseline, by the ledger.
"""

import statistics
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from benchmarks.figure import Figure
from orchestrator.domain import events as e
from orchestrator.ledger import Ledger
from orchestrator.wiring.ledgers import FILE

ATTEMPTS, ROUNDS, WIDTHS = 60, 3, (4, 8)
DOCKER, *WITHOUT_DAEMON = BACKENDS = ("docker", "runc", "crun")
_BLASTDOOR = Path(sys.executable).with_name("blastdoor")


async def measure() -> list[Figure]:
    rates: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for _ in range(ROUNDS):
        for name, found in rates.items():
            found.append(max(_attempts_a_minute(name, width) for width in WIDTHS))
    figures = [Figure("attempts of the starter task by Docker", statistics.median(rates[DOCKER]), "/min")]
    for name in WITHOUT_DAEMON:
        ratio = statistics.median(ours / theirs for ours, theirs in zip(rates[name], rates[DOCKER], strict=True))
        figures += [
            Figure(f"the same by {name}, without a daemon", statistics.median(rates[name]), "/min"),
            Figure(f"by {name} / by Docker", ratio, "x", ">= 3"),
        ]
    return figures


def _attempts_a_minute(backend: str, width: int) -> float:
    with tempfile.TemporaryDirectory(prefix="blastdoor-bench-") as name:
        task = Path(name, "task")
        _run("init", str(task))
        _run("run", str(task), "--backend", backend, "--attempts", str(ATTEMPTS), "--width", str(width), "--seed", "1")
        with Ledger.open(task / ".blastdoor" / FILE, read_only=True) as ledger:
            kind = e.AttemptEnded.model_fields["kind"].default
            baseline, *ended = [datetime.fromisoformat(record.at) for record in ledger.read(kinds=[kind])]
    return len(ended) / (max(ended) - baseline).total_seconds() * 60


def _run(*words: str) -> None:
    subprocess.run([str(_BLASTDOOR), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
