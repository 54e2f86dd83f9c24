"""Files that a change touched: a test that says more of an extra than that it works runs where the extra changed.

A test with the mark `touching("page")` runs in `make test` and in CI where a file of that extra, or the test's own,
changed within a day or is not committed; `make thorough` runs it always. Where nothing tells what
changed (no git, no history that long), everything did.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

# What the promises of each backend rest on.
CONTRACT = tuple(
    f"sandbox/{name}"
    for name in (
        "backend.py", "boot.sh", "channel.py", "conformance", "job.py", "live.py", "posture.py", "seccomp.json",
        "session.py", "tenancy.py", "warm.py", "wire",
    )
)  # fmt: skip
# Where an extra lies, its tests included: `touching("modal")`.
EXTRAS = {
    "modal": ("sandbox/backends/modal", "tests/modal_emulator", "tests/sandbox/modal", *CONTRACT),
    "skypilot": (
        "sandbox/backends/skypilot", "sandbox/box", "scripts/private_slurm.py", "scripts/slurm_files.py",
        "tests/sandbox/skypilot", "tests/slurm", *CONTRACT,
    ),
    "postgres": ("orchestrator/ledger", "scripts/private_postgres.py"),
    "page": ("orchestrator/views/page", "tests/orchestrator/views/page"),
    "importing": (
        "orchestrator/apart.py", "orchestrator/bounded_toml.py", "orchestrator/discovery", "orchestrator/importing",
        "orchestrator/judge/guest", "tests/orchestrator/importing",
    ),
    "audit": ("orchestrator/examine", "orchestrator/judge"),
    "examples": ("examples",),
    "samplers": ("orchestrator/proposers", "pyproject.toml", "requirements.txt"),
    "members": ("orchestrator/judge", "orchestrator/loop", "orchestrator/proposers"),
    "learning": ("orchestrator/loop", "orchestrator/meta", "orchestrator/proposers"),
    "models": ("images/agent", "orchestrator/agents", "orchestrator/llm", "orchestrator/playbook"),
    "docker": ("sandbox/attacks", "sandbox/backends/docker", *CONTRACT),
    "runc": ("sandbox/attacks", "sandbox/backends/runc", *CONTRACT),
    # What a campaign finds again after a kill or a cut, whoever keeps its ledger or its chambers.
    "recovery": ("orchestrator/domain/events", "orchestrator/loop", "orchestrator/wiring", "tests/crash"),
    "baking": (
        "images", "orchestrator/machine", "sandbox/bake_steps.py", "sandbox/baking.py", "sandbox/wheels.py",
        "sandbox/backends",
    ),
    "docs": ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "deploy", "docs", "examples"),
    "packaging": ("deploy", "images", "orchestrator/machine", "pyproject.toml", "requirements.txt"),
}  # fmt: skip

SINCE = "TESTS_SINCE"  # a revision in place of the last one that is a day old; HEAD: only what is not committed
FOUND = "TESTS_TOUCHED"  # workers are told by who started them: all must choose the same
EVERYTHING = "*"


def touched(repository: Path, since: str = "") -> list[str]:
    """Return paths in the repository, or `EVERYTHING`."""
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
    """Set what was touched for this process and its workers, unless a parent did."""
    if FOUND not in os.environ:
        os.environ[FOUND] = "\n".join(touched(repository, os.environ.get(SINCE, "")))


def left_out(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of extras that were not touched."""
    changed = os.environ[FOUND].splitlines()
    return [item for item in items if (places := _places(item)) and not is_touched(places, changed)]


def _places(item: pytest.Item) -> list[str]:
    """Return the places of its extras, and its own file; nothing for a test of the core."""
    named = [place for mark in item.iter_markers("touching") for extra in mark.args for place in EXTRAS[extra]]
    return [*named, item.nodeid.partition("::")[0]] if named else []
