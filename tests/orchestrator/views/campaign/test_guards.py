"""`guards`: one that a person adds is as one of the task file, and is seen and checked before anybody took it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain.records import Spent
from orchestrator.ledger import Ledger
from orchestrator.loop.guards import Checked
from orchestrator.views.running import guards
from orchestrator.wiring.reading import read_campaign
from tests.orchestrator.views.campaign.conftest import Stage

LINE = "python3 -m compileall -q . && test -s solve.py"


@pytest.fixture
def asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of guards that were run, each of which passes."""
    ran: list[str] = []

    @asynccontextmanager
    async def place(_: object, task: Any, name: str, __: object) -> AsyncIterator[Any]:
        with read_campaign(task) as reading:
            yield SimpleNamespace(reading=reading, node=reading.state.nodes[name], tree=None, parts=None)

    async def passes(_: object, guard: Any, *__: object) -> Checked:
        ran.append(guard.command[-1])
        return Checked(True, "", Spent())

    monkeypatch.setattr(guards, "open_place", place)
    monkeypatch.setattr(guards, "run_guard", passes)
    return ran


def inbox(stage: Stage) -> list[dict[str, Any]]:
    stage.write()
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger:
        return [json.loads(request.body)["guard"] for request in ledger.requests()]


def test_a_line_is_for_the_shell(stage: Stage) -> None:
    """As in the task file: a line goes to the shell, and the limits are those of the place where it runs."""
    assert "from the next blastdoor resume on" in stage.run("guards", "--add", "compiles", "--command", LINE, "1")
    stage.run("guards", "--add", "sound", "--command", "true", "--beside-judge", "1")
    mine, beside = inbox(stage)
    assert mine["command"] == ["sh", "-c", LINE]
    assert mine["limits"] == stage.story.task.limits.model_dump(mode="json")
    assert (beside["place"], beside["limits"]) == ("judge", stage.story.task.judge.limits.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--add", "a b\x1b[2J", "--command", "true"), "is not a name; use up to 64 letters"),
        (("--add", "", "--command", "true"), "is not a name; use up to 64 letters"),
        (("--add", "tests", "--command", "true"), "1 has a guard tests already; choose another name"),
        (("--add", "empty", "--command", "  "), "--command: is empty"),
        (("--add", "none"), "--add needs --command"),
        (("--command", "true"), "belong to --add NAME"),
    ],
)
def test_refused(stage: Stage, words: tuple[str, ...], line: str) -> None:
    """A bad name, one that is there already, and half a request are told at once; nothing is left in the inbox."""
    told = stage.refused("guards", *words, "1")
    assert line in told
    assert "\x1b" not in told
    assert inbox(stage) == []


def test_a_name_only_once(stage: Stage) -> None:
    """One that waits for a resume counts, and so does one further down, which would hide it there."""
    stage.story.add_guard("1.1", "deep")
    assert "1.1 has a guard deep already" in stage.refused("guards", "--add", "deep", "--command", "true", "1")
    stage.run("guards", "--add", "late", "--command", "true", "1.2")
    assert "waits for the next" in stage.refused("guards", "--add", "late", "--command", "false", "1.2")


def test_what_waits_is_shown_and_checked(stage: Stage, asked: list[str]) -> None:
    """A guard that was just added is listed, said to wait, and checked, whether or not anybody works."""
    stage.run("guards", "--add", "late", "--command", LINE, "1.1")
    assert f"late (chamber; from the next blastdoor resume on): {LINE}" in stage.run("guards", "1.1")
    assert [it["waits"] for it in stage.json("guards", "1.1")] == [False, True]
    assert stage.run("guards", "--check", "1.1") == "tests: passes\nlate: passes\n"
    assert asked[-1] == LINE
    assert "late" not in stage.run("guards", "--check", "1.2")


def test_nothing_to_check_is_said(tmp_path: Path, asked: list[str]) -> None:
    """A node without guards gets a line, not silence."""
    bare = Stage(tmp_path / "bare")
    bare.story.open().baseline(1.0)
    assert "1 has no guards, so there is nothing to check" in bare.run("guards", "--check", "1")
    assert asked == []
