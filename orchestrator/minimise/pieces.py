"""The pieces by which two trees differ. Any selection of them is a tree between the two."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.change import Effort, File, Policy, Refusal, Tree
from orchestrator.change.canonical import is_text
from orchestrator.minimise.edits import Edit, edits_between
from orchestrator.minimise.search import Part
from orchestrator.python_source import parse_python
from orchestrator.task import Parameters, in_order, is_there

# More pieces than this are not cut any finer: each would have to be left out alone at the end.
MOST = 256
_SHOWN = 120
_ABSENT = object()


@dataclass(frozen=True)
class Whole:
    """Files that come or go as one: new, gone or renamed ones, and what is no text."""

    paths: tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """One key of the file with the parameters."""

    path: str
    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Splice:
    path: str
    edit: Edit


Piece = Whole | Value | Splice
_Cut = Callable[[Splice], object]
# From coarse to fine; hunks, blocks, statements and rows are numbered within their file.
_CUTS: tuple[_Cut, ...] = (
    lambda it: it.edit.hunk,
    lambda it: (it.edit.hunk, it.edit.block),
    lambda it: (it.edit.hunk, it.edit.statement),
    lambda it: it.edit.row,
    lambda it: it.edit,
)


@dataclass(frozen=True)
class Told:
    """A part in words: where it stands, and what became of what there."""

    where: str
    before: str
    after: str


class Pieces:
    """Of `old` and `new`. `coarse`: there are more than can be left out one by one, so they were cut less finely."""

    def __init__(
        self,
        old: Tree,
        new: Tree,
        parameters: Parameters | None = None,
        most: int = MOST,
        policy: Policy | None = None,
    ) -> None:
        self._old, self._new, self._parameters, self._policy = old, new, parameters, policy
        self.most = most
        self.all = tuple(_pieces(old, new, parameters))
        cut = _cut(self.all)
        self.rows = _parts(self.all, lambda it: it.edit.row)
        fitting = [level for level in cut if len(level) <= most]
        self.coarse = len(fitting) < len(cut)
        code = fitting or cut[:1]
        values = [frozenset({at}) for at, piece in enumerate(self.all) if isinstance(piece, Value)]
        self.levels: list[list[Part]] = [level for level in (*code, values) if level]

    @property
    def whole(self) -> Part:
        return frozenset(range(len(self.all)))

    def tree(self, kept: Part) -> Tree | None:
        """None where it cannot be a candidate: Python that no longer parses, or no point of the space."""
        files = dict(self._old)
        by_path: dict[str, list[Value | Splice]] = {}
        for at, piece in enumerate(self.all):
            if isinstance(piece, Whole):
                for path in piece.paths if at in kept else ():
                    _put(files, path, self._new.get(path))
            elif at in kept:
                by_path.setdefault(piece.path, []).append(piece)
        for path, pieces in by_path.items():
            file = self._file(path, pieces)
            if file is None:
                return None
            files[path] = file
        return Tree(files) if self._keeps_to_regions(files) else None

    def _keeps_to_regions(self, files: Mapping[str, File]) -> bool:
        """Lines that two versions share may be lines of other places, so a selection can reach out of a region."""
        policy = self._policy or Policy(editable=())
        try:
            for path in policy.regions:
                policy.check_regions(path, self._old.get(path), files.get(path))
        except Refusal:
            return False
        return True

    def told(self, part: Part) -> Told:
        """The first and the last piece of a part say where it is."""
        pieces = [self.all[at] for at in sorted(part)]
        first = pieces[0]
        if isinstance(first, Whole):
            kind = _what_of(self._old, self._new, first)
            return Told(", ".join(first.paths)[:_SHOWN], *kind)
        if isinstance(first, Value):
            return Told(f"{first.path}: {first.name}", _shown_value(first.before), _shown_value(first.after))
        data = self._old[first.path].data
        splices = [it.edit for it in pieces if isinstance(it, Splice)]
        before = [data[it.start : it.end] for it in splices]
        return Told(f"{first.path}:{first.edit.line}", _shown(before), _shown([it.put for it in splices]))

    def _file(self, path: str, pieces: Iterable[Value | Splice]) -> File | None:
        old, new = self._old[path], self._new[path]
        chosen = list(pieces)
        if len(chosen) == sum(not isinstance(it, Whole) and it.path == path for it in self.all):
            return new
        values = [it for it in chosen if isinstance(it, Value)]
        data = self._with_values(old, values) if values else _spliced(old.data, chosen)
        if data is None or (path.endswith(".py") and parse_python(new.data) and not parse_python(data)):
            return None
        return File(data, new.executable)

    def _with_values(self, old: File, values: Iterable[Value]) -> bytes | None:
        """The keys that are kept, on those of the old file; without what is not there at this point."""
        found = dict(_object_in(old) or {})
        for value in values:
            _put(found, value.name, None if value.after is _ABSENT else value.after, absent=value.after is _ABSENT)
        space = self._parameters.space if self._parameters else {}
        for name in in_order(space):
            if not is_there(space[name], found):
                found.pop(name, None)
            elif name not in found:
                return None
        return (json.dumps(found, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def _pieces(old: Tree, new: Tree, parameters: Parameters | None) -> Iterator[Piece]:
    effort = Effort()
    differ = [path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    renamed = _renamed(old, new, differ)
    for path in differ:
        if path in renamed.values():
            continue
        one, two = old.get(path), new.get(path)
        if path in renamed:
            yield Whole((path, renamed[path]))
        elif one is None or two is None or one.executable != two.executable:
            yield Whole((path,))
        elif parameters and path == parameters.file and (values := _values(path, one, two)):
            yield from values
        elif is_text(one.data) and is_text(two.data):
            found = edits_between(one.data, two.data, effort, python=path.endswith(".py"))
            yield from (Splice(path, edit) for edit in found)
        else:
            yield Whole((path,))


def _renamed(old: Tree, new: Tree, differ: Iterable[str]) -> dict[str, str]:
    """A file that is gone and one that is new with the same content are one move."""
    gone = {old[path]: path for path in differ if path not in new and old[path].data}
    moves: dict[str, str] = {}
    for path in differ:
        if path not in old and (source := gone.pop(new[path], None)):
            moves[source] = path
    return moves


def _values(path: str, old: File, new: File) -> list[Value]:
    """Nothing where one of them is no JSON object."""
    before, after = _object_in(old), _object_in(new)
    if before is None or after is None:
        return []
    names = [name for name in sorted(before.keys() | after.keys()) if not _same(before, after, name)]
    return [Value(path, name, before.get(name, _ABSENT), after.get(name, _ABSENT)) for name in names]


def _same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """1, 1.0 and true are three values."""
    return name in before and name in after and json.dumps(before[name]) == json.dumps(after[name])


def _object_in(file: File) -> dict[str, Any] | None:
    try:
        found = json.loads(file.data)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _cut(pieces: tuple[Piece, ...]) -> list[list[Part]]:
    """Ways to cut the code into parts, from coarse to fine; one that cuts like the one before it is left out."""
    levels: list[list[Part]] = []
    for cut in _CUTS:
        level = _parts(pieces, cut)
        if level and level not in levels:
            levels.append(level)
    return levels


def _parts(pieces: tuple[Piece, ...], cut: _Cut) -> list[Part]:
    parts: dict[object, set[int]] = {}
    for at, piece in enumerate(pieces):
        if isinstance(piece, Splice):
            parts.setdefault((piece.path, cut(piece)), set()).add(at)
        elif isinstance(piece, Whole):
            parts[at] = {at}
    return [frozenset(part) for part in parts.values()]


def _spliced(data: bytes, splices: Iterable[Value | Splice]) -> bytes:
    edits = [it.edit for it in splices if isinstance(it, Splice)]
    out, at = [], 0
    for edit in edits:
        out += [data[at : edit.start], edit.put]
        at = edit.end
    return b"".join([*out, data[at:]])


def _put(into: dict[str, Any], name: str, value: Any, *, absent: bool | None = None) -> None:
    if value is None if absent is None else absent:
        into.pop(name, None)
    else:
        into[name] = value


def _what_of(old: Tree, new: Tree, whole: Whole) -> tuple[str, str]:
    path, *moved_to = whole.paths
    if moved_to:
        return path, moved_to[0]
    return "a file" if path in old else "", "another file" if path in old and path in new else "a file" * (path in new)


def _shown(texts: Iterable[bytes]) -> str:
    return " … ".join(text.decode("utf-8", "replace").strip() for text in texts if text.strip())[:_SHOWN]


def _shown_value(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value)[:_SHOWN]
