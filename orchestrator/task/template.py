"""What `blastdoor init` writes: a small task that is real, and a task file that explains itself."""

import re
from importlib import resources
from pathlib import Path

from orchestrator.task.errors import TaskError, refuse_unnameable

# The programs are kept as text: they are the user's to change, and no part of our own code.
_FILES = {
    "blastdoor.toml": "blastdoor.toml",
    "workspace/solve.py": "solve.py.txt",
    "workspace/params.json": "params.json",
    "workspace/points.json": "points.json",
    "judge/judge.py": "judge.py.txt",
    "judge/gold/answers.json": "answers.json",
}
_NAME = 'name = "my-task"'


def write_template(folder: Path) -> None:
    """A new task in a new or empty folder, named after it. Raises TaskError."""
    refuse_unnameable(folder)
    starter = resources.files("orchestrator.task") / "starter"
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise TaskError(f"{folder}: exists and is not an empty folder; name a new one")
        for target, source in _FILES.items():
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (starter / source).read_text(encoding="utf-8")
            path.write_text(text.replace(_NAME, f'name = "{_name_of(folder)}"'), encoding="utf-8")
    except OSError as error:
        raise TaskError(
            f"{error.filename or folder}: cannot be written ({error.strerror}); name another folder"
        ) from None


def _name_of(folder: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    return words[:64] or "my-task"
