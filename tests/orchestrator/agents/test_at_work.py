"""Agents at work, with the genuine forwarder: what they reach, what they hand in, what is taken of it."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from orchestrator.agents import proposer
from orchestrator.agents.offers import offer_of
from orchestrator.agents.presets import agent_of
from orchestrator.change import File, Tree
from orchestrator.change.applying import apply_text
from orchestrator.offload import offload
from orchestrator.proposers.base import Tuned, Unanswered
from orchestrator.watch.signals import Hold, Kind
from sandbox.backends.fake import backend as fake
from sandbox.live import LiveChamber
from tests.orchestrator.agents.local import TREE, Line, Scene, task
from tests.sandbox.scripted import Hiccup

ASK = """
import json, os, urllib.request
def ask(text, **more):
    messages = [{"role": "user", "content": text}]
    body = {"model": os.environ["BLASTDOOR_MODEL"], "max_tokens": 10, "messages": messages, **more}
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
    place = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    return json.load(urllib.request.urlopen(urllib.request.Request(place, json.dumps(body).encode(), headers)))
"""
EDIT = 'open("solve.py", "w").write("print(2)\\n")\n'


async def test_edits_are_handed_in_at_the_end() -> None:
    """What is in the workspace at the end is its proposal; its call reached the line's app, with the line's token."""
    scene = Scene(script=ASK + 'print(ask("hi")["text"])\n' + EDIT)
    changed = apply_text(TREE, await scene.run(), scene.task.policy())
    assert changed["solve.py"].data == b"print(2)\n"
    assert (scene.proposal.operator, scene.proposal.description) == ("mine", "changed solve.py (2 lines)")
    assert scene.journal.notes == [("intended", "1.1"), ("ended", "1.1")]
    assert scene.journal.ends[0].ending == "exited with 0"
    assert scene.journal.ends[0].spent.milliseconds > 0
    (call,) = scene.seen
    assert (call["path"], call["headers"]["x-api-key"]) == ("/v1/messages", "its-own-token")
    assert call["body"]["messages"] == [{"role": "user", "content": "hi"}]
    assert scene.journal.lines == ["well"]


async def test_what_it_finds() -> None:
    """Nothing hidden, read-only what it may not edit; without a cheaper target it is told so, and beforehand."""
    script = """
import os, subprocess
print(sorted(os.listdir(".")), [name for name in ("solve.py", "other.py") if os.stat(name).st_mode & 0o200])
subprocess.run(["blastdoor", "tune"])
print(open("../AGENTS.md").read())
"""
    scene = Scene(script=EDIT + script)
    await scene.run()
    assert scene.journal.lines[0] == "['README', 'lib', 'other.py', 'solve.py'] ['solve.py']"
    assert any("no tune mode" in line for line in scene.journal.lines)
    assert not any("blastdoor tune`" in line for line in scene.journal.lines)


async def test_T86_a_silence_that_is_over_ends_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider answered nobody for a while, every frame came through: the work is handed in all the same."""
    monkeypatch.setattr(fake, "LiveChamber", partial(LiveChamber, pulse=Hiccup()))
    scene = Scene(script=EDIT)
    assert "print(2)" in await scene.run()


async def test_streams_arrive_piece_by_piece() -> None:
    """A piece of an answer is in the agent's hands before the next one is sent."""
    arrived = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        if scope["path"] == "/arrived":
            arrived.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/v1/messages":
            await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
            await arrived.wait()
        await send({"type": "http.response.body", "body": b"second\n", "more_body": False})

    script = """
import os, urllib.request
base = os.environ["ANTHROPIC_BASE_URL"]
answer = urllib.request.urlopen(base + "/v1/messages", b"{}")
print(answer.readline().decode().strip())
urllib.request.urlopen(base + "/arrived", b"{}").read()
print(answer.readline().decode().strip())
"""
    scene = Scene(script=script + EDIT, brief={"line": Line(app)})
    await scene.run()
    assert scene.journal.lines == ["first", "second"]


async def test_head_leaves_the_connection_usable() -> None:
    """An answer to HEAD ends with its head: what is asked next on the same connection is read from its beginning."""
    script = """
import http.client, os
kept = http.client.HTTPConnection(os.environ["ANTHROPIC_BASE_URL"].removeprefix("http://"))
for method in ("HEAD", "GET"):
    kept.request(method, "/v1/models")
    answer = kept.getresponse()
    print(answer.status, answer.read().decode())
"""
    scene = Scene(script=script + EDIT)
    await scene.run()
    assert scene.journal.lines == ["200 ", '200 {"text": "well"}']


async def test_large_answers_in_small_frames() -> None:
    """However small the frames of a chamber are, an answer of any size comes through, piece by piece."""
    script = ASK + 'print(len(ask("hi")["text"]))\n' + EDIT
    scene = Scene(script=script, respond=lambda _: (200, {"text": "x" * 3_000_000}), limits={"frame_bytes": 200_000})
    await scene.run()
    assert scene.journal.lines == ["3000000"]


