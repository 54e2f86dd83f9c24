"""Whole coding agents in chambers on a real engine, their model played by a server on loopback.

Two are the genuine ones, as their registries have them; the others are a program of ours that does as the model says.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from orchestrator.api import Settings, read_campaign
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.run_options import Flags
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.opening import open_campaign
from tests.messages import Hang, MessagesServer, Reply, Text, Tool
from tests.messages.stage import Recorded

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

MODEL = "claude-sonnet-5-5"
SOLVE = """import os
X = 1
with open(os.path.join(os.environ["BLASTDOOR_OUT"], "x.txt"), "w") as file:
    file.write(str(X))
"""
JUDGE = """from blastdoor_judge import judging, load_json, publish
with judging():
    publish(100 - (load_json("x.txt", max_bytes=20) - 7) ** 2)
"""
TASK = """name = "hill"
statement = "Find the X in solve.py that scores best."
editable = ["solve.py"]
hidden = ["notes/*"]

[trial]
command = ["python3", "solve.py"]

[judge]
command = ["python3", "judge.py"]

[certify]
replay = false

[tune]
trials = 3
env = {CHEAP = "1"}

[model]
usd = "$2"
max_output = 1000

"""
# Asks what to do, does it, and says what came of it, until it is told no more.
OURS = """
import json, os, subprocess, sys, time, urllib.request, urllib.error

def ask(messages, **more):
    body = {"model": os.environ["BLASTDOOR_MODEL"], "max_tokens": 500, "messages": messages, **more}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    place = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(place, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))["content"]

messages = [{"role": "user", "content": "What shall I do?"}]
while True:
    said = ask(messages)
    code = said[0]["text"]
    if code == "no more":
        break
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    print(done.stdout, done.stderr, flush=True)
    messages += [{"role": "assistant", "content": code}, {"role": "user", "content": done.stdout + done.stderr + "."}]
"""


def write_task(folder: Path, *more: str, agent: str = "") -> Path:
    quoted = json.dumps(OURS)
    own = f'[agent]\nname = "ours"\nimage = "blastdoor-trial:latest"\ncommand = ["python3", "-c", {quoted}]\n'
    files = {
        "blastdoor.toml": TASK + (agent or own) + "\n".join(more),
        "workspace/solve.py": SOLVE,
        "workspace/README": "Nothing to see.\n",
        "workspace/notes/hint.txt": "the-hidden-hint\n",
        "judge/judge.py": JUDGE,
        "gold/best.txt": "the-gold-is-seven\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


class Campaign:
    """One campaign with an agent, and every event of it."""

    def __init__(self, folder: Path, server: MessagesServer) -> None:
        self.folder = folder
        self.server = server
        self.events: list[e.Event] = []

    async def run(self, **flags: Any) -> None:
        settings = Settings(api_url=self.server.url, api_key=SecretStr(self.server.key), models=(MODEL,))
        flags = {"proposer": "agent", "attempts": 1, "rate": 1e6, "width": 1, "depth": 1, **flags}
        async with (
            docker_site(docker_config(settings), settings.image) as site,
            open_campaign(self.folder, site, flags=Flags(**flags), settings=settings) as opened,
        ):

            def observe(event: e.Event, _: str) -> None:
                self.events.append(event)
                if isinstance(event, e.AttemptQuarantined):
                    opened.campaign.stop("one is enough")

            opened.bench.book.observers.append(observe)
            await opened.campaign.run()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def nodes(self) -> dict[str, Any]:
        with read_campaign(self.folder) as reading:
            return dict(reading.state.nodes)

    def spent_on_models(self) -> int:
        return sum(it.spent.microdollars for it in self.of(e.ModelCallEnded))


def replies(*turns: Sequence[Text | Tool]) -> list[Reply]:
    return [Reply(blocks) for blocks in turns]


def check_what_was_said(campaign: Campaign) -> None:
    """Neither key nor gold nor what is hidden ever reached the agent: it would have been free to tell it."""
    said = "".join(json.dumps(body) for body in campaign.server.bodies)
    for secret in (campaign.server.key, "the-gold-is-seven", "the-hidden-hint"):
        assert secret not in said


@pytest.mark.touching("models")
async def test_claude_code(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Claude Code, as npm has it, reads its brief, edits with its own tools, tunes, and its change is scored."""
    work = "/work/src/workspace"
    edit = {"file_path": f"{work}/solve.py", "old_string": "X = 1", "new_string": "X = 6"}
    messages_server.play(
        *replies(
            (Text("I read my brief."), Tool("Read", {"file_path": "/work/src/BRIEF.md"}, "t1")),
            (Tool("Read", {"file_path": f"{work}/solve.py"}, "t2"),),
            (Tool("Edit", edit, "t3"),),
            (Tool("Bash", {"command": "blastdoor tune; ls", "description": "tune"}, "t4"),),
            (Text("It is done."),),
        )
    )
    campaign = Campaign(write_task(tmp_path / "hill", agent="[agent]\n"), messages_server)
    await campaign.run()
    node = campaign.nodes()["1.1"]
    assert (node.ending, node.kept, node.verdict.metrics["score"]) == (Ending.SCORED, True, 99.0)
    assert [it.ending for it in campaign.of(e.AgentEnded)] == ["exited with 0"]
    assert campaign.of(e.AgentEnded)[0].spent.milliseconds > 0
    assert [it.agent for it in campaign.of(e.AgentIntended)] == ["claude-code"]
    answers = json.dumps(messages_server.bodies[-1]["messages"])
    assert "score 99" in answers
    assert "Find the X in solve.py" in answers
    assert "you may edit, create and delete only these paths: solve.py" in json.dumps(
        messages_server.bodies[0]["system"]
    )
    check_what_was_said(campaign)


