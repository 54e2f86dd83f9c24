"""Branches of a git repository, written by hand: those that are made together wait for the disk together.

One process makes branches, and each is made once; but anybody may have git at work in the same repository.
"""

from collections.abc import Mapping
from pathlib import Path

from orchestrator.packs import sync_folder, write_file

_HEADS = "refs/heads"


def write_branches(repository: Path, commits: Mapping[str, str]) -> None:
    """New branches, by their names; on disk for good when it returns. Raises OSError."""
    heads = repository / _HEADS
    for name, commit in commits.items():
        lock = heads / f"{name}.lock"
        # Who was killed just here left it behind. There is one writer, so nobody can be holding it.
        lock.unlink(missing_ok=True)
        write_file(lock, f"{commit}\n".encode(), 0o644)
    for name in commits:
        (heads / f"{name}.lock").rename(heads / name)
    sync_folder(heads)