async def test_hanging_up_is_noticed() -> None:
    """A call that the agent gives up is given up outside as well."""
    gone = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first\n", "more_body": True})
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            gone.set()

    script = """
import os, time, urllib.request
answer = urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", b"{}")
answer.readline()
answer.close()
time.sleep(60)
"""
    scene = Scene(script=script, brief={"line": Line(app)})
    working = asyncio.create_task(scene.run())
    await gone.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert scene.journal.ends[0].interrupted
    assert scene.journal.ends[0].spent.milliseconds > 0


async def test_cut_while_its_work_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent whose time passes after its chamber ended, while what it left is read, is booked at what it cost."""
    reads = asyncio.Event()

    async def slow(work: Any, *args: Any) -> Any:
        if work is offer_of:
            reads.set()
            await asyncio.Event().wait()
        return await offload(work, *args)

    monkeypatch.setattr(proposer, "offload", slow)
    scene = Scene(script=EDIT)
    working = asyncio.create_task(scene.run())
    await reads.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert [kind for kind, _ in scene.journal.notes] == ["intended", "ended"]
    assert scene.journal.ends[0].interrupted
    assert scene.journal.ends[0].spent.milliseconds > 0


async def test_tune_and_submit() -> None:
    """`blastdoor tune` runs what is there against the cheaper target, `submit` hands it in with the agent's words."""
    tuned: list[str] = []

    async def tune(proposal: Any) -> Tuned:
        tuned.append(proposal.text)
        return Tuned(0.25, "scored", 3)

    script = (
        EDIT
        + """
import subprocess, time
print(subprocess.run(["blastdoor", "tune"], capture_output=True, text=True).stdout.strip())
subprocess.run(["blastdoor", "submit", "a larger number\\x1b[31m, because"])
time.sleep(60)
"""
    )
    scene = Scene(script=script, brief={"tune": tune})
    text = await scene.run()
    assert tuned == [text]
    assert scene.journal.lines[0] == "score 0.25; 3 left"
    assert scene.proposal.description == "a larger number\\x1b[31m, because"
    assert scene.journal.ends[0].ending == "submitted"
    held = [(it.kind, it.hold) for it in scene.heard if it.kind in (Kind.HELD, Kind.RELEASED)]
    assert held == [(Kind.HELD, Hold.TRIAL), (Kind.RELEASED, Hold.TRIAL)] * 2


async def test_what_is_refused_is_told() -> None:
    """A change that would not be taken is refused with its reason, and the agent goes on."""
    script = """
import subprocess
def submit():
    done = subprocess.run(["blastdoor", "submit"], capture_output=True, text=True)
    print(done.returncode, (done.stdout + done.stderr).strip())
submit()
open("other.py", "a").close()
import os
os.chmod("other.py", 0o644)
open("other.py", "w").write("x = 2\\n")
submit()
open("solve.py", "w").write("bad")
submit()
open("solve.py", "w").write("print(2)")
submit()
"""
    scene = Scene(script=script, brief={"refusal": lambda it: "it is bad" if "+bad" in it.text else None})
    await scene.run()
    assert scene.journal.lines[:3] == [
        "1 refused: the agent changed nothing that it may change",
        "1 refused: the agent changed nothing that it may change; it changed other.py, which it may not",
        "1 refused: it is bad",
    ]


async def test_only_editable_paths_are_taken() -> None:
    """Whatever else was changed, added or deleted is left out, counted and said."""
    script = (
        EDIT
        + """
import os
open("lib/new.py", "w").write("B = 2\\n")
os.remove("lib/a.py")
os.remove("other.py")
open("result.json", "w").write('{"score": 1e9}')
open("secret.txt", "w").write("mine")
"""
    )
    scene = Scene(script=script)
    changed = apply_text(TREE, await scene.run(), scene.task.policy())
    assert sorted(changed) == ["README", "lib/new.py", "other.py", "secret.txt", "solve.py"]
    assert changed["secret.txt"] == TREE["secret.txt"]
    assert scene.journal.ends[0].left_out == 3
    assert scene.journal.ends[0].why == "left out: other.py, result.json, secret.txt, which it may not change"


async def test_used_up_allowance() -> None:
    """An agent whose calls are refused pays for its attempt, and what it did until then is taken."""
    refused = ASK + "ask('hi')"
    assert "+print(2)" in await Scene(script=EDIT + refused, respond=lambda _: (403, {"type": "error"})).run()
    nothing = Scene(script="print('I scored 100')\n" + refused, respond=lambda _: (403, {"type": "error"}))
    with pytest.raises(Unanswered, match=r"changed nothing that it may change \(it exited with 1\)"):
        await nothing.run()


