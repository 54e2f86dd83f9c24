"""What all commands have in common."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.running import guards, init
from tests.clicking import commands_in, runner
from tests.orchestrator.views.campaign.conftest import Stage


def every_command() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for command in commands_in("campaign"):
        inner = command.commands if isinstance(command, click.Group) else {"": command}
        found |= {f"{command.name} {name}".strip(): each for name, each in inner.items()}
    return found


def test_all_are_there() -> None:
    """Every command of the campaign's views, each with a line of help."""
    assert {command.name for command in commands_in("campaign")} == {
        "status",
        "chart",
        "tree",
        "show",
        "diff",
        "logs",
        "report",
        "export",
        "apply",
        "ledger",
        "pause",
        "credit",
        "playbook",
        "stalls",
        "inject",
        "requeue",
        "release",
        "cancel",
        "steer",
        "accept",
        "decline",
    }
    assert all(command.help for command in every_command().values())


def test_the_task_is_the_last_word_and_json_is_everywhere() -> None:
    """Its default is the folder one is in."""
    for name, command in every_command().items():
        assert any("--json" in param.opts for param in command.params), name
        arguments = [param for param in command.params if isinstance(param, click.Argument)]
        assert arguments[-1].name in ("task", "words"), name


def test_a_folder_that_is_not_there(stage: Stage, tmp_path: Path) -> None:
    """One line, exit code 2."""
    stage.folder = tmp_path / "nowhere"
    stage.write = lambda: None  # type: ignore[method-assign]
    assert "is not a folder" in stage.refused("status")


def test_chart_and_tree(stage: Stage) -> None:
    """Both draw the run; an unknown metric or run is named."""
    picture = stage.run("chart", "--width", "60", "--height", "15").splitlines()
    assert picture[0].endswith("best 2 at 1.1")
    assert len(picture) <= 15
    assert stage.json("chart")["points"][3] == {
        "order": 4,
        "node": "1.3",
        "status": "failed",
        "score": None,
        "cohort": None,
    }
    assert "1.1.1 ▸ running" in stage.run("tree")
    assert len(stage.json("tree")) == 5
    assert "there is no metric speed; metrics are score" in stage.refused("chart", "--metric", "speed")
    assert "there is no run 7; runs are 1" in stage.refused("tree", "--run", "7")


def test_an_earlier_run_has_its_own_task(stage: Stage) -> None:
    """The metrics of a run are those that it began with."""
    stage.story.task = stage.story.task.model_validate(
        {**stage.story.task.plain(), "metrics": [{"name": "seconds", "goal": "lower"}]}
    )
    stage.story.open(run=2)
    stage.story.baseline(1.0, run=2, seconds=3.0)
    assert "seconds (lower is better)" in stage.run("chart")
    assert "score (higher is better)" in stage.run("chart", "--run", "1")


def test_a_damaged_artifact_is_one_line(stage: Stage) -> None:
    """What cannot be read is said, without a trace."""
    stage.write()
    digest = stage.story.state.nodes["1.1"].diff or ""
    (stage.campaign / "artifacts" / digest[:2] / digest[2:]).write_bytes(b"other")
    assert "is not what was stored" in stage.refused("diff", "1.1")


@pytest.mark.usefixtures("on_disk")
def test_an_encoding_without_unicode(stage: Stage) -> None:
    """Where the terminal has no UTF-8, everything is drawn in ASCII, and nothing breaks."""
    stage.story.attempt("1", 0.1, description="größer … 漢字")
    stage.write()
    words = [sys.executable, "-c", _PROGRAM, str(stage.folder), "tree", "chart", "status", "show 1.2"]
    env = _environment({"PYTHONIOENCODING": "ascii", "COLUMNS": "70", "LINES": "20"})
    told = subprocess.run(words, env=env, capture_output=True, check=True).stdout.decode("ascii")
    assert told.count("score") > 4


@pytest.mark.usefixtures("on_disk")
def test_colours_in_a_terminal_only(stage: Stage) -> None:
    """A terminal gets them, NO_COLOR does not."""
    stage.write()
    assert "\x1b[1;32m" in _in_terminal(stage, "tree", {})
    assert "32m" not in _in_terminal(stage, "tree", {"NO_COLOR": "1"})


def test_a_pipe_has_a_usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless COLUMNS says how wide it is."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert open_screen().width == 120
    monkeypatch.setenv("COLUMNS", "66")
    assert open_screen().width == 66


def test_lines_have_colours_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe gets the words alone, and is written without rich; what forces colours gets them."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = [("kept", "bold green"), (" [red]1[/red]", "")]
    open_screen().lines([line])
    assert capsys.readouterr().out == "kept [red]1[/red]\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    open_screen().lines([line])
    assert capsys.readouterr().out == "\x1b[1;32mkept\x1b[0m [red]1[/red]\n"


_PROGRAM = """
import sys
from orchestrator.views.cli import cli
for words in sys.argv[2:]:
    cli([*words.split(), sys.argv[1]], standalone_mode=False)
"""


def _environment(more: dict[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(Path.cwd()), "LC_ALL": "C.UTF-8", **more}


def _in_terminal(stage: Stage, words: str, more: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", _PROGRAM, str(stage.folder), words]
    child = subprocess.Popen(program, env=_environment(more), stdout=theirs)
    os.close(theirs)
    data = bytearray()
    try:
        while chunk := os.read(ours, 4096):
            data += chunk
    except OSError:
        pass  # how Linux says that the other side is closed
    finally:
        os.close(ours)
    assert child.wait(300) == 0
    return data.decode()


def test_the_best_is_shown_where_no_node_is_named(stage: Stage) -> None:
    """`show TASK` and `diff TASK` mean the best node; a word that is nothing is told so."""
    assert stage.run("show").startswith("1.1  ")
    assert stage.json("diff")["node"] == "1.1"
    result = runner().invoke(every_command()["show"], ["1.x"])
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "Error: 1.x is neither a node, like 1.3.2 or best, nor a folder",
    )


def test_a_task_alone_where_a_node_is_needed(stage: Stage) -> None:
    """The line says that the node is missing and shows the command, the folder quoted."""
    folder = stage.folder.rename(stage.folder.with_name("my task"))
    for name in ("apply", "cancel", "requeue", "release", "accept", "decline", "guards"):
        result = runner().invoke({**every_command(), "guards": guards.command}[name], [str(folder)], prog_name=name)
        assert result.exit_code == 2
        assert f"name a node before it, like blastdoor {name} best '{folder}'" in result.stderr


def test_folders_in_hints_are_quoted(tmp_path: Path) -> None:
    """What a hint says can be pasted into a shell, whatever the folder's name."""
    told = runner().invoke(init.command, [str(tmp_path / "my task")]).output
    assert f"  blastdoor check '{tmp_path}/my task'    is it" in told
    assert f"  blastdoor run '{tmp_path}/my task' " in told
