"""The canonical diff between two trees: git's form, three lines of context, paths in order.

There are no renames in it, only what is gone and what is new. Applied to the old tree it gives the new one. A file
that is no UTF-8 text, or holds a NUL, on either side is only recorded (`index` with both SHA-256 digests, then
`Binary files … differ`); that form is refused when applied.
"""

import hashlib
from collections.abc import Iterator, Sequence

from orchestrator.change.comparison import Run, common_runs
from orchestrator.change.headers import NOWHERE
from orchestrator.change.quoting import quoted
from orchestrator.change.tree import File, Tree

CONTEXT = 3


def difference(old: Tree, new: Tree) -> str:
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    return "".join(line for path in paths for line in _section(path, old.get(path), new.get(path)))


def _section(path: str, old: File | None, new: File | None) -> Iterator[str]:
    a, b = quoted(f"a/{path}"), quoted(f"b/{path}")
    yield f"diff --git {a} {b}\n"
    if old is None and new is not None:
        yield f"new file mode {_mode(new)}\n"
    elif new is None and old is not None:
        yield f"deleted file mode {_mode(old)}\n"
    elif old is not None and new is not None and old.executable != new.executable:
        yield f"old mode {_mode(old)}\nnew mode {_mode(new)}\n"
    before, after = old.data if old else b"", new.data if new else b""
    if before == after:
        return
    if not (_is_text(before) and _is_text(after)):
        yield f"index {_digest(before)}..{_digest(after)}\n"
        yield f"Binary files {a if old else NOWHERE} and {b if new else NOWHERE} differ\n"
        return
    # Like git: a tab ends a name with a space in it, which could else be read as name and date.
    yield f"--- {_ended(a) if old else NOWHERE}\n+++ {_ended(b) if new else NOWHERE}\n"
    yield from _hunks(_split(before), _split(after))


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[str]:
    for group in _groups(common_runs(old, new)):
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


def _is_text(data: bytes) -> bool:
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