@pytest.mark.alone
async def test_time_is_over() -> None:
    """At its deadline the agent is ended, and what it did until then is its proposal."""
    scene = Scene(script=EDIT + "import time; time.sleep(600)", wall=6.0)
    assert "+print(2)" in await scene.run()
    assert scene.journal.ends[0].ending == "out of time"


async def test_unknown_program() -> None:
    """A command that is not there ends the attempt with one line, not with a trace."""
    scene = Scene(task=task(agent={"name": "mine", "command": ["no-such-agent"]}))
    scene.agent = agent_of(scene.task.agent)
    with pytest.raises(Unanswered, match="exited with 127"):
        await scene.run()
    assert scene.journal.lines == ["blastdoor: no-such-agent cannot be started: No such file or directory"]


async def test_a_failure_of_ours_is_raised() -> None:
    """What goes wrong in a tool of ours ends the agent, and is raised as it is."""

    async def tune(_: Any) -> Tuned:
        raise LookupError("ours")

    scene = Scene(script=EDIT + 'import subprocess; subprocess.run(["blastdoor", "tune"])', brief={"tune": tune})
    with pytest.raises(LookupError, match="ours"):
        await scene.run()
    assert len(scene.journal.ends) == 1


async def test_steering_reaches_the_next_question() -> None:
    """An instruction that comes while the agent works is in its next question, and stays at its place."""
    steering = ["in the brief already"]

    def respond(seen: dict[str, Any]) -> tuple[int, Any]:
        if len(seen["body"]["messages"]) == 1:
            steering.append("use less memory")
        return 200, {"text": "well"}

    script = (
        ASK
        + """
def talk(*texts):
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    ask("", messages=messages)
talk("one")
talk("one", "two", "three")
talk("one", "two", "three", "four", "five")
print(open("../BRIEF.md").read())
"""
        + EDIT
    )
    scene = Scene(script=script, respond=respond, brief={"steering": steering})
    await scene.run()
    questions = [[json.dumps(it["content"]) for it in seen["body"]["messages"]] for seen in scene.seen]
    assert questions[0] == ['"one"']
    assert "use less memory" in questions[1][2]
    assert "use less memory" in questions[2][2]
    assert "use less memory" not in questions[2][4]
    assert "in the brief already" not in "".join(questions[2])
    assert "- in the brief already" in scene.journal.lines


LEAVES = """
import os, subprocess
os.makedirs("lib/__pycache__"), os.makedirs(".aider.tags.cache.v4"), os.makedirs("node_modules/x")
for name in ("lib/__pycache__/a.pyc", ".aider.chat.history.md", ".aider.tags.cache.v4/cache.db", "node_modules/x/i.js"):
    open(name, "wb").write(b"x\\0" * 100)
def blastdoor(*words):
    done = subprocess.run(["blastdoor", *words], capture_output=True, text=True)
    print((done.stdout + done.stderr).strip())
"""
LEFT = "left out: .aider.chat.history.md, .aider.tags.cache.v4/cache.db, which tools leave behind"


@pytest.mark.parametrize("word", ["submit", ""], ids=["submitted", "at its end"])
async def test_what_its_tools_leave_behind(word: str) -> None:
    """However an agent hands in, histories and caches are no part of it, tuned or submitted; it is told."""
    tuned: list[str] = []

    async def tune(proposal: Any) -> Tuned:
        tuned.append(proposal.text)
        return Tuned(0.25, "scored", 3)

    script = LEAVES + EDIT + 'blastdoor("tune")\n' + (f'blastdoor("{word}")\n' if word else "")
    scene = Scene(task=task(editable=["**"]), script=script, brief={"tune": tune})
    text = await scene.run()
    assert tuned == [text]
    assert text.count("diff --git") == 1
    assert scene.proposal.description == "changed solve.py (2 lines)"
    assert scene.journal.lines[:2] == ["score 0.25; 3 left", LEFT]
    assert (scene.journal.ends[0].why, scene.journal.ends[0].left_out) == (LEFT, 2)


async def test_a_cache_that_was_delivered() -> None:
    """What was there before in such a folder is edited like any file; what `editable` names is taken."""
    script = """
import os
os.makedirs(".tox")
for name in ("node_modules/mine.js", "node_modules/new.js", ".tox/new.js"):
    open(name, "w").write("2\\n")
"""
    tree = Tree({**TREE, "node_modules/mine.js": File(b"1\n")})
    scene = Scene(task=task(editable=["**", ".tox/*.js"]), script=script, brief={"tree": tree})
    changed = apply_text(tree, await scene.run(), scene.task.policy())
    assert sorted(changed.keys() - TREE.keys()) == [".tox/new.js", "node_modules/mine.js"]
    assert changed["node_modules/mine.js"].data == b"2\n"
