"""What the tests of a task of Harbor load, beside the files that a candidate left."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.orchestrator.judge.guests import fresh_guests


@pytest.fixture
def guest() -> Iterator[ModuleType]:
    with fresh_guests():
        yield importlib.import_module("blastdoor_harbor")


def test_nothing_that_was_left_configures_pytest(
    guest: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a conftest, nor settings, nor a module of the folder that the tests begin in; nor a variable."""
    monkeypatch.setattr(guest, "SCRATCH", tmp_path)
    app, tests = tmp_path / "app", tmp_path / "tests"
    app.mkdir()
    tests.mkdir()
    (tests / "test_it.py").write_text("import json\n\ndef test_it():\n    assert json.loads('1') == 1\n")
    (app / "pytest.ini").write_text("[pytest]\naddopts = -p evil\npythonpath = .\n")
    for name in ("evil.py", "conftest.py", "json.py", "test_it.py"):
        (app / name).write_text("raise SystemExit('it was run')\n")
    env = guest.environment_of({"PYTHONPATH": str(app), "PYTEST_ADDOPTS": "-p evil"}, shared=False)
    # There is no such folder on this machine.
    env |= {name: env[name].replace("/tests", str(tests)) for name in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", str(tests)], cwd=app, env=env, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    assert b"it was run" not in ended.stdout + ended.stderr
