"""The canonical diff between two trees: git's form, three lines of context, paths in order.

There are no renames in it, only what is gone and what is new. Applied to the old tree it gives the new one. A file
that is no UTF-8 text, or holds a NUL, on either side is only recorded (`index` with both SHA-256 digests, then
`Binary files … differ`); that form is refused when applied.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.change.comparison import Run, common_runs
from orchestrator.change.effort import Effort
from orchestrator.change.headers import NOWHERE
from orchestrator.change.quoting import quoted
from orchestrator.change.tree import File, Tree

CONTEXT = 3
# Bytes that are looked at line by line to tell a size; a candidate differs from the root by all the changes above it.
_WEIGHED = 16 << 20


@dataclass(frozen=True)
class Size:
    """Lines taken out and put in, and the bytes of them: a line may be as long as a file."""

    lines: int
    bytes: int


def difference(old: Tree, new: Tree) -> str:
    return compare(old, new).text()


def compare(old: Tree, new: Tree, effort: Effort | None = None) -> "Comparison":
    """What is compared once serves for the diff and for the size."""
    return Comparison(old, new, effort or Effort())


class Comparison:
    """Two trees. Raises Refusal where the processor time for it is used up."""

    def __init__(self, old: Tree, new: Tree, effort: Effort) -> None:
        self._old, self._new, self._effort = old, new, effort
        self._paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
        self._known: dict[str, list[Run]] = {}
        self._weighed = 0

    def text(self) -> str:
        return "".join(line for path in self._paths for line in self._section(path))

    def size(self) -> Size:
        """Of all files that differ; a file that differs otherwise counts as one line."""
        sizes = [self._size_of(path) for path in self._paths]
        return Size(sum(max(1, it.lines) for it in sizes), sum(it.bytes for it in sizes))

    def _size_of(self, path: str) -> Size:
        before, after = self._data(path)
        if before == after:
            return Size(0, 0)
        self._weighed += len(before) + len(after)
        if self._weighed > _WEIGHED or not (is_text(before) and is_text(after)):
            return Size(before.count(b"\n") + after.count(b"\n"), len(before) + len(after))
        old, new = _split(before), _split(after)
        runs = self._runs(path, old, new)
        shared = sum(run.length for run in runs)
        kept = sum(len(line) for run in runs for line in old[run.old : run.old + run.length])
        return Size(len(old) + len(new) - 2 * shared, len(before) + len(after) - 2 * kept)

    def _data(self, path: str) -> tuple[bytes, bytes]:
        old, new = self._old.get(path), self._new.get(path)
        return old.data if old else b"", new.data if new else b""

    def _runs(self, path: str, old: Sequence[bytes], new: Sequence[bytes]) -> list[Run]:
        if path not in self._known:
            self._effort.check_time()
            self._known[path] = common_runs(old, new, self._effort)
        return self._known[path]

    def _section(self, path: str) -> Iterator[str]:
        old, new = self._old.get(path), self._new.get(path)
        a, b = quoted(f"a/{path}"), quoted(f"b/{path}")
        yield f"diff --git {a} {b}\n"
        if old is None and new is not None:
            yield f"new file mode {_mode(new)}\n"
        elif new is None and old is not None:
            yield f"deleted file mode {_mode(old)}\n"
        elif old is not None and new is not None and old.executable != new.executable:
            yield f"old mode {_mode(old)}\nnew mode {_mode(new)}\n"
        before, after = self._data(path)
        if before == after:
            return
        if not (is_text(before) and is_text(after)):
            yield f"index {_digest(before)}..{_digest(after)}\n"
            yield f"Binary files {a if old else NOWHERE} and {b if new else NOWHERE} differ\n"
            return
        # Like git: a tab ends a name with a space in it, which could else be read as name and date.
        yield f"--- {_ended(a) if old else NOWHERE}\n+++ {_ended(b) if new else NOWHERE}\n"
        lines = _split(before), _split(after)
        yield from _hunks(*lines, self._runs(path, *lines))


def _hunks(old: Sequence[bytes], new: Sequence[bytes], runs: Sequence[Run]) -> Iterator[str]:
    for group in _groups(runs):
        first, last = group[0], group[-1]
        old_count, new_count = last.old + last.length - first.old, last.new + last.length - first.new
        yield f"@@ -{_range(first.old, old_count)} +{_range(first.new, new_count)} @@\n"
        for at, run in enumerate(group):
            if at:
                before = group[at - 1]
                yield from (_line("-", line) for line in old[before.old + before.length : run.old])
                yield from (_line("+", line) for line in new[before.new + before.length : run.new])
            yield from (_line(" ", line) for line in old[run.old : run.old + run.length])


def _groups(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Runs with the changes between them, cut where there is more than context. Every group starts and ends in one."""
    group = [_last_lines(runs[0])]
    for run in runs[1:]:
        if run.length > 2 * CONTEXT:
            yield [*group, Run(run.old, run.new, CONTEXT)]
            group = [_last_lines(run)]
        else:
            group.append(run)
    if len(group) > 1:
        last = group[-1]
        yield [*group[:-1], Run(last.old, last.new, min(last.length, CONTEXT))]


def _last_lines(run: Run) -> Run:
    skipped = max(0, run.length - CONTEXT)
    return Run(run.old + skipped, run.new + skipped, run.length - skipped)


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _line(sign: str, line: bytes) -> str:
    text = sign + line.decode()
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop().removesuffix(b"\n")
    return [*lines, last] if last else lines


def is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _mode(file: File) -> str:
    return "100755" if file.executable else "100644"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _ended(name: str) -> str:
    return f"{name}\t" if " " in name else name
