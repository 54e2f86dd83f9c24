"""A task folder, written whole or not at all."""

from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

from orchestrator.change import shown
from orchestrator.domain.tier import Tier
from orchestrator.importing.base import Imported
from orchestrator.importing.source import refuse_odd_name
from orchestrator.task import Task, TaskError, load_task
from orchestrator.task.errors import refuse_unnameable
from sandbox.scratch import scratch


def write_task(imported: Imported, folder: Path) -> Tier:
    """A new or empty folder becomes the task; the tier of its verdicts. Raises TaskError, and then nothing is left
    behind.
    """
    refuse_unnameable(folder)
    for name in imported.files:
        refuse_odd_name(folder, name)
        if above := next((it for it in map(str, PurePosixPath(name).parents) if it in imported.files), None):
            raise TaskError(f"{folder}: {shown(above)} would be both a file and a folder; name one of them otherwise")
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise TaskError(f"{folder}: exists and is not an empty folder; name a new one")
    try:
        with ExitStack() as made:
            for parent in reversed([it for it in folder.parents if not it.exists()]):
                parent.mkdir(exist_ok=True)
                made.callback(_remove_empty, parent)
            task = _write_beside(imported, folder)
            made.pop_all()
    except OSError as error:
        raise TaskError(
            f"{error.filename or folder}: cannot be written ({error.strerror}); name another folder"
        ) from None
    return task.judge.mode


def _write_beside(imported: Imported, folder: Path) -> Task:
    """In a folder of its own until it is whole; a new one inside of it, since only this process may enter the outer."""
    with scratch("importing", folder.parent) as outer:
        beside = outer / "task"
        beside.mkdir()
        for name, data in imported.files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        task = load_task(beside)
        beside.rename(folder)  # over an empty folder, too
    return task


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # somebody else put something there meanwhile
        folder.rmdir()
