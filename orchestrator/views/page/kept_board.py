"""The board of a long campaign, kept from one server to the next: to read every node once more takes seconds.

It lies among the user's own files, never beside a ledger, which may be somebody else's. It says up to which record it
goes: where the ledger has that record, the nodes that later records are about are read again, and no others.
"""

import os
import secrets
import stat
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from orchestrator.ledger import Head, Ledger
from orchestrator.views.page.board import Board
from orchestrator.views.page.columns import packed, parted

# Fewer are read in less than a second.
LEAST_NODES = 5000
# With more records after it, reading all of it is as quick.
_MOST_RECORDS = 20_000
_MOST_BYTES = 256 << 20
_MOST_FILES = 20
# Raised with what a board is, or how it is ordered; another release writes its own.
_FORM = f"1 {version('blastdoor')}"


def boards_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "blastdoor" / "boards"


def keep_board(name: str, board: Board, head: Head) -> None:
    """Whole or not at all. A cache that cannot be written is none."""
    if len(board.names()) < LEAST_NODES:
        return
    told = {"form": _FORM, "seq": head.seq, "hash": head.hash, **board.kept_beside(), **board.about()}
    folder = boards_folder()
    beside = folder / f".{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(packed(told, board.columns()))
        beside.replace(folder / name)
        oldest_first = sorted(folder.iterdir(), key=lambda it: it.stat().st_mtime)
        for old in oldest_first[:-_MOST_FILES]:
            old.unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            beside.unlink()


def kept_board(name: str, board: Board, ledger: Ledger) -> Head | None:
    """Fills an empty board with what was kept, and says up to which record; None where nothing fits this ledger."""
    data = _read(boards_folder() / name)
    try:
        told, columns = parted(data) if data else ({}, [])
        head = Head(int(told["seq"]), str(told["hash"])) if told.get("form") == _FORM else None
        if head is None or not ledger.has(head) or ledger.head().seq - head.seq > _MOST_RECORDS:
            return None
        return head if board.restore(told, columns) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # of another version; it is written anew


def _read(path: Path) -> bytes:
    """Nothing where there is none that is ours alone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(file, "rb") as opened:
        about = os.fstat(file)
        is_ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o022
        return opened.read() if is_ours and about.st_size <= _MOST_BYTES else b""
