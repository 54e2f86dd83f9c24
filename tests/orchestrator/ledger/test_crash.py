"""A killed writer leaves whole transactions and a chain that holds, and the next one goes on."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.ledger import Ledger, Missing

pytestmark = pytest.mark.crash

WRITER = Path(__file__).with_name("writer.py")
ROUNDS = 20


def killed_writer(path: Path, lines: int, delay: float) -> int:
    """Let a writer run, kill it, and return the last turn that it was told is on disk."""
    with subprocess.Popen([sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            told = int(writer.stdout.readline())
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        for line in writer.stdout:
            if line.endswith("\n"):
                told = int(line)
        return told


def test_sigkill_during_appends(path: Path) -> None:
    """After each of many kills: nothing told is missing, no part of a transaction is there, and the chain holds."""
    Ledger.create(path).close()
    chance = random.Random(4)
    for _ in range(ROUNDS):
        told = killed_writer(path, chance.randint(1, 20), chance.uniform(0, 0.01))
        with Ledger.open(path, read_only=True) as ledger:
            records = ledger.verify().records
            rows = ledger.rows()
            turns = int(rows["count", "turns"])
            assert (records % 3, records) == (0, turns * 3)
            assert int(rows["count", "events"]) == records
            assert turns - told in (0, 1)
            last = [json.loads(record.body) for record in ledger.read(after=records - 3)]
            assert [(one["turn"], one["part"]) for one in last] == [(turns, part) for part in range(3)]
    with Ledger.open(path) as ledger:
        assert ledger.seize("after") == ROUNDS + 1


_CREATOR = """
import sys
from pathlib import Path
from orchestrator.ledger import Ledger
sys.stdout.write("ready\\n")
sys.stdout.flush()
Ledger.create(Path(sys.argv[1]))
"""


def test_sigkill_during_creation(tmp_path: Path) -> None:
    """Whenever it is killed, there is a whole ledger afterwards or none, and then one can be made."""
    chance = random.Random(5)
    for number in range(8):
        path = tmp_path / f"{number}.sqlite3"
        command = [sys.executable, "-c", _CREATOR, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as creator:
            assert creator.stdout is not None
            creator.stdout.readline()
            time.sleep(chance.uniform(0, 0.03))
            creator.send_signal(signal.SIGKILL)
        opened = _open_or_create(path)
        assert opened.seize("x") == 1
        opened.close()


def _open_or_create(path: Path) -> Ledger:
    try:
        return Ledger.open(path)
    except Missing:
        return Ledger.create(path)
