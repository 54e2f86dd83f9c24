"""Which campaigns there are under some folders. Each gets a short name of its own, so that no address holds a path."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.task import TaskError
from orchestrator.wiring.ledgers import FILE, NOTE
from orchestrator.wiring.reading import AB_FILE, ab_folder, campaign_folder

DEPTH = 5
# A folder like a whole disk is not searched to its end.
MOST_FOLDERS = 20_000
MOST_CAMPAIGNS = 500
_NAME = 12


@dataclass(frozen=True)
class Found:
    """`named` is what a command would be told, `shown` the same for a person, `folder` is the campaign's own."""

    id: str
    named: Path
    folder: Path
    shown: str


def find_campaigns(folders: Iterable[Path]) -> dict[str, Found]:
    """By their ids, in the order of their places."""
    found: dict[str, Found] = {}
    for top in folders:
        for named in _walked(top):
            folder = _folder_of(named)
            if folder and len(found) < MOST_CAMPAIGNS:
                made = found_at(folder, named)
                found.setdefault(made.id, made)
    return found


def is_file(found: Found) -> bool:
    """Whether its ledger is a file, and not in a database elsewhere."""
    return (found.folder / FILE).exists()


def _walked(top: Path) -> Iterator[Path]:
    """The folder and those in it, without following links; what is hidden is nobody's task."""
    left = MOST_FOLDERS
    waiting = [(top, 0)]
    while waiting and left:
        folder, depth = waiting.pop()
        left -= 1
        yield folder
        yield from _compared(folder)
        if depth < DEPTH:
            waiting += [(inside, depth + 1) for inside in reversed(_inside(folder))]


def _compared(task: Path) -> list[Path]:
    """The campaigns of its comparison, which lies in the hidden folder of a task."""
    try:
        folder = ab_folder(task)
        return _inside(folder) if (folder / AB_FILE).is_file() else []
    except (TaskError, OSError):
        return []


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [it.name for it in entries if it.is_dir(follow_symlinks=False) and not it.name.startswith(".")]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def _folder_of(named: Path) -> Path | None:
    try:
        folder = campaign_folder(named)
        return folder if any((folder / name).is_file() for name in (FILE, NOTE)) else None
    except (TaskError, OSError):
        return None


def found_at(folder: Path, named: Path | None = None) -> Found:
    whole = os.fsencode(folder.resolve())
    return Found(hashlib.sha256(whole).hexdigest()[:_NAME], named or folder, folder, str(named or folder))
