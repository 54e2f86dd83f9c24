"""What was left out of a winner is shown wherever the winner is, and the smaller change can be taken over."""

import json
from pathlib import Path

import click
import pytest

from orchestrator.loop.campaign import Finished
from orchestrator.task import load_task
from orchestrator.task.audits import keep_audit
from orchestrator.task.snapshot import snapshot
from orchestrator.views.cli import cli
from orchestrator.wiring.beginning import How
from tests.clicking import runner
from tests.orchestrator.loop.scripted import scripted, write_task, written
from tests.orchestrator.views.campaign.test_audited import HOLE, audit_of

WINNER = written({"value": 7, "ballast": 2})


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, WINNER, attempts=1) as session:
        await session.run()
    async with scripted(folder, None, WINNER, how=How.RESUME) as session:
        session.campaign.minimise("1.1")
        await session.run()
    return folder


def asked(folder: Path, *words: str, code: int = 0) -> str:
    result = runner().invoke(cli, [*words, str(folder)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


async def test_a_smaller_winner_is_told_and_taken_over(folder: Path, tmp_path: Path) -> None:
    """Wherever a winner is told of, what is left of it is, too; where there is room, with what each part is worth, and
    for programs as a table. A person who takes the winner over is told of the smaller change, and gets it with
    --minimal; so does who exports it. What has no smaller one is one line.
    """
    for words in (("show", "1.1"), ("show", "1.1.1"), ("status",), ("report",), ("minimise",)):
        text = asked(folder, *words)
        assert "1.1.1 has 1 of the 2 parts of 1.1" in text, words
        assert words == ("status",) or ("ballast" in text and "-7" in text), words
    found = json.loads(asked(folder, "show", "1.1", "--json"))["minimal"]
    assert (found["node"], found["offered"], found["complete"]) == ("1.1.1", True, True)
    assert [(part["where"], part["worth"]) for part in found["kept"]] == [("params.json: value", {"score": 0.0})]
    assert json.loads(asked(folder, "report", "--json"))["minimal"] == found
    for refused, told in (
        (("minimise", "1"), "1 is the baseline: it has no change to take apart"),
        (("minimise", "1.9"), "there is no node 1.9"),
        (("apply", "1", "--minimal"), "1 is the baseline: it has no change to make smaller"),
    ):
        assert told in asked(folder, *refused, code=2)
    assert "1.1.1 keeps the score of 1.1 with a smaller change" in asked(folder, "apply", "best", "--dry-run")
    assert "1.1.1 applied" in asked(folder, "apply", "best", "--minimal")
    assert json.loads((folder / "workspace/params.json").read_text()) == {"value": 7}
    asked(folder, "export", "--artifact", str(tmp_path / "out"), "best", "--minimal")
    assert json.loads((tmp_path / "out/artifact.json").read_text())["node"] == "1.1.1"


def found_open(folder: Path) -> None:
    """As if `audit` had found a hole of this very judge."""
    told = audit_of(snapshot(load_task(folder), folder).digests, good=False, held=3, tried=4, holes=(HOLE,))
    keep_audit(folder, told, told.model_dump_json())


async def test_a_judge_that_can_be_cheated(folder: Path) -> None:
    """What a winner stands on may be a hole: an audit that found one is told with its parts, also where the smaller
    change was taken over since, which changes nothing of the judge.
    """
    assert "Audit" not in asked(folder, "minimise")
    found_open(folder)
    asked(folder, "apply", "best", "--minimal")
    text = asked(folder, "minimise")
    assert "1.1.1 has 1 of the 2 parts of 1.1" in text
    assert "the judge held against 3 of 4" in text
    assert "refuse it" in text
    for words in (("minimise", "--json"), ("report", "--json")):
        told = json.loads(asked(folder, *words))
        assert (told["audit"]["holes"], told["audit"]["changed_since"]) == ([HOLE.way], [])
        assert told["minimal"]["node"] == "1.1.1"


@pytest.fixture
async def searched(tmp_path: Path) -> Path:
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, WINNER, attempts=1) as session:
        await session.run()
    return folder


def test_a_hole_is_told_before_trials_are_paid_for(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, which comes before the engine is asked for anything."""

    async def work(*_: object, **__: object) -> Finished:
        click.echo("it begins", err=True)
        return Finished("enough", None)

    monkeypatch.setattr("orchestrator.views.running.minimise.work", work)
    found_open(searched)
    said = runner().invoke(cli, ["minimise", str(searched)]).stderr.splitlines()
    hole = "the judge can be cheated: held against 3 of 4"
    assert said[:2] == [f"warning: {hole}: what keeps the score may be a hole alone; read it", "it begins"]


async def test_nothing_smaller(searched: Path) -> None:
    """Before minimising the line says to try it; after one that left nothing out, it does not send in circles."""
    assert "blastdoor minimise 1.1" in asked(searched, "apply", "best", "--minimal", code=2)
    async with scripted(searched, None, WINNER, {"value": 8}, how=How.RESUME, attempts=2) as session:
        await session.run()
    async with scripted(searched, None, WINNER, how=How.RESUME) as session:
        session.campaign.minimise("1.2")
        await session.run()
        assert session.bench.state.nodes["1.2.1"].minimal
    told = asked(searched, "apply", "1.2", "--minimal", code=2)
    assert "minimising offers nothing smaller than 1.2; blastdoor show 1.2" in told
