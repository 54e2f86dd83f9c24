"""Packages of PyPI that sandboxes of others need and we do not, pinned, in folders of their own.

Where one cannot be had, Unprepared says in one line why.
"""

import sys
from pathlib import Path

from tests.newer_engine import said

REQUIREMENTS = Path(__file__).with_name("their_requirements")


def install(name: str, folder: Path) -> Path:
    """A Python of its own that has the pinned packages of this name."""
    said("no virtual environment can be made", [sys.executable, "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    said(f"PyPI does not give {name}", [str(python), "-m", "pip", "install", *_pinned(name)])
    return python


def install_for(version: str, name: str, folder: Path) -> None:
    """The same packages for another Python, as files to be copied."""
    words = ["--target", str(folder), "--python-version", version, "--only-binary=:all:", "--no-deps"]
    said(
        f"PyPI does not give {name} for Python {version}",
        [sys.executable, "-m", "pip", "install", *words, *_pinned(name)],
    )


def _pinned(name: str) -> list[str]:
    return [
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
        str(REQUIREMENTS / f"{name}.txt"),
    ]
