"""What sets a machine up runs before anything is installed on it."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize(("script", "says"), [("engine.py", "with-engine COMMAND"), ("build_images.py", "build only:")])
def test_scripts_need_nothing_but_python(script: str, says: str) -> None:
    """`make` on a bare machine: no package is installed, and the working folder is another."""
    command = [sys.executable, "-I", "-S", str(REPOSITORY / "scripts" / script), "--help"]
    ran = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert says in ran.stdout + ran.stderr


def test_messages_name_what_a_wheel_has() -> None:
    """No text of the product sends its user to a script of a checkout; two files say where they come from."""
    told = {
        str(path.relative_to(REPOSITORY))
        for folder in ("blastdoor", "orchestrator", "sandbox")
        for path in (REPOSITORY / folder).rglob("*")
        if path.suffix in (".py", ".toml", ".sh", ".md", ".txt") and "scripts/" in path.read_text(encoding="utf-8")
    }
    assert told == {"orchestrator/machine/__init__.py", "sandbox/box/requirements.txt"}
