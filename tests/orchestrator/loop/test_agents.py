"""Campaigns whose changes come from a coding agent: on record, in the books, and reconciled after a crash."""

import asyncio
import json
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
from tests.orchestrator.loop.scripted import TUNE, Scripted, make_site, scripted, write_task

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


async def over(folder: Path, server: MessagesServer, *replies: Reply, **more: Any) -> Scripted:
    """A whole campaign, with these answers of the model."""
    server.play(*replies)
    async with campaign(folder, server, **more) as session:
        await session.run()
    return session  # type: ignore[no-any-return]


async def test_an_agent_proposes(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Intent, end, proposal, trial: all on record, and what its chamber took is booked with the attempt."""
    session = await over(write_task(tmp_path, AGENT, MODEL), messages_server, does({"value": 5}, ["submit", "five"]))
    order = (e.AgentIntended, e.ModelCallIntended, e.ModelCallEnded, e.AgentEnded, e.Proposed, e.TrialIntended)
    kinds = [type(it) for it in session.events if getattr(it, "node", "") == "1.1" and isinstance(it, order)]
    assert kinds[: len(order)] == list(order)
    ended = session.of(e.AgentEnded)[0]
    assert (ended.ending, ended.log is None) == ("submitted", True)
    node = session.nodes["1.1"]
    assert (node.ending, node.description, node.kept, node.agent) == (Ending.SCORED, "five", True, None)
    kinds_that_cost = (e.TrialEnded, e.JudgingEnded, e.AgentEnded, e.ModelCallEnded)
    total = [it.spent for kind in kinds_that_cost for it in session.of(kind)]
    assert session.accounts.used(Account.SECONDS) == sum(it.milliseconds for it in total)
    assert session.accounts.used(Account.USD) == sum(it.microdollars for it in total)
    assert not session.accounts.holds


async def test_its_chamber_is_part_of_the_worst_case(tmp_path: Path, messages_server: MessagesServer) -> None:
    """A cap that the agent's chamber alone could pass stops the campaign before it is opened."""
    session = await over(write_task(tmp_path, AGENT, MODEL), messages_server, seconds=300.0)
    assert session.bench.asking.milliseconds == 2 * 1000 * (20 + 1 + 100)
    assert "seconds" in session.reason
    assert not session.of(e.AgentIntended)


async def test_tunes_of_an_agent(tmp_path: Path, messages_server: MessagesServer) -> None:
    """What it tunes is drawn from the pool of tunes, marked as tried, and only what it hands in is promoted."""
    tunes = does({"value": 3}, ["tune"], {"value": 4}, ["tune"], {"value": 3})
    session = await over(write_task(tmp_path, AGENT, MODEL, TUNE), messages_server, tunes, tunes=5)
    assert session.accounts.used(Account.TUNES) == 2
    assert [it.tried for it in session.of(e.Proposed) if it.node == "1.1"] == [True, True, False]
    assert session.score("1.1") == 3


async def test_t87_an_agent_that_speaks_another_api(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Its first question ends it, free, and the campaign too: every attempt of this agent would be refused."""
    agent = AGENT.replace("/v1/messages", "/v1/responses")
    told = "/v1/responses: not offered here; set the agent up for Anthropic's Messages API"
    async with campaign(write_task(tmp_path, agent, MODEL, "[stall]\nafter = 1\n"), messages_server) as session:
        with pytest.raises(Unusable, match=told):
            await session.run()
        assert told in session.state.campaign.stopped
        node = session.nodes["1.1"]
        assert (node.phase, node.stalls, session.charged) == (Phase.QUEUED, 1, 0)
        assert told in node.why
        assert [(it.cause, it.lost.milliseconds > 0) for it in session.of(e.StallFound)] == [("refused", True)]
        assert session.of(e.AgentEnded)[0].ending == "refused"
    assert messages_server.requests == []
    right = write_task(tmp_path, AGENT, MODEL, "[stall]\nafter = 1\n")
    session = await over(right, messages_server, does({"value": 2}), how=How.RESUME)
    assert session.nodes["1.1"].ending is Ending.SCORED


async def test_who_pays_for_nothing(tmp_path: Path, messages_server: MessagesServer) -> None:
    """An agent that hands nothing in is charged; one whose provider gave no chamber is refunded and queued."""
    seen = 0

    async def on_open(job: Job) -> None:
        nonlocal seen
        if any("blastdoor_agent.py" in word for word in job.command):
            seen += 1
            if seen == 2:
                raise Unavailable("no chamber")

    replies, script = (does(), does({"value": 2})), WithAgents(on_open=on_open)
    session = await over(write_task(tmp_path, AGENT, MODEL), messages_server, *replies, script=script, attempts=2)
    assert [session.nodes[name].ending for name in ("1.1", "1.2")] == [Ending.INVALID, Ending.SCORED]
    assert [(it.node, it.ending) for it in session.of(e.AttemptRequeued)] == [("1.2", Ending.INFRASTRUCTURE)]
    assert [it.ending for it in session.of(e.AgentEnded)] == ["exited with 0", "not started", "exited with 0"]
    assert session.charged == 2


@pytest.mark.alone
async def test_a_stalled_agent_is_ended_before_it_is_refunded(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Its chamber is gone and booked when its death is confirmed; only then is the attempt queued again."""
    # A real agent has to begin within it; on a busy machine it may need more than one try.
    stall = '[stall]\nfirst_token = "2s"\ngrace = "1s"\nafter = 9\n'
    replies = Reply(hang=Hang.FIRST), *[does({"value": 2})] * 8
    session = await over(write_task(tmp_path, AGENT, MODEL, stall), messages_server, *replies)
    order = (e.KillIntended, e.AgentEnded, e.KillConfirmed, e.Refunded, e.StallFound, e.AttemptRequeued)
    kinds = [type(it) for it in session.events if isinstance(it, order)]
    assert kinds[: len(order)] == list(order)
    assert session.of(e.AgentEnded)[0].interrupted
    assert session.of(e.StallFound)[0].lost.milliseconds >= session.of(e.AgentEnded)[0].spent.milliseconds > 0
    assert session.nodes["1.1"].ending is Ending.SCORED


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
        assert session.nodes["1.1"].agent is None
        assert session.nodes["1.1"].spent.milliseconds <= 121_000
        await session.run()
        assert (session.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)


def _die(session: Any, kind: type[Any]) -> None:
    """As if killed: nothing more is written from that event on."""

    def act(_: Any) -> None:
        session.bench.book.record = session.bench.book.note = refuse
        for task in asyncio.all_tasks():
            task.cancel()

    def refuse(*_: object) -> None:
        raise asyncio.CancelledError

    session.when(kind, act)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"script": WithAgents(has=False)}, "cannot run the agent ours: it has no python3"),
        ({"agent": "nobody"}, r'there is no agent "nobody"; known are .*mini-swe-agent; for any other, give'),
    ],
)
async def test_an_agent_that_cannot_run(
    tmp_path: Path, messages_server: MessagesServer, more: dict[str, Any], told: str
) -> None:
    """One line before anything is charged, reserved or even begun."""
    with pytest.raises(TaskError, match=told):
        await over(write_task(tmp_path, AGENT, MODEL), messages_server, **more)


