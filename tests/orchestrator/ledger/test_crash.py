"""A killed writer leaves whole transactions and a chain that holds, and the next one goes on."""

import json
import random
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.ledger import Ledger, Missing, Where
from tests.orchestrator.ledger.writer import told as told_of

pytestmark = pytest.mark.crash

WRITER = Path(__file__).with_name("writer.py")
ROUNDS = 20


def killed_writer(where: Where, lines: int, delay: float) -> int:
    """Let a writer run, kill it, and return the last turn that it was told is on disk."""
    word, environment = told_of(where)
    command = [sys.executable, str(WRITER), word]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            told = int(writer.stdout.readline())
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        for line in writer.stdout:
            if line.endswith("\n"):
                told = int(line)
        return told


def test_sigkill_during_appends(where: Where) -> None:
    """After each of many kills: nothing told is missing, no part of a transaction is there, and the chain holds."""
    Ledger.create(where).close()
    chance = random.Random(4)
    for _ in range(ROUNDS):
        told = killed_writer(where, chance.randint(1, 20), chance.uniform(0, 0.01))
        with Ledger.open(where, read_only=True) as ledger:
            records = ledger.verify().records
            rows = ledger.rows()
            turns = int(rows["count", "turns"])
            assert (records % 3, records) == (0, turns * 3)
            assert int(rows["count", "events"]) == records
            assert turns - told in (0, 1)
            last = [json.loads(record.body) for record in ledger.read(after=records - 3)]
            assert [(one["turn"], one["part"]) for one in last] == [(turns, part) for part in range(3)]
    with Ledger.open(where) as ledger:
        assert ledger.seize("after") == ROUNDS + 1


_CREATOR = """
import sys
from orchestrator.ledger import Ledger
from tests.orchestrator.ledger.writer import found
sys.stdout.write("ready\\n")
sys.stdout.flush()
Ledger.create(found(sys.argv[1]))
"""


def test_sigkill_during_creation(where: Where, tmp_path: Path) -> None:
    """Whenever it is killed, there is a whole ledger afterwards or none, and then one can be made."""
    chance = random.Random(5)
    for number in range(8):
        one = tmp_path / str(number) if isinstance(where, Path) else replace(where, campaign=uuid.uuid4().hex)
        word, environment = told_of(one)
        command = [sys.executable, "-c", _CREATOR, word]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as creator:
            assert creator.stdout is not None
            creator.stdout.readline()
            time.sleep(chance.uniform(0, 0.03 if isinstance(one, Path) else 0.6))
            creator.send_signal(signal.SIGKILL)
        opened = _open_or_create(one)
        assert opened.seize("x") == 1
        opened.close()


def _open_or_create(where: Where) -> Ledger:
    try:
        return Ledger.open(where)
    except Missing:
        return Ledger.create(where)
