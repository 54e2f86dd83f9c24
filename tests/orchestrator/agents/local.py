"""A chamber in which the genuine forwarder runs as a process of this machine, and all that an agent's attempt needs."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.agents.presets import ROOT, Agent, Start, agent_of
from orchestrator.agents.proposer import AgentProposer, End
from orchestrator.change import Tree
from orchestrator.domain.model_use import ModelRole
from orchestrator.door import Door
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.line import Answer, App, Refusal
from orchestrator.proposers.base import Brief
from orchestrator.tariff import Tariff
from orchestrator.task import Task
from orchestrator.watch.signals import Signal
from sandbox import Job, Limits, Report
from sandbox.backends.fake.backend import FakeBackend, Guest, Program

TASK = {
    "name": "adding",
    "statement": "Return a larger number.",
    "editable": ["solve.py", "lib/*.py"],
    "hidden": ["secret.txt"],
    "trial": {"command": ["python3", "solve.py"]},
    "judge": {"command": ["python3", "judge.py"]},
}
TREE = Tree.of(
    {
        "solve.py": "print(1)\n",
        "lib/a.py": "A = 1\n",
        "other.py": "x = 1\n",
        "secret.txt": "hush\n",
        "README": "hello\n",
    }
)


def task(**more: Any) -> Task:
    return Task.model_validate({**TASK, **more})


async def real_guest(guest: Guest) -> int:
    """Unpacks the bundle into a folder and runs its command there, frames and all."""
    with tempfile.TemporaryDirectory() as root:
        _unpack(guest.files, Path(root))
        command = [word.replace(ROOT, root) for word in guest.job.command]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command[1:],
            cwd=root,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            await _carry(guest, process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
    return 0


def _unpack(files: Mapping[str, bytes], root: Path) -> None:
    """What knows of places in a chamber is told those of this machine."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        knows = name.endswith((".json", ".md"))
        path.write_bytes(data.replace(ROOT.encode(), str(root).encode()) if knows else data)
        path.chmod(0o755 if name.endswith("/blastdoor") else 0o644)


async def _carry(guest: Guest, process: asyncio.subprocess.Process) -> None:
    if not (process.stdin and process.stdout and process.stderr):
        raise AssertionError("a process without its streams")
    log = asyncio.create_task(_log(guest, process.stderr))
    try:
        while request := await guest.request():
            nonce, payload = request
            process.stdin.write(len(payload).to_bytes(4, "big") + nonce + payload)
            header = await process.stdout.readexactly(12)
            guest.reply(header[4:], await process.stdout.readexactly(int.from_bytes(header[:4], "big")))
    finally:
        log.cancel()


async def _log(guest: Guest, stream: asyncio.StreamReader) -> None:
    while line := await stream.readline():
        guest.log(line)


@dataclass
class Line:
    """A line whose app is the test's own."""

    app: App
    token: str = "its-own-token"
    models: Sequence[str] = ("claude-sonnet-5-5",)
    unanswered: bool = False
    refusal: Refusal | None = None
    barred: Refusal | None = None

    async def ask(self, **_: object) -> Answer:
        raise AssertionError("an agent asks by itself")


@dataclass
class Journal:
    """Remembers what was written into it."""

    notes: list[tuple[str, str]] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def intended(self, node: str) -> None:
        self.notes.append(("intended", node))

    def ended(self, node: str, end: End) -> None:
        self.notes.append(("ended", node))
        self.ends.append(end)

    @contextmanager
    def listening(self, node: str) -> Iterator["Journal"]:
        del node
        yield self

    def line(self, text: str) -> None:
        self.lines.append(text)

    def report(self, report: Report) -> None:
        raise AssertionError(f"nobody waits for {report}")


def app_of(respond: Callable[[dict[str, Any]], tuple[int, Any]], seen: list[dict[str, Any]]) -> App:
    """An app that answers each request with a status and a JSON value, and keeps what was asked."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen.append({"path": scope["path"], "headers": headers, "body": json.loads(body) if body else None})
        status, value = respond(seen[-1])
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": json.dumps(value).encode(), "more_body": False})

    return app


@dataclass
class Scene:
    """An agent at work on a brief; what was heard and written of it."""

    program: Program = real_guest
    script: str = ""
    respond: Callable[[dict[str, Any]], tuple[int, Any]] = lambda _: (200, {"text": "well"})
    task: Task = field(default_factory=lambda: task(agent={"name": "mine", "command": ["python3", "-c", ""]}))
    agent: Agent | None = None
    brief: dict[str, Any] = field(default_factory=dict)
    wall: float = 30.0
    limits: dict[str, Any] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    heard: list[Signal] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)

    def proposer(self) -> AgentProposer:
        command = (sys.executable, "-c", self.script)
        agent = self.agent or replace(agent_of(self.task.agent), start=lambda _: Start(command))
        limits = Limits(wall=self.wall, memory=2**30, **self.limits)
        with_limits = self.task.model_copy(update={"agent": self.task.agent.model_copy(update={"limits": limits})})
        control = Job(command=("true",))
        return AgentProposer(
            task=with_limits,
            policy=with_limits.policy(),
            metrics=[spec.metric() for spec in with_limits.metrics],
            agent=agent,
            door=Door(FakeBackend(self.program), control, Tariff(lambda _: 0.001, 10.0, 10.0)),
            journal=self.journal,
            allowance=Allowance(ModelRole.USER, ("claude-sonnet-5-5",), 500_000, tokens=100_000),
        )

    def asked(self) -> Brief:
        given = {
            "node": "1.1",
            "parent": "1",
            "number": 1,
            "seed": 0,
            "tree": TREE,
            "line": Line(app_of(self.respond, self.seen)),
            "heard": self.heard.append,
            "deadline_s": self.wall,
        }
        return Brief(**{**given, **self.brief})

    async def run(self) -> str:
        """The text of what it proposed."""
        proposals = await self.proposer().propose(self.asked())
        self.proposal = proposals[0]
        return self.proposal.text or ""
