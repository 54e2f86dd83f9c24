"""Campaigns whose changes come from a coding agent: on record, in the books, and reconciled after a crash."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase, Role
from orchestrator.llm.line import Unusable
from orchestrator.meta.chooser import Learnt
from orchestrator.meta.credit import Price
from orchestrator.meta.policy import Learning
from orchestrator.meta.standings import standings
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from sandbox import Job, Unavailable
from sandbox.backends.fake.backend import Guest
from tests.messages import Hang, MessagesServer, Reply, Text
from tests.orchestrator.agents.local import real_guest
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import TUNE, make_site, scripted, write_task

# Asks the model for a value, and does as it says.
OURS = """
import json, os, subprocess, urllib.request
messages = [{"role": "user", "content": "and now?"}]
body = {"model": os.environ["BLASTDOOR_MODEL"], "max_tokens": 100, "messages": messages}
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), headers)
for step in json.loads(json.load(urllib.request.urlopen(request))["content"][0]["text"]):
    if isinstance(step, list):
        print(subprocess.run(["blastdoor", *step], capture_output=True, text=True).stdout)
    else:
        open("params.json", "w").write(json.dumps(step))
"""
AGENT = f"""[agent]
name = "ours"
command = ["python3", "-c", {json.dumps(OURS)}]
limits = {{wall = "20s", grace = "1s"}}
"""
MODEL = '[model]\nusd = "$0.05"\nmax_output = 1000\n'


@dataclass
class WithAgents(Script):
    """Beside what is scripted, an agent's chamber runs its program for real; its image has what `has` says."""

    has: bool = True

    async def program(self, guest: Guest) -> int:
        if any("blastdoor_agent.py" in word for word in guest.job.command):
            return await real_guest(guest)
        if guest.job.command[0] == "sh":
            guest.log(b"" if self.has else b"it has no python3\n")
            return int(not self.has)
        return await super().program(guest)


def does(*steps: dict[str, Any] | list[str]) -> Reply:
    return Reply((Text(json.dumps(steps)),))


def campaign(folder: Path, server: MessagesServer, script: Script | None = None, **more: Any) -> Any:
    settings = Settings(api_url=server.url, api_key=SecretStr(server.key), models=("claude-sonnet-4-5",))
    flags = {"attempts": 1} if more.get("how") is How.RESUME else {"proposer": "agent", "attempts": 1}
    script = script or WithAgents()
    site = make_site(script, usd_per_second=0.001)
    return scripted(folder, script, **{"settings": settings, "site": site, **flags, **more})


