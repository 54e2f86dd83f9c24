"""A killed writer leaves whole transactions and a chain that holds, and the next one goes on."""

import json
import random
import subprocess
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.ledger import Ledger, Missing, Where
from tests.orchestrator.ledger.writer import create, main
from tests.orchestrator.ledger.writer import told as told_of
from tests.started import Started

pytestmark = pytest.mark.crash

WRITER = f"{main.__module__}:{main.__name__}"
CREATOR = f"{create.__module__}:{create.__name__}"
ROUNDS = 20


def killed_writer(where: Where, lines: int, delay: float) -> int:
    """Let a writer run, kill it, and return the last turn that it was told is on disk."""
    word, environment = told_of(where)
    with Started(word, program=WRITER, env=environment, stdout=subprocess.PIPE, stderr=2) as writer:
        for _ in range(lines):
            told = int(writer.said.readline())
        time.sleep(delay)
        writer.kill()
        for line in writer.said:
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


def test_sigkill_during_creation(where: Where, tmp_path: Path) -> None:
    """Whenever it is killed, there is a whole ledger afterwards or none, and then one can be made."""
    chance = random.Random(5)
    for number in range(8):
        one = tmp_path / str(number) if isinstance(where, Path) else replace(where, campaign=uuid.uuid4().hex)
        word, environment = told_of(one)
        with Started(word, program=CREATOR, env=environment, stdout=subprocess.PIPE, stderr=2) as creator:
            assert creator.said.readline() == "ready\n"
            time.sleep(chance.uniform(0, 0.03 if isinstance(one, Path) else 0.6))
            creator.kill()
        opened = _open_or_create(one)
        assert opened.seize("x") == 1
        opened.close()


def _open_or_create(where: Where) -> Ledger:
    try:
        return Ledger.open(where)
    except Missing:
        return Ledger.create(where)
