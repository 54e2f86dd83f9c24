"""`check` as a person meets it: rows under their sections, logs that cannot act, and a documented exit code."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from click.testing import Result

from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.views.exits import Exit
from orchestrator.views.judging import check
from orchestrator.wiring.site import Site
from sandbox import Unavailable
from tests.clicking import runner
from tests.orchestrator.views.judging.stage import SOLVE, Stage, write_task

Check = Callable[..., Result]


@pytest.fixture
def blastdoor_check(monkeypatch: pytest.MonkeyPatch) -> Check:
    def run(stage: Stage, *words: str) -> Result:
        def site(*_: object) -> AbstractAsyncContextManager[Site]:
            return stage.site()

        monkeypatch.setattr(check, "open_site", site)
        return runner().invoke(check.command, list(words), obj=Settings(), standalone_mode=False)

    return run


def test_a_sound_task(tmp_path: Path, blastdoor_check: Check) -> None:
    """Sections in their order, a sign before every row, and a last line that says what it comes to."""
    result = blastdoor_check(Stage(), "--runs", "2", "--no-cheats", str(write_task(tmp_path)))
    assert result.return_value == Exit.OK, result.output
    lines = result.output.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads[:-1] == ["wiring", "noise", "cost", "profile", "cheats", "judge's code", "gold"]
    assert heads[-1] == "ready to be searched, with 2 warnings"
    assert all(line.lstrip()[0] in "✓!·→" for line in lines if line.startswith(" "))


def test_a_hostile_log_can_not_act(tmp_path: Path, blastdoor_check: Check) -> None:
    """The tail of the log is shown, escaped; what came before is counted."""
    code = "for number in range(50):\n    print(number)\nprint('\\x1b[2J\\x07 over')\nraise SystemExit(2)\n"
    result = blastdoor_check(Stage(), str(write_task(tmp_path, files={"workspace/solve.py": code})))
    assert result.return_value == Exit.NOT_GOOD
    assert "\\x1b[2J\\x07 over" in result.output
    assert "\x1b" not in result.output
    assert "31 lines before" in result.output
    assert "│ 49" in result.output
    assert "│ 30\n" not in result.output
    assert result.output.endswith("not ready: 1 failure\n")


def test_json(tmp_path: Path, blastdoor_check: Check) -> None:
    """One object with every row, and nothing else on stdout."""
    code = SOLVE + "print('\\x1b[2J')\nraise SystemExit(2)\n"
    folder = write_task(tmp_path, files={"workspace/solve.py": code})
    result = blastdoor_check(Stage(), "--json", str(folder))
    found = json.loads(result.stdout)
    assert (found["task"], found["good"], result.return_value) == ("guess", False, Exit.NOT_GOOD)
    (failed,) = [row for row in found["rows"] if row["sign"] == "fail"]
    assert failed["log"] == ["\\x1b[2J"]


def test_a_task_that_can_not_be_read(tmp_path: Path, blastdoor_check: Check) -> None:
    """Bad input: the command line turns it into one line and exit code 2."""
    result = blastdoor_check(Stage(), str(tmp_path))
    assert isinstance(result.exception, TaskError)
    assert result.stdout == ""


def test_no_engine(tmp_path: Path, blastdoor_check: Check) -> None:
    """The engine's fault: the command line turns it into one line and exit code 3."""
    stage = Stage()
    stage.world.answers = False
    result = blastdoor_check(stage, str(write_task(tmp_path)))
    assert isinstance(result.exception, Unavailable)
