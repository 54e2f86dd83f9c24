"""A board that an earlier server left: the next one begins with it, and is told the same as without it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.ledger import LedgerError
from orchestrator.views.page import kept_board
from orchestrator.views.page.board_line import BoardLine
from orchestrator.views.page.kept_board import boards_folder
from orchestrator.views.page.row_state import RowState
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.page.conftest import followed, grow
from tests.orchestrator.views.page.test_data import followed_again, long_stage


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    return long_stage(tmp_path / "task", 12)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that every node was read."""
    monkeypatch.setattr(kept_board, "LEAST_NODES", 5)
    found: list[None] = []
    each = RowState.each_line

    def counted(it: RowState) -> Iterator[BoardLine]:
        found.append(None)
        return each(it)

    monkeypatch.setattr(RowState, "each_line", counted)
    return found


def better(made: Stage) -> None:
    written = len(made.story.events)
    made.story.attempt("1", 3.5, kept=True)
    grow(made, written)


def kept() -> Path:
    (file,) = boards_folder().iterdir()
    return file


def test_the_next_server_reads_only_what_changed(made: Stage, reads: list[None]) -> None:
    """It has the same board, and knows the same of open nodes and of children, as one that reads every node."""
    followed(made).close()
    written = len(made.story.events)
    made.story.attempt("1", 3.5, kept=True, operator="new")
    made.story.attempt("1.2", None, ending=Ending.FAILED)
    made.story.opened("1")
    grow(made, written)
    quick = followed_again(made)
    assert len(reads) == 1
    shutil.rmtree(boards_folder())
    slow = followed_again(made)
    assert len(reads) == 2
    assert quick.board.whole() == slow.board.whole()
    assert (quick.mark, quick.summary()) == (slow.mark, slow.summary())
    assert quick.reading.state.unfinished == slow.reading.state.unfinished != {}
    assert quick.reading.state.children == slow.reading.state.children


def test_it_is_written_when_a_server_ends(made: Stage, reads: list[None]) -> None:
    """With all that came while it was followed, for its owner alone."""
    it = followed(made)
    first = kept().read_bytes()
    better(made)
    it.poll()
    told = it.board.whole()
    it.close()
    assert kept().read_bytes() != first
    assert (kept().stat().st_mode & 0o777, boards_folder().stat().st_mode & 0o777) == (0o600, 0o700)
    assert followed_again(made).board.whole() == told
    assert len(reads) == 1


def _linked(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "spoil",
    [
        _linked,
        _pipe,
        lambda file: file.chmod(0o666),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:300]),
        lambda file: file.write_bytes(file.read_bytes()[:-100]),
        lambda file: file.write_bytes(file.read_bytes().replace(b'"form":"1', b'"form":"0')),
        lambda file: file.write_bytes(file.read_bytes().replace(b'"names":[', b'"maxes":[')),
    ],
)
def test_what_is_not_ours_or_not_whole_is_not_used(
    made: Stage, reads: list[None], spoil: Callable[[Path], None]
) -> None:
    it = followed(made)
    told = it.board.whole()
    it.close()
    spoil(kept())
    assert followed_again(made).board.whole() == told
    assert len(reads) == 2


def test_that_of_another_campaign_is_not_used(made: Stage, reads: list[None]) -> None:
    """One that was begun anew in the same place has other records."""
    followed(made).close()
    shutil.rmtree(made.folder)
    assert followed(long_stage(made.folder, 7)).board.whole()["count"] < 12
    assert len(reads) == 2


def fail(*_: object) -> None:
    raise LedgerError("the database is away")


def test_nodes_that_could_not_be_read_come_with_the_next_update(
    made: Stage, reads: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = followed(made)
    better(made)
    with monkeypatch.context() as away:
        away.setattr(RowState, "read_nodes", fail)
        with pytest.raises(LedgerError):
            it.poll()
    it.poll()
    it.close()
    kept().unlink()
    assert it.board.whole() == followed_again(made).board.whole()


def test_a_board_is_never_kept_for_the_campaign_that_came_instead(
    made: Stage, reads: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = followed(made)
    shutil.rmtree(made.folder)
    again = long_stage(made.folder, 7)
    followed(again).close()
    kept().unlink()
    with monkeypatch.context() as away:
        away.setattr(RowState, "each_line", fail)
        with pytest.raises(LedgerError):
            it.poll()
    it.close()
    later = followed_again(again)
    assert later.board.whole()["count"] == len(later.reading.state.nodes) < 12


def test_a_home_that_cannot_be_written_to_is_no_fault(
    made: Stage, reads: list[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    followed(made).close()
    followed(made).close()
    assert len(reads) == 2
