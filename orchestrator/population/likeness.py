"""How much alike two changes are: by the tokens that each adds to the same parent and takes from it.

A tree has a form, which is the same for all that differ only in writing; a change has a sketch of bounded size, from
which the share of what two changes have in common is told, exactly for small changes.
"""

import base64
import hashlib
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.change import File, Tree
from orchestrator.population.tokens import names_in, tokens

SKETCH = 128
_SHINGLE = 4
MOST_BYTES = 512 << 10
_SECONDS = 5.0

Sketch = tuple[int, ...]
Shingles = frozenset[tuple[str, ...]]


# The form of what differs from the root in writing alone.
UNCHANGED = hashlib.sha256().hexdigest()[:32]


@dataclass(frozen=True)
class Likeness:
    form: str
    sketch: Sketch


def likeness(root: Tree, parent: Tree, tree: Tree) -> Likeness:
    """Of a change to `parent`. In a thread: it costs what the files that differ cost to be read some times over."""
    reader = _Reader()
    form = hashlib.sha256()
    for path in _differing(root, tree):
        before, after = reader.exact(path, root.get(path)), reader.exact(path, tree.get(path))
        if before != after:
            form.update(f"{len(path)} {path!r} {after}\n".encode())
    shingles: set[tuple[str, ...]] = set()
    for path in _differing(parent, tree):
        old, new = reader.shingles(path, parent.get(path), tree.get(path))
        shingles |= {("+", path, *it) for it in new - old} | {("-", path, *it) for it in old - new}
    return Likeness(form.hexdigest()[:32], tuple(sorted({_hash(it) for it in shingles})[:SKETCH]))


def alike(one: Sketch, other: Sketch) -> float:
    """The share that both have of what either has; told from the smallest of both where there is more."""
    whole = len(one) < SKETCH and len(other) < SKETCH
    both, either = set(one) & set(other), sorted({*one, *other})
    seen = either if whole else either[:SKETCH]
    return sum(it in both for it in seen) / len(seen) if seen else 0.0


def written(sketch: Sketch) -> str:
    return base64.b64encode(struct.pack(f">{len(sketch)}I", *sketch)).decode()


def read(text: str) -> Sketch:
    raw = base64.b64decode(text)
    return struct.unpack(f">{len(raw) // 4}I", raw)


def _differing(one: Tree, other: Tree) -> list[str]:
    return [path for path in sorted({*one, *other}) if one.get(path) != other.get(path)]


def _hash(shingle: Sequence[str]) -> int:
    raw = "\x1f".join(shingle).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=4).digest(), "big")


class _Reader:
    """What is beyond its budget, and what is no text, is taken as the bytes that it is."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self._began = time.thread_time()

    def exact(self, path: str, file: File | None) -> str:
        if file is None:
            return "gone"
        text = self._text(file)
        content = _exact(path, text) if text is not None else hashlib.sha256(file.data).hexdigest()
        return f"{content} {'x' if file.executable else '-'}"

    def shingles(self, path: str, before: File | None, after: File | None) -> tuple[Shingles, Shingles]:
        """Names that were there before stay as they are, so that a new one does not shift all others."""
        old = self._text(before) if before else ""
        kept = _names(path, old) if old else frozenset()
        return (
            _of_file(before, _plain(path, old) if old is not None else None),
            _of_file(after, self._changed(path, after, kept)),
        )

    def _changed(self, path: str, file: File | None, kept: frozenset[str]) -> Shingles | None:
        text = self._text(file) if file else ""
        return _shingles(tokens(path, text, kept)) if text is not None else None

    def _text(self, file: File) -> str | None:
        self._left -= len(file.data)
        if self._left < 0 or time.thread_time() - self._began > _SECONDS or b"\0" in file.data:
            return None
        try:
            return file.data.decode()
        except UnicodeDecodeError:
            return None


@lru_cache(maxsize=64)
def _exact(path: str, text: str) -> str:
    raw = "\x1f".join(tokens(path, text)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


@lru_cache(maxsize=16)
def _names(path: str, text: str) -> frozenset[str]:
    return names_in(path, text)


@lru_cache(maxsize=16)
def _plain(path: str, text: str) -> Shingles:
    return _shingles(tokens(path, text, None))


def _of_file(file: File | None, found: Shingles | None) -> Shingles:
    """With its mode; one that cannot be read is its bytes."""
    if file is None:
        return frozenset()
    mode = frozenset([("executable",)] if file.executable else [])
    return mode | (found if found is not None else frozenset([(hashlib.sha256(file.data).hexdigest(),)]))


def _shingles(words: Sequence[str]) -> Shingles:
    """Every few that stand together, those at both ends, too: so a single token makes as many as any other."""
    edge = ("",) * (_SHINGLE - 1)
    line = (*edge, *words, *edge) if words else ()
    return frozenset(line[at : at + _SHINGLE] for at in range(len(line) - _SHINGLE + 1))
