"""A task folder, written whole or not at all."""

import os
import shutil
from pathlib import Path

from orchestrator.domain.tier import Tier
from orchestrator.importing.base import Imported
from orchestrator.task import TaskError, load_task
from orchestrator.task.errors import refuse_unnameable


def write_task(imported: Imported, folder: Path) -> Tier:
    """A new or empty folder becomes the task; the tier of its verdicts. Raises TaskError, and then nothing is left
    behind.
    """
    refuse_unnameable(folder)
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise TaskError(f"{folder}: exists and is not an empty folder; name a new one")
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        beside.mkdir(parents=True)
        for name, data in imported.files.items():
            path = beside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        task = load_task(beside)
        beside.rename(folder)  # over an empty folder, too
    except OSError as error:
        raise TaskError(
            f"{error.filename or folder}: cannot be written ({error.strerror}); name another folder"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return task.judge.mode