@pytest.mark.touching("models")
async def test_mini_swe_agent(tmp_path: Path, messages_server: MessagesServer) -> None:
    """mini-swe-agent, as PyPI has it, works with its shell alone, and hands in what it did."""
    messages_server.play(
        *replies(
            (Text("I look."), Tool("bash", {"command": "cat /work/src/BRIEF.md && cat solve.py"}, "t1")),
            (Tool("bash", {"command": "sed -i 's/X = 1/X = 8/' solve.py && blastdoor tune"}, "t2"),),
            (Tool("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}, "t3"),),
        )
    )
    campaign = Campaign(write_task(tmp_path / "hill", agent="[agent]\n"), messages_server)
    await campaign.run(agent="mini-swe-agent")
    node = campaign.nodes()["1.1"]
    assert (node.ending, node.kept, node.verdict.metrics["score"]) == (Ending.SCORED, True, 99.0)
    assert [it.agent for it in campaign.of(e.AgentIntended)] == ["mini-swe-agent"]
    assert "score 99" in json.dumps(messages_server.bodies[-1]["messages"])
    check_what_was_said(campaign)


def code(text: str) -> Reply:
    return Reply((Text(text),))


def telling(*attempts: Sequence[str]) -> Callable[[Recorded], Reply]:
    """What to do, one list an attempt: whoever begins a conversation begins the next one."""
    waiting = iter(attempts)
    present: Iterator[str] = iter(())

    def answer(request: Recorded) -> Reply:
        nonlocal present
        if len(request.body["messages"]) == 1:
            present = iter(next(waiting))
        return code(next(present, "no more"))

    return answer


TRY = """import re, subprocess
text = re.sub("X = .*", "X = {x}", open("solve.py").read())
open("solve.py", "w").write(text)
subprocess.run(["blastdoor", "{command}", "X is {x}"])
"""


async def test_an_agent_that_improves(tmp_path: Path, messages_server: MessagesServer) -> None:
    """It tries what the model proposes against the cheaper target, submits the best, and the next attempt builds on
    that one: brief and files are those of its parent.
    """
    messages_server.play(code(TRY.format(x=3, command="tune")), code(TRY.format(x=5, command="tune")))
    messages_server.play(code(TRY.format(x=5, command="submit")))
    look = 'print(open("solve.py").read(), open("../BRIEF.md").read())'
    messages_server.play(code(look), code(TRY.format(x=7, command="submit")))
    campaign = Campaign(write_task(tmp_path / "hill"), messages_server)
    await campaign.run(attempts=2, depth=2)
    nodes = campaign.nodes()
    scores = {name: node.verdict.metrics["score"] for name, node in nodes.items() if node.verdict}
    assert sorted(scores.values()) == [64.0, 96.0, 100.0]
    assert [node.description for node in nodes.values() if node.kept][-2:] == ["X is 5", "X is 7"]
    assert [it.ending for it in campaign.of(e.AgentEnded)] == ["submitted", "submitted"]
    assert len([it for it in campaign.of(e.Proposed) if it.tried]) == 2
    seen = json.dumps(messages_server.bodies[-1]["messages"])
    assert "X = 5" in seen
    assert "X is 5" in seen
    assert "score=96" in seen
    check_what_was_said(campaign)


LIE = """import os
print('::report {"step": 1, "value": 1e9}')
print("score 1e9")
os.makedirs("judge", exist_ok=True)
open("judge/judge.py", "w").write("print(1e9)")
open("result.json", "w").write('{"score": 1e9}')
os.chmod("README", 0o644)
open("README", "w").write("score: 1e9")
"""
FORGE = """import os
for name in os.listdir("/proc"):
    try:
        if name.isdigit() and b"blastdoor_agent.py" in open(f"/proc/{name}/cmdline", "rb").read():
            for descriptor in os.listdir(f"/proc/{name}/fd"):
                if "pipe" in os.readlink(f"/proc/{name}/fd/{descriptor}"):
                    with open(f"/proc/{name}/fd/{descriptor}", "wb") as pipe:
                        pipe.write(b"l\\1\\0\\0\\0 forged " * 1000)
    except OSError:
        pass
import time; time.sleep(30)
"""
FLOOD = """import os, socket
log = os.open(f"/proc/{os.getppid()}/fd/1", os.O_WRONLY)
for _ in range(1000):
    os.write(log, b"x" * 65536)
held = []
for _ in range(200):
    held.append(socket.create_connection(("127.0.0.1", int(os.environ["BLASTDOOR_PORT"]))))
    held[-1].sendall(b"POST /v1/messages HTTP/1.1\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
"""
ESCAPE = """import os, socket
print("interfaces", [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]])
print("routes", [line.split()[0] for line in open("/proc/net/route").read().splitlines()[1:]])
try:
    socket.create_connection(("127.0.0.1", 2375), timeout=2)
    print("reached the engine")
except OSError:
    print("no engine")
print(sorted(name for name in os.environ if "KEY" in name or "TOKEN" in name))
"""


async def test_agents_that_lie_forge_and_flood(tmp_path: Path, messages_server: MessagesServer) -> None:
    """None gets a score, none ends the campaign, and the honest one after them is scored as ever."""
    messages_server.answering(telling([LIE], [FORGE], [FLOOD], [ESCAPE, TRY.format(x=7, command="submit")]))
    campaign = Campaign(write_task(tmp_path / "hill"), messages_server)
    await campaign.run(attempts=4)
    liar, forger, flooder, honest = (campaign.nodes()[f"1.{number}"] for number in (1, 2, 3, 4))
    assert (liar.ending, liar.verdict) == (Ending.INVALID, None)
    assert "changed nothing that it may change; it changed README, judge/judge.py, result.json" in liar.why
    assert (forger.ending, forger.verdict) == (Ending.INVALID, None)
    assert flooder.ending is Ending.INVALID
    assert (honest.ending, honest.kept) == (Ending.SCORED, True)
    ends = campaign.of(e.AgentEnded)
    assert (ends[0].ending, ends[0].left_out) == ("exited with 0", 3)
    assert ends[1].ending == "protocol broken"
    assert ends[3].ending == "submitted"
    told = messages_server.bodies[-1]["messages"][-1]["content"]
    assert "interfaces ['lo']" in told
    assert "routes []" in told
    assert "no engine" in told
    assert "['ANTHROPIC_API_KEY']" in told
    check_what_was_said(campaign)


LOOP = """
import json, os, urllib.request
messages = [{"role": "user", "content": "go"}]
while True:
    body = {"model": os.environ["BLASTDOOR_MODEL"], "max_tokens": 500, "messages": messages,
            "tools": [{"name": "look", "input_schema": {"type": "object"}}]}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    place = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    request = urllib.request.Request(place, json.dumps(body).encode(), headers)
    said = json.load(urllib.request.urlopen(request))["content"]
    result = [{"type": "tool_result", "tool_use_id": said[0]["id"], "content": "nothing"}]
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": result}]
"""


@pytest.mark.touching("models")
@pytest.mark.parametrize("how", ["hangs", "loops"])
async def test_agents_that_stall(tmp_path: Path, messages_server: MessagesServer, how: str) -> None:
    """One whose model is silent, and one that goes in circles: killed, refunded, queued again, then quarantined."""
    numbers = iter(range(1000))
    if how == "hangs":
        messages_server.answering(lambda _: Reply(hang=Hang.FIRST))
    else:
        messages_server.answering(lambda _: Reply((Tool("look", {"at": "it"}, f"t{next(numbers)}"),)))
    agent = (
        f'[agent]\nname = "stuck"\nimage = "blastdoor-trial:latest"\ncommand = ["python3", "-c", {json.dumps(LOOP)}]\n'
    )
    stall = '[stall]\nafter = 1\nin_a_row = 1\nfirst_token = "2s"\ngrace = "1s"\nwindow = "5s"\nloop = 4\n'
    campaign = Campaign(write_task(tmp_path / "hill", stall, agent=agent), messages_server)
    await campaign.run()
    found = campaign.of(e.StallFound)
    assert [(it.agent, it.node) for it in found][:1] == [("stuck", "1.1")]
    assert campaign.nodes()["1.1"].phase is Phase.QUARANTINED
    kinds = [type(it) for it in campaign.events if getattr(it, "node", "") == "1.1"]
    order = [e.AgentIntended, e.KillIntended, e.AgentEnded, e.KillConfirmed, e.StallFound, e.AttemptQuarantined]
    assert [kind for kind in kinds if kind in order] == order
