"""A small task on the disk, to be spoilt in one place."""

from collections.abc import Callable
from pathlib import Path

import pytest

HEAD = """name = "sample"
statement = "Do it."
editable = ["solve.py", "params.json"]

[trial]
command = ["python3", "solve.py"]

[judge]
command = "python3 judge.py"
"""
# The line on which what a test appends begins.
NEXT = HEAD.count("\n") + 1

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes the task's folder; `more` is appended to the file, `replaced` is found in it and replaced."""

    def made(more: str = "", replaced: tuple[str, str] = ("", "")) -> Path:
        folder = tmp_path / "task"
        files = {
            "workspace/solve.py": "print(1)\n",
            "workspace/params.json": "{}\n",
            "workspace/lib/tool.py": "",
            "judge/judge.py": "print(2)\n",
            "judge/gold/answers.json": "[1]\n",
            "data/points.csv": "1,2\n",
        }
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        old, new = replaced
        assert old in HEAD
        (folder / "blastdoor.toml").write_text((HEAD.replace(old, new, 1) if old else HEAD) + more)
        return folder

    return made
