"""Which ledger a folder has, where the database that it names was never reached."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from orchestrator.ledger import Entry, LedgerError, Missing, NotALedger
from orchestrator.settings import Settings
from orchestrator.wiring.ledgers import FILE, HEAD, NOTE, check_head, has_ledger, keep_head, open_ledger, take_ledger

NOWHERE = Settings(ledger=SecretStr("postgresql://nobody:canary@127.0.0.1:1/nothing"))
HERE = Settings(ledger=None)


def test_a_database_that_was_never_reached(tmp_path: Path) -> None:
    """It binds nobody: without its URL there is no ledger, and a file may become one."""
    with pytest.raises(LedgerError) as caught:
        take_ledger(tmp_path, NOWHERE, make=True)
    assert "canary" not in str(caught.value)
    assert "made = false" in (tmp_path / NOTE).read_text()
    assert not has_ledger(tmp_path)
    with pytest.raises(Missing, match="there is no ledger"):
        open_ledger(tmp_path, HERE)
    with pytest.raises(Missing):
        take_ledger(tmp_path, HERE, make=False)
    assert (tmp_path / NOTE).exists()
    take_ledger(tmp_path, HERE, make=True).close()
    assert ((tmp_path / FILE).exists(), (tmp_path / NOTE).exists(), has_ledger(tmp_path)) == (True, False, True)
    open_ledger(tmp_path, HERE).close()


def test_a_campaign_that_was_made_is_never_lost(tmp_path: Path) -> None:
    """Its note stays, no file is begun beside it, and the line says which file tells where it is."""
    note = tmp_path / NOTE
    note.write_text(f'campaign = "{"7" * 32}"\ndatabase = "x"\nmade = true\n')
    with pytest.raises(LedgerError, match="is in the database x: set BLASTDOOR_LEDGER") as caught:
        take_ledger(tmp_path, HERE, make=True)
    assert str(caught.value).endswith(f"{note} says so")
    assert note.exists()
    assert has_ledger(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_a_head_that_another_laid_there(tmp_path: Path) -> None:
    """What cannot be read is told of in one line, with what to do; a pipe is neither opened nor waited for."""
    head = tmp_path / HEAD
    with take_ledger(tmp_path, HERE, make=True) as ledger:
        ledger.seize("test")
        ledger.append([Entry("one", "{}")], {}, "2026-01-02T03:04:05+00:00")
        for garbage in (b"", b"\xff" * 9000, b"[" * 9000):
            head.write_bytes(garbage)
            with pytest.raises(NotALedger, match=r"head\.json is not what blastdoor kept there; remove it to go on"):
                check_head(tmp_path, ledger)
        head.unlink()
        os.mkfifo(head)
        pipe = os.open(head, os.O_RDWR)
        os.write(pipe, b"x" * 9000)
        try:
            check_head(tmp_path, ledger)
        finally:
            os.close(pipe)
        keep_head(tmp_path, ledger)
        check_head(tmp_path, ledger)
        assert head.is_file()
