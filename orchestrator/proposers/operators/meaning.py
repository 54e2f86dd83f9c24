"""Whether a changed file still says something, and something else than before. What is known to mean the same is not
worth a trial."""

import ast
import hashlib
import json
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from orchestrator import bounded_toml
from orchestrator.proposers.operators.safety import is_shallow, parsed

_PYTHON = (".py", ".pyw")
_UNREADABLE = object()


def is_python(path: str) -> bool:
    return path.lower().endswith(_PYTHON)


def means_else(path: str, old: bytes, new: bytes) -> bool:
    """False where a file that could be read no longer can, or reads the same; true where nobody can tell."""
    if old == new:
        return False
    before = _meaning(path, old)
    if before is _UNREADABLE:
        return True
    after = _meaning(path, new)
    return after is not _UNREADABLE and after != before


def _meaning(path: str, data: bytes) -> Any:
    try:
        if is_python(path):
            return _python_meaning(data) or _UNREADABLE
        match PurePosixPath(path).suffix.lower():
            case ".json":
                return json.loads(data)
            case ".toml":
                return bounded_toml.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError, MemoryError):
        pass
    return _UNREADABLE


@lru_cache(maxsize=64)
def _python_meaning(data: bytes) -> bytes | None:
    """A digest of the tree, which is many times as large as its file; None for what is no Python. A parent is compared
    with every draw of its children, so the last few are kept.
    """
    tree = parsed(data)
    if tree is None:
        return None
    return hashlib.sha256(ast.dump(tree).encode(errors="surrogatepass")).digest() if is_shallow(tree) else data
