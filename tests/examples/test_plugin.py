"""The package of examples/plugin, installed by pip like anybody's: its names are on the command line and in a campaign.

Its own tests are run beside the wheel, in tests/e2e/test_wheel.py.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.choices import BACKENDS
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.views.cli import cli
from orchestrator.wiring.reading import read_campaign
from tests.clicking import runner
from tests.e2e.test_agents import Campaign, write_task
from tests.messages import MessagesServer

TASK = """
name = "nine"
statement = "Come near to nine."
editable = ["params.json"]
trial = {command = ["python3", "solve.py"]}
judge = {command = ["python3", "judge.py"]}
metrics = [{name = "score", goal = "lower"}]

[parameters]
file = "params.json"
space = {value = {type = "int", low = 1, high = 20}}
"""
PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip put it; it is built from a copy, since a build leaves files behind."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, folder / "source")
    command = [sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(folder / "site")]
    subprocess.run([*command, str(folder / "source")], check=True)
    return folder / "site"


def test_names_on_the_command_line(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help lists them with ours."""
    monkeypatch.syspath_prepend(str(installed))
    said = "".join(runner().invoke(cli, ["run", "--help"]).output.split())
    assert "|inject|neighbour]" in said
    assert "|mini-swe-agent|scribe]" in said
    assert "|archive|drawn|anyone]" in said
    assert f"[{'|'.join(BACKENDS.built_in)}|pretend]" in said


def test_a_campaign_by_the_command_line(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From `run` to `resume` with its proposer on its backend: no engine is asked for."""
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    files = {"blastdoor.toml": TASK, "workspace/params.json": '{"value": 4}\n', "judge/judge.txt": "pretended\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    words = ["--proposer", "neighbour", "--backend", "pretend", "--attempts", "2", "--rate", "1000/s"]
    words += ["--selection", "anyone", "--islands", "2"]
    assert runner().invoke(cli, ["run", *words, "--dry-run", str(tmp_path)]).exit_code == 0
    ran = runner().invoke(cli, ["run", *words, str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "  flag: proposer neighbour, selection anyone, " in ran.output
    assert runner().invoke(cli, ["resume", "--attempts", "3", str(tmp_path)]).exit_code == 0
    assert runner().invoke(cli, ["replay", "best", str(tmp_path)]).exit_code == 0
    with read_campaign(tmp_path) as campaign:
        found = [(it.kind, it.name, it.package, it.version) for it in campaign.state.run.brought]
        assert found == [
            ("proposer", "neighbour", "blastdoor-example", "0.1.0"),
            ("parent rule", "anyone", "blastdoor-example", "0.1.0"),
            ("backend", "pretend", "blastdoor-example", "0.1.0"),
        ]
        assert campaign.state.run.islands == 2
    monkeypatch.undo()
    refused = runner().invoke(cli, ["replay", "best", str(tmp_path)])
    assert 'run 1 was begun with the backend "pretend" of the package blastdoor-example 0.1.0' in str(refused.exception)


@pytest.mark.touching("examples", "models")
@pytest.mark.docker
async def test_its_agent_in_a_chamber(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages_server: MessagesServer
) -> None:
    """On a real engine it reads its brief, writes its note, and hands it in; the ledger names its package."""
    monkeypatch.syspath_prepend(str(installed))
    folder = write_task(tmp_path / "hill", agent='[agent]\nname = "scribe"\nimage = "blastdoor-trial:latest"\n')
    text = (folder / "blastdoor.toml").read_text()
    (folder / "blastdoor.toml").write_text(text.replace('editable = ["solve.py"]', 'editable = ["notes.txt"]'))
    campaign = Campaign(folder, messages_server)
    await campaign.run()
    node = campaign.nodes()["1.1"]
    assert (node.ending, node.description) == (Ending.SCORED, "a note of the time")
    assert [it.ending for it in campaign.of(e.AgentEnded)] == ["submitted"]
    assert messages_server.bodies == []
    with read_campaign(folder) as reading:
        found = [(it.kind, it.name, it.package) for it in reading.state.run.brought]
        assert found == [("agent", "scribe", "blastdoor-example")]
        assert list(reading.candidates.read(node.commit)) == ["README", "notes.txt", "notes/hint.txt", "solve.py"]
