"""Derives what a rented machine installs from requirements.txt: the few packages of `sandbox`, and all that they need.

Run it after `make lock`; a test holds both files together.
"""

import re
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "sandbox" / "box" / "requirements.txt"
NEEDED = ("docker", "pydantic", "structlog", "tenacity")
HEADER = "# Derived from requirements.txt by scripts/box_requirements.py; do not edit.\n"


def bare(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(text: str) -> dict[str, str]:
    """Each package's own lines, by its name."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if start := re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^]]*\])?==", line):
            name = bare(start[1])
            found[name] = found.get(name, "")
        if name and not line.startswith("#"):
            found[name] += line
    return found


def closure() -> set[str]:
    """By what is installed here, without extras, on Linux and Python 3.11 or newer."""
    todo, found = list(NEEDED), set()
    while todo:
        name = bare(todo.pop())
        if name in found:
            continue
        found.add(name)
        for line in requires(name) or []:
            wanted, _, marker = line.partition(";")
            if not re.search(r"extra\s*==|win32|python_version\s*<|python_full_version\s*<", marker):
                todo.append(re.match(r"[A-Za-z0-9._-]+", wanted.strip())[0])  # type: ignore[index]  # a name begins it
    return found


def derived() -> str:
    pins = pinned((ROOT / "requirements.txt").read_text("utf-8"))
    return HEADER + "".join(pins[name] for name in sorted(closure()))


if __name__ == "__main__":
    TARGET.write_text(derived(), "utf-8")
