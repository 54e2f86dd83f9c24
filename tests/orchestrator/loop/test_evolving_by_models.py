"""Users and evolver are models behind the gateway: the same rule, with real calls, prices and shares."""

import itertools
import json
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import EVOLVING
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from tests.messages import MessagesServer, Reply, Text
from tests.messages.stage import Recorded
from tests.messages.steps import Step
from tests.orchestrator.loop.evolution import notes
from tests.orchestrator.loop.scripted import ran, write_task
from tests.orchestrator.loop.test_models import settings_for

MODELS = """[model]
usd = "$0.05"
max_output = 1000
proposals = 1

[certify]
replay = false

[roles.evolver]
usd = "$0.05"
models = ["claude-haiku-5-5"]
"""


def write(folder: Path) -> Path:
    write_task(folder, MODELS, high=10**9)
    (folder / "playbook").mkdir()
    (folder / "playbook" / "notes.md").write_text("Guess.\n")
    return folder


class Script:
    """Users get further where the notes say so; the evolver writes such notes, once."""

    def __init__(self) -> None:
        self.evolver: list[str] = []
        self._numbers = itertools.count(1)

    def __call__(self, request: Recorded) -> Step:
        text = json.dumps(request.body)
        if "You edit a playbook" in text:
            self.evolver.append(text)
            return Reply((Text(notes("Calculate.") if len(self.evolver) == 1 else "nothing comes to mind"),))
        value = next(self._numbers) + (10**6 if "Calculate." in text else 0)
        return Reply((Text(json.dumps({"points": [{"why": "so", "point": {"value": value}}]})),))


async def test_evolved_by_a_model(tmp_path: Path, messages_server: MessagesServer) -> None:
    """The challenger that helps is adopted, and every dollar of the evolver is in the books, with no attempt."""
    script = Script()
    messages_server.answering(script)
    settings = settings_for(messages_server)
    session = await ran(write(tmp_path), proposer="llm-params", attempts=36, settings=settings)
    assert [(it.number, it.by) for it in session.state.playbooks.values()] == [(1, "task"), (2, "evolver")]
    assert session.state.campaign.playbook == 2
    calls = [it for it in session.of(e.ModelCallEnded) if it.role is ModelRole.EVOLVER]
    settled = [it for it in session.of(e.Settled) if it.hold.startswith(EVOLVING)]
    paid = sum(it.spent.microdollars for it in calls)
    assert sum(it.spent.get("usd", 0) for it in settled) == paid > 0
    assert {(it.node, it.model) for it in calls} == {("", "claude-haiku-5-5")}
    assert session.accounts.used(Account.USD) == sum(it.spent.microdollars for it in session.of(e.ModelCallEnded))
    assert not session.accounts.holds
    assert "Guess." in script.evolver[0]


async def test_resumed_with_another_folder(tmp_path: Path, messages_server: MessagesServer) -> None:
    """The pages that changed are what users are shown from then on, under a new version."""
    messages_server.answering(Script())
    settings = settings_for(messages_server)
    folder = write(tmp_path)
    await ran(folder, proposer="llm-params", attempts=2, settings=settings)
    (folder / "playbook" / "notes.md").write_text("Guess twice.\n")
    session = await ran(folder, how=How.RESUME, attempts=3, settings=settings)
    assert [(it.number, it.by) for it in session.state.playbooks.values()] == [(1, "task"), (2, "task")]
    assert session.nodes["1.3"].playbook == 2
    assert "Guess twice." in json.dumps(messages_server.bodies[-1])
    assert "Guess twice." not in json.dumps(messages_server.bodies[0])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("promts/system.md", "x", "did you mean prompts/system.md?"),
        ("notes.md", "key sk-ant-api03-" + "aB3" * 30, "playbook/notes.md line 1 looks like"),
    ],
)
async def test_refused_before_anything_is_asked(
    tmp_path: Path, messages_server: MessagesServer, name: str, text: str, said: str
) -> None:
    """Pages that nobody reads, and secrets in pages, end it before the first call; nothing is charged."""
    folder = write(tmp_path)
    (folder / "playbook" / name).parent.mkdir(exist_ok=True)
    (folder / "playbook" / name).write_text(text)
    with pytest.raises(TaskError, match=said):
        await ran(folder, proposer="llm-params", settings=settings_for(messages_server))
    assert not messages_server.requests