async def test_an_agent_proposes(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Intent, end, proposal, trial: all on record, and what its chamber took is booked with the attempt."""
    messages_server.play(does({"value": 5}, ["submit", "five"]))
    async with campaign(write_task(tmp_path, AGENT, MODEL), messages_server) as session:
        await session.run()
        order = (e.AgentIntended, e.ModelCallIntended, e.ModelCallEnded, e.AgentEnded, e.Proposed, e.TrialIntended)
        kinds = [type(it) for it in session.events if getattr(it, "node", "") == "1.1" and isinstance(it, order)]
        assert kinds[: len(order)] == list(order)
        ended = session.of(e.AgentEnded)[0]
        assert (ended.ending, ended.log is None) == ("submitted", True)
        node = session.bench.state.nodes["1.1"]
        assert (node.ending, node.description, node.kept, node.agent) == (Ending.SCORED, "five", True, None)
        accounts = session.bench.book.accounts
        total = [it.spent for it in session.of(e.TrialEnded) + session.of(e.JudgingEnded) + session.of(e.AgentEnded)]
        total += [it.spent for it in session.of(e.ModelCallEnded)]
        assert accounts.used(Account.SECONDS) == sum(it.milliseconds for it in total)
        assert accounts.used(Account.USD) == sum(it.microdollars for it in total)
        assert not accounts.holds


async def test_its_chamber_is_part_of_the_worst_case(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A cap that the agent's chamber alone could pass stops the campaign before it is opened."""
    folder = write_task(tmp_path, AGENT, MODEL)
    async with campaign(folder, messages_server) as session:
        reserved = session.bench.asking
        assert reserved.milliseconds == 2 * 1000 * (20 + 1 + 100)
    async with campaign(folder, messages_server, how=How.NEW_RUN, seconds=300.0) as session:
        finished = await session.run()
        assert "seconds" in finished.reason
        assert not session.of(e.AgentIntended)


async def test_tunes_of_an_agent(tmp_path: Path, messages_server: MessagesServer) -> None:
    """What it tunes is drawn from the pool of tunes, marked as tried, and only what it hands in is promoted."""
    messages_server.play(does({"value": 3}, ["tune"], {"value": 4}, ["tune"], {"value": 3}))
    async with campaign(write_task(tmp_path, AGENT, MODEL, TUNE), messages_server, tunes=5) as session:
        await session.run()
        assert session.bench.book.accounts.used(Account.TUNES) == 2
        assert [(it.tried, it.node) for it in session.of(e.Proposed) if it.node == "1.1"] == [
            (True, "1.1"),
            (True, "1.1"),
            (False, "1.1"),
        ]
        assert session.bench.state.nodes["1.1"].verdict.metrics["score"] == 3


async def test_nothing_handed_in_is_charged(tmp_path: Path, messages_server: MessagesServer) -> None:
    """An agent that does nothing ends its attempt as invalid, and the next one goes on."""
    messages_server.play(does(), does({"value": 2}))
    async with campaign(write_task(tmp_path, AGENT, MODEL), messages_server, attempts=2) as session:
        await session.run()
        assert session.bench.state.nodes["1.1"].ending is Ending.INVALID
        assert session.bench.state.nodes["1.2"].ending is Ending.SCORED
        assert session.charged == 2


async def test_t87_an_agent_that_speaks_another_api(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Its first question ends it at once, free and counted as a stall, and the node says what to change. The campaign
    ends with that, too: every attempt of this agent would be refused, and none is set aside for it.
    """
    agent = AGENT.replace("/v1/messages", "/v1/responses")
    told = "/v1/responses: not offered here; set the agent up for Anthropic's Messages API"
    async with campaign(write_task(tmp_path, agent, MODEL, "[stall]\nafter = 1\n"), messages_server) as session:
        with pytest.raises(Unusable, match=told):
            await session.run()
        assert told in session.bench.state.campaign.stopped
        node = session.bench.state.nodes["1.1"]
        assert (node.phase, node.stalls, session.charged) == (Phase.QUEUED, 1, 0)
        assert told in node.why
        assert [(it.cause, it.lost.milliseconds > 0) for it in session.of(e.StallFound)] == [("refused", True)]
        assert session.of(e.AgentEnded)[0].ending == "refused"
    assert messages_server.requests == []
    right = write_task(tmp_path, AGENT, MODEL, "[stall]\nafter = 1\n")
    messages_server.play(does({"value": 2}))
    async with campaign(right, messages_server, how=How.RESUME) as session:
        await session.run()
        assert session.bench.state.nodes["1.1"].ending is Ending.SCORED


async def test_no_chamber_for_an_agent(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A provider that gives none is not the agent's fault: refunded and queued again."""
    seen = 0

    async def on_open(job: Job) -> None:
        nonlocal seen
        if any("blastdoor_agent.py" in word for word in job.command):
            seen += 1
            if seen == 1:
                raise Unavailable("no chamber")

    messages_server.play(does({"value": 2}))
    async with campaign(write_task(tmp_path, AGENT, MODEL), messages_server, WithAgents(on_open=on_open)) as session:
        await session.run()
        assert [it.ending for it in session.of(e.AttemptRequeued)] == [Ending.INFRASTRUCTURE]
        assert [it.ending for it in session.of(e.AgentEnded)] == ["not started", "exited with 0"]
        assert session.charged == 1


@pytest.mark.alone
async def test_a_stalled_agent_is_ended_before_it_is_refunded(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Its chamber is gone and booked when its death is confirmed; only then is the attempt queued again."""
    messages_server.play(Reply(hang=Hang.FIRST), does({"value": 2}))
    stall = '[stall]\nfirst_token = "2s"\ngrace = "1s"\n'
    async with campaign(write_task(tmp_path, AGENT, MODEL, stall), messages_server) as session:
        await session.run()
        order = (e.KillIntended, e.AgentEnded, e.KillConfirmed, e.Refunded, e.StallFound, e.AttemptRequeued)
        kinds = [type(it) for it in session.events if isinstance(it, order)]
        assert kinds[: len(order)] == list(order)
        assert session.of(e.AgentEnded)[0].interrupted
        assert session.of(e.StallFound)[0].lost.milliseconds >= session.of(e.AgentEnded)[0].spent.milliseconds > 0
        assert session.bench.state.nodes["1.1"].ending is Ending.SCORED


async def test_steering_reaches_an_agent_at_work(tmp_path: Path, messages_server: MessagesServer) -> None:
    """What a person says while the agent works is in its next question."""
    twice = OURS + (
        'body["messages"] = messages + [{"role": "assistant", "content": "x"}, {"role": "user", "content": "go on"}]\n'
        "request.data = json.dumps(body).encode()\nurllib.request.urlopen(request)\n"
    )
    agent = AGENT.replace(json.dumps(OURS), json.dumps(twice))
    messages_server.play(does({"value": 2}), does())
    async with campaign(write_task(tmp_path, agent, MODEL), messages_server) as session:
        book = session.bench.book
        session.when(e.ModelCallIntended, lambda _: book.record(e.Steered(text="be bold")) if not told else None)
        session.when(e.Steered, lambda _: told.append(1))
        told: list[int] = []
        await session.run()
    assert "be bold" not in json.dumps(messages_server.bodies[0])
    assert "be bold" in json.dumps(messages_server.bodies[1]["messages"])


@pytest.mark.parametrize("stopped", [True, False])
async def test_after_a_stop_or_a_crash(tmp_path: Path, messages_server: MessagesServer, stopped: bool) -> None:
    """What was under way is booked at most at the time since its intent, refunded, and asked for again."""
    folder = write_task(tmp_path, AGENT, MODEL)
    messages_server.answering(lambda _: Reply(hang=Hang.FIRST))
    async with campaign(folder, messages_server) as session:
        if stopped:
            session.stop_at(e.ModelCallIntended, 1)
            await session.run()
        else:
            _die(session, e.ModelCallIntended)
            with pytest.raises(asyncio.CancelledError):
                await session.run()
    messages_server.answering(lambda _: does({"value": 2}))
    async with campaign(folder, messages_server, how=How.RESUME) as session:
        nodes = session.bench.state.nodes
        assert nodes["1.1"].agent is None
        assert nodes["1.1"].spent.milliseconds <= 121_000
        await session.run()
        assert session.bench.state.nodes["1.1"].ending is Ending.SCORED
        assert session.charged == 1


def _die(session: Any, kind: type[Any]) -> None:
    """As if killed: nothing more is written from that event on."""

    def act(_: Any) -> None:
        session.bench.book.record = _refuse
        session.bench.book.note = _refuse
        for task in asyncio.all_tasks():
            task.cancel()

    session.when(kind, act)


def _refuse(*_: object) -> None:
    raise asyncio.CancelledError


async def test_an_image_without_what_it_needs(tmp_path: Path, messages_server: MessagesServer) -> None:
    """One line before anything is charged, reserved or even begun."""
    folder = write_task(tmp_path, AGENT, MODEL)
    with pytest.raises(TaskError, match="cannot run the agent ours: it has no python3"):
        async with campaign(folder, messages_server, WithAgents(has=False)):
            pass
    unknown: Sequence[str] = ("nobody",)
    with pytest.raises(TaskError, match=r'there is no agent "nobody"; known are .*mini-swe-agent; for any other, give'):
        async with campaign(folder, messages_server, agent=unknown[0]):
            pass


async def test_an_agent_is_an_arm_of_a_hybrid(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Cheap points come first. When they only repeat themselves, the agent is asked, works in a chamber of its own, and
    what it cost is credited to its arm.
    """
    notes = AGENT.replace('open(\\"params.json\\"', 'open(\\"notes.txt\\"')
    messages_server.play(does({"note": 1}, ["submit", "one"]), does({"note": 2}, ["submit", "two"]))
    folder = write_task(tmp_path, notes, MODEL, high=3)
    flags: dict[str, Any] = {
        "proposer": "hybrid",
        "arms": "random,agent",
        "meta": "gradient",
        "price": "usd",
        "attempts": 5,
    }
    async with campaign(folder, messages_server, **flags) as session:
        await session.run()
        nodes = [node for node in session.bench.state.nodes.values() if node.parent]
        asked = {node.id: node.drawn.arms["proposer"].option for node in nodes if node.drawn}
        assert sorted(asked.values()) == ["agent", "agent", "random", "random", "random"]
        by_agent = [node for node in nodes if asked[node.id] == "agent"]
        assert [it.node for it in session.of(e.AgentEnded)] == [node.id for node in by_agent]
        assert {node.description for node in by_agent} == {"one", "two"}
        assert all(node.ending is Ending.SCORED for node in nodes)
        found = standings(session.bench.pasts[Role.SEARCH].ended, Learnt(Learning.GRADIENT, price=Price.USD))
        cost = {it.arm: it.usd for it in found.arms if it.slot == "proposer"}
        assert cost["agent"] > cost["random"]
