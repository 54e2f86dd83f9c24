"""Which files a change touched: what says more of an extra than that it works runs where the extra changed.

A test with the mark `touching("orchestrator/views/page")` runs in `make test` and in CI where a file of that folder, or
of the test's own, changed within a day or is not committed; `make thorough` runs it always. Where nothing tells what
changed (no git, no history that long), everything did.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

SINCE = "BLASTDOOR_SINCE"  # a revision in place of the last one that is a day old; HEAD: only what is not committed
FOUND = "BLASTDOOR_TOUCHED"  # workers are told by who started them: all must choose the same
EVERYTHING = "*"


def touched(repository: Path, since: str = "") -> list[str]:
    """Paths in the repository, or `EVERYTHING`."""
    try:
        known = (
            ("rev-parse", "--verify", f"{since}^{{commit}}")
            if since
            else ("rev-list", "-1", "--before=1 day ago", "HEAD")
        )
        if not (revision := _git(repository, *known)):
            return [EVERYTHING]
        changed = _git(repository, "diff", "--name-only", "--no-renames", revision)
        new = _git(repository, "ls-files", "--others", "--exclude-standard")
    except (OSError, subprocess.CalledProcessError):
        return [EVERYTHING]
    return sorted({*changed.splitlines(), *new.splitlines()})


def _git(repository: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True, check=True).stdout.strip()


def is_touched(places: Iterable[str], changed: Iterable[str]) -> bool:
    """Whether one of the changed files is one of these, or lies in one of these folders."""
    return any(
        file == EVERYTHING or any(file == place or file.startswith(f"{place}/") for place in places) for file in changed
    )


def look(repository: Path) -> None:
    """Tells this process and its workers; who started it may have done so."""
    if FOUND not in os.environ:
        os.environ[FOUND] = "\n".join(touched(repository, os.environ.get(SINCE, "")))


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Those that nothing changed for."""
    changed = os.environ[FOUND].splitlines()
    return [item for item in items if (places := _places(item)) and not is_touched(places, changed)]


def _places(item: pytest.Item) -> list[str]:
    """All that its marks name, and its own file."""
    named = [place for mark in item.iter_markers("touching") for place in mark.args]
    return [*named, item.nodeid.partition("::")[0]] if named else []
