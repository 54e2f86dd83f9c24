"""Looks through the code by each rule; a file that did not change since it was found in order is not read again.

usage: python -m rules      exit code: 1 where something is found
"""

import hashlib
import importlib
import json
import pkgutil
import sys
from pathlib import Path

import rules

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".rules_cache"


def found(root: Path, name: str, version: str, known: dict[str, str]) -> list[str]:
    """What a rule finds; a file that is in order is noted in `known`."""
    rule = importlib.import_module(f"rules.{name}")
    told = []
    for path in sorted(path for folder in rule.FOLDERS for path in (root / folder).rglob("*.py")):
        file, content = path.relative_to(root).as_posix(), path.read_bytes()
        key, state = f"{name} {file}", hashlib.sha256(version.encode() + content).hexdigest()
        if known.get(key) == state:
            continue
        lines = [f"{file}:{line}: {text}" for line, text in rule.findings(file, content.decode())]
        told += lines
        if not lines:
            known[key] = state
    return told


def names() -> list[str]:
    return [it.name for it in pkgutil.iter_modules(rules.__path__) if it.name != "__main__"]


def version(root: Path) -> str:
    """What a rule finds depends on its code, and on the tables that it reads."""
    tables = ("scripts/distribution.py", "orchestrator/choices.py", "orchestrator/domain/tier.py")
    paths = [*sorted(Path(__file__).parent.glob("*.py")), *(root / table for table in tables)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths if path.exists())).hexdigest()


def main(root: Path = ROOT, cache: Path = CACHE) -> int:
    try:
        known = json.loads(cache.read_text())
    except (OSError, ValueError):
        known = {}
    told = [line for name in names() for line in found(root, name, version(root), known)]
    cache.write_text(json.dumps(known))
    print(*told, sep="\n", end="\n" * bool(told))
    return int(bool(told))


if __name__ == "__main__":
    sys.exit(main())
