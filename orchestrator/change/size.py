"""How large a change is, so that of two that are as good the smaller one can win."""

from orchestrator.change.comparison import common_runs
from orchestrator.change.tree import File, Tree


def lines_changed(old: Tree, new: Tree) -> int:
    """Lines taken out and lines put in, of all files that differ; a file that differs otherwise counts as one."""
    paths = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    return sum(max(1, _changed(_lines(old.get(path)), _lines(new.get(path)))) for path in paths)


def _changed(old: list[bytes], new: list[bytes]) -> int:
    shared = sum(run.length for run in common_runs(old, new))
    return len(old) + len(new) - 2 * shared


def _lines(file: File | None) -> list[bytes]:
    return file.data.splitlines(keepends=True) if file else []