async def test_an_agent_is_an_arm_of_a_hybrid(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Cheap points come first; once they repeat themselves the agent is asked, and its arm is credited its cost."""
    notes = AGENT.replace('open(\\"params.json\\"', 'open(\\"notes.txt\\"')
    replies = (does({"note": 1}, ["submit", "one"]), does({"note": 2}, ["submit", "two"]))
    flags = {"proposer": "hybrid", "arms": "random,agent", "meta": "gradient", "price": "usd", "attempts": 5}
    session = await over(write_task(tmp_path, notes, MODEL, high=3), messages_server, *replies, **flags)
    nodes = [node for node in session.nodes.values() if node.parent]
    asked = {node.id: node.drawn.arms["proposer"].option for node in nodes if node.drawn}
    assert sorted(asked.values()) == ["agent", "agent", "random", "random", "random"]
    by_agent = [node for node in nodes if asked[node.id] == "agent"]
    assert [it.node for it in session.of(e.AgentEnded)] == [node.id for node in by_agent]
    assert {node.description for node in by_agent} == {"one", "two"}
    assert all(node.ending is Ending.SCORED for node in nodes)
    found = standings(session.bench.pasts[Role.SEARCH].ended, Learnt(Learning.GRADIENT, price=Price.USD))
    cost = {it.arm: it.usd for it in found.arms if it.slot == "proposer"}
    assert cost["agent"] > cost["random"]
