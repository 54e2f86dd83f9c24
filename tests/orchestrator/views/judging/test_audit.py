"""`audit` as a person meets it: rows, a last line, files for `gate`, JSON, exit codes; and a model that is asked."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from orchestrator.examine.audit import AuditReport
from orchestrator.examine.findings import Findings
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.views.exits import Exit
from orchestrator.views.judging import audit
from orchestrator.views.judging.audit_record import read_audit, record
from orchestrator.views.judging.model_cheats import ask_for_cheats
from orchestrator.wiring.site import Site
from tests.clicking import runner
from tests.leaky.auditing import PAIRS
from tests.messages import MessagesServer, Reply, Text
from tests.orchestrator.loop.test_models import CHEAP, settings_for
from tests.orchestrator.views.judging.stage import BETTER, JUDGE, METRIC, Stage, whole, write_task

Audit = Callable[..., Result]
NO_RANGE = next(write for name, _, write in PAIRS if name == "no-range")


@pytest.fixture
def blastdoor_audit(monkeypatch: pytest.MonkeyPatch) -> Audit:
    def run(*words: str, settings: Settings | None = None) -> Result:
        def site(*_: object) -> AbstractAsyncContextManager[Site]:
            return Stage().site()

        monkeypatch.setattr(audit, "open_site", site)
        return runner().invoke(audit.command, list(words), obj=settings or Settings(), standalone_mode=False)

    return run


def test_a_hole(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """The hole, what to change, how to see it again; a report and a change in the folder that was named."""
    task, out = NO_RANGE(tmp_path / "task", fixed=False), tmp_path / "found"
    result = blastdoor_audit(str(task), "--only", "large", "--runs", "2", "--out", str(out))
    assert result.return_value == Exit.NOT_GOOD, result.output
    assert "✗ “large” beats the baseline (score = 1e+10)" in result.output
    assert "→ check the range of every number" in result.output
    assert f"again: blastdoor gate {task} --diff {out}/large.change --must-improve" in result.output
    assert result.output.endswith("the judge can be cheated: held against 0 of 1\n")
    told = json.loads((out / "audit.json").read_text())
    assert (told["held"], told["tried"], told["good"]) == (0, 1, False)
    assert told["holes"][0]["change"] == (out / "large.change").read_text()
    assert "judge" in told["digests"]


def test_json_of_a_judge_that_holds(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """One object, and nothing else on stdout."""
    task = NO_RANGE(tmp_path / "task", fixed=True)
    result = blastdoor_audit(str(task), "--only", "large", "--only", "zeros", "--json")
    told = json.loads(result.stdout)
    assert (result.return_value, told["good"], told["held"], told["tried"]) == (Exit.OK, True, 2, 2)
    assert told["baseline"] == {"score": pytest.approx(3.5)}
    assert told["holes"] == []


def test_nothing_was_tried(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """A row that is for judges that call says nothing of one that does not: that is no judge that held."""
    result = blastdoor_audit(str(NO_RANGE(tmp_path / "task", fixed=True)), "--only", "learnt by heart", "--runs", "2")
    assert result.return_value == Exit.NOT_GOOD, result.output
    assert result.output.endswith("not tried: no adversary that was asked for has anything to do here\n")


def test_no_money_is_spent_untold(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """It has no account for its chambers, so it rents none."""
    task = NO_RANGE(tmp_path / "task", fixed=True)
    result = blastdoor_audit(str(task), settings=Settings(backend="modal"))
    assert isinstance(result.exception, TaskError)
    assert "audit has no budget, and chambers of modal cost money" in str(result.exception)


def test_bad_input(tmp_path: Path, blastdoor_audit: Audit) -> None:
    """An adversary that nobody knows, and a task that cannot be read: one line each, before anything runs."""
    for words in (["--only", "larg"], ["--accept", "nobody"]):
        wrong = blastdoor_audit(str(tmp_path), *words)
        assert isinstance(wrong.exception, click.UsageError)
        assert "--list tells their names" in str(wrong.exception)
    assert isinstance(blastdoor_audit(str(tmp_path)).exception, TaskError)
    listed = blastdoor_audit("--list")
    assert "learnt by heart (relay): draw questions from candidate.rng()" in listed.output


def test_the_evidence_of_a_gate(tmp_path: Path) -> None:
    """What was found about this very judge can be signed with the rest; a report about another, or none, is refused."""
    folder = NO_RANGE(tmp_path / "task", fixed=True)
    task = load_task(folder)
    taken = snapshot(task, folder)
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(record(task, taken, AuditReport(held=40, tried=41), Findings())))
    assert {**read_audit(path, taken), "sha256": ""} == {
        "good": True,
        "held": 40,
        "tried": 41,
        "holes": [],
        "sha256": "",
    }
    NO_RANGE(folder, fixed=False)
    with pytest.raises(click.UsageError, match="is about another task, judge or gold"):
        read_audit(path, snapshot(task, folder))
    path.write_text("[]")
    with pytest.raises(click.UsageError, match="is no report of an audit"):
        read_audit(path, taken)


LEAKY = JUDGE.replace("publish(-sum", "publish(9.0 if len(values) > 3 else -sum").replace(
    " or len(values) != len(right)", ""
)
CHEAT = "=== change: more numbers than were asked for\n" + whole(BETTER.replace("3.4]", "3.4, 0.0]"))


def written(folder: Path, *more: str) -> Path:
    metric = METRIC.replace("ceiling = -0.01\n", "")
    return write_task(folder, metric, CHEAP + "context = 6000\n", *more, files={"judge/judge.py": LEAKY})


async def asked(folder: Path, settings: Settings, **flags: Any) -> list[Any]:
    async with Stage().site() as site:
        return await ask_for_cheats(folder, site, settings, Flags(**flags), lambda _: None)


async def test_a_model_is_asked(tmp_path: Path, messages_server: MessagesServer) -> None:
    """It is told to cheat, within the attempts given; what a search would have kept is a hole, as a change."""
    messages_server.play(Reply((Text(CHEAT),)))
    folder = written(tmp_path)
    before = sorted(folder.rglob("*"))
    (found,) = await asked(folder, settings_for(messages_server), attempts=1)
    assert (found.way, found.values["score"]) == ("a model: more numbers than were asked for", 9.0)
    assert "+values = [1.0, 2.0, 3.4, 0.0]" in found.change
    assert len(messages_server.requests) == 1
    assert "solving nothing" in json.dumps(messages_server.requests[0].body)
    assert sorted(folder.rglob("*")) == before, "nothing of it is left"


async def test_no_model_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, or with nothing to spend, the usual line says what to do."""
    for name in ("ANTHROPIC_API_KEY", "BLASTDOOR_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TaskError, match="there is no key for one"):
        await asked(written(tmp_path), Settings())


async def test_a_model_has_the_caps_of_any(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A cap of nothing is refused before a question is asked."""
    with pytest.raises(TaskError, match="a cap of 0 usd leaves nothing to ask a model with"):
        await asked(written(tmp_path), settings_for(messages_server), usd=0.0)
    assert not messages_server.requests
