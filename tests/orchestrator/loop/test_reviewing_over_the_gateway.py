"""The verifier on a real line: through the gateway to a server that speaks the Messages API, with its own model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.proposal import Proposal
from orchestrator.proposers import Brief
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from tests.messages import Hang, MessagesServer, Recorded, Refusal, Reply, Step, Text, Thinking
from tests.orchestrator.loop.scripted import scripted, write_task
from tests.orchestrator.loop.verifying import proposed, says

USER, VERIFIER = "claude-sonnet-5-5", "claude-haiku-5-5"
ROLES = f'[roles.verifier]\nmodels = ["{VERIFIER}"]\n'
SHORT = '[stall]\npropose = "20s"\nfirst_token = "2s"\ngrace = "500ms"\nwindow = "2s"\nwaiting = "5s"\n'


def answering(server: MessagesServer, finding: str | Step) -> None:
    """Users are told a number; the verifier says what it is told to, after some thought."""

    def answer(request: Recorded) -> Step:
        if request.body["model"] == USER:
            return Reply((Text("7"),))
        if not isinstance(finding, str):
            return finding
        prompt = request.body["messages"][0]["content"]
        text = prompt if isinstance(prompt, str) else prompt[0]["text"]
        return Reply((Thinking("It changes a number. " * 5), Text(says(finding)(text))))

    server.answering(answer)


async def asking(brief: Brief) -> Sequence[Proposal]:
    """A user of a model that changes code."""
    assert brief.line is not None
    messages = [{"role": "user", "content": "a number"}]
    answer = await brief.line.ask(system=["Say a number."], messages=messages, max_tokens=100)
    return [proposed(int(answer.text))]


def open_asking(folder: Path, server: MessagesServer, **more: Any) -> Any:
    settings = Settings(api_url=server.url, api_key=SecretStr(server.key), models=(USER,))
    return scripted(folder, None, asking, settings=settings, proposer="llm", **more)


@pytest.mark.parametrize(("finding", "ending"), [("pass", Ending.SCORED), ("hold", Ending.HELD)])
async def test_found(tmp_path: Path, messages_server: MessagesServer, finding: str, ending: Ending) -> None:
    """Its own model is asked, with thoughts; its call is on record under its role, and every dollar in the books."""
    answering(messages_server, finding)
    async with open_asking(write_task(tmp_path, ROLES), messages_server) as session:
        await session.run()
        node = session.nodes["1.1"]
        assert (node.ending, node.finding) == (ending, finding)
        asked = messages_server.requests[-1].body
        assert asked["model"] == VERIFIER
        assert asked["thinking"]["type"] in ("enabled", "adaptive")
        calls = session.of(e.ModelCallEnded)
        assert [(it.role, it.model) for it in calls] == [(ModelRole.USER, USER), (ModelRole.VERIFIER, VERIFIER)]
        assert set(session.state.campaign.asked_models) == {f"user {USER}", f"verifier {VERIFIER}"}
        accounts = session.accounts
        assert accounts.used(Account.USD) == sum(it.spent.microdollars for it in calls) > 0
        assert not accounts.holds


async def test_a_verifier_that_hangs(tmp_path: Path, messages_server: MessagesServer) -> None:
    """It is ended like anybody who stalls; the attempt is not refunded for it, but goes on unreviewed."""
    answering(messages_server, Reply((Text("x" * 400),), hang=Hang.FIRST))
    async with open_asking(write_task(tmp_path, ROLES, SHORT), messages_server) as session:
        await session.run()
        (found,) = session.of(e.Reviewed)
        assert (found.finding, "stalled" in found.reasons) == ("unreviewed", True)
        assert session.nodes["1.1"].ending is Ending.SCORED
        assert not session.state.open_calls


async def test_a_provider_that_refuses_the_request(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A request that is not taken is no reason to hold anybody up; that nobody looked is on record."""
    answering(messages_server, Refusal(400, "invalid_request_error"))
    async with open_asking(write_task(tmp_path, ROLES), messages_server) as session:
        await session.run()
        assert session.of(e.Reviewed)[0].finding == "unreviewed"
        assert session.nodes["1.1"].ending is Ending.SCORED


async def test_an_unknown_model(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A verifier's model without a price ends it before anything is asked."""
    folder = write_task(tmp_path, '[roles.verifier]\nmodels = ["claude-imaginary-9"]\n')
    with pytest.raises(TaskError, match=r"roles\.verifier\.models: .*claude-imaginary-9"):
        async with open_asking(folder, messages_server):
            pass
    assert not messages_server.requests
