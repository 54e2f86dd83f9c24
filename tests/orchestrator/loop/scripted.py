"""A campaign on the fake backend in which every part does as it is told.

A candidate does what its parameters say: `value` is its score, `do` how its trial goes, `judge` what the judge makes of
its answer. The script holds what goes wrong outside of it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.domain.records import Role
from orchestrator.loop.book import utc_now
from orchestrator.loop.campaign import Finished
from orchestrator.loop.jobs import Image
from orchestrator.proposers import Brief, Proposer
from orchestrator.task import ImageSpec
from orchestrator.wiring import Flags, How, Site, open_campaign
from orchestrator.wiring.opening import Opened
from sandbox import Bundle, Capabilities, Input, Job, Limits, Listener, Outcome, Talk
from sandbox.backends.fake import FakeBackend, FakeWorld, Guest
from sandbox.live import LiveChamber
from sandbox.wire.demux import Stream

Point = Mapping[str, Value]
Act = Callable[[Brief], Awaitable[Sequence[Proposal]]]

TASK = """name = "scripted"
statement = "Do as you are told."
editable = ["params.json", "notes.txt"]

[trial]
command = ["trial"]
{trial}

[judge]
command = ["judge"]
limits = {{wall = "5s", grace = "1s"}}

[parameters]
file = "params.json"
[parameters.space]
value = {{type = "int", low = 1, high = {high}}}

{more}
"""
LIMITS = '[limits]\nwall = "5s"\ngrace = "1s"\n'
TUNE = '[tune]\ntrials = 3\ncommand = ["tune"]\njudge = ["judge", "--tune"]\n'
GUARD = '[[guards]]\nname = "sound"\ncommand = ["guard"]\nlimits = {wall = "5s"}\n'
CPU = '[[metrics]]\nname = "score"\nbinds = ["cpu"]\n'


def write_task(folder: Path, *more: str, trial: str = "", high: int = 12, limits: str = LIMITS) -> Path:
    """A task folder; the baseline's value is 0."""
    text = TASK.format(trial=trial, high=high, more="\n".join((limits, *more)))
    files = {
        "blastdoor.toml": text,
        "workspace/params.json": json.dumps({"value": 0}, indent=2) + "\n",
        "workspace/notes.txt": "nothing\n",
        "judge/judge.txt": "one that is scripted\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@dataclass
class Script:
    """What goes wrong outside the candidate, and what was seen of it all."""

    world: FakeWorld = field(default_factory=FakeWorld)
    cpu: str = "pretended"
    judge_is_broken: bool = False
    control_fails: bool = False
    guard_cuts: bool = False
    stop_after: float | None = None  # seconds; then chambers are asked to end early
    unsound: tuple[int, ...] = ()  # values that the guard does not let pass
    on_open: Callable[[Job], Awaitable[None]] | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    commands: list[str] = field(default_factory=list)

    async def program(self, guest: Guest) -> int:
        command = guest.job.command[0]
        self.commands.append("build" if guest.building else command)
        match command:
            case "true":
                return int(self.control_fails)
            case "judge":
                return await self._judge(guest)
            case "guard" if self.guard_cuts:
                self.world.cut()
                await asyncio.sleep(60)
            case "guard":
                return int(_params(guest)["value"] in self.unsound)
        return await self._trial(guest)

    async def _trial(self, guest: Guest) -> int:
        params = _params(guest)
        do = params.get("do", "answer")
        if guest.building:
            return int(do == "build failed")
        guest.log(f"value {params['value']}\n".encode())
        if do == "answer":
            await asyncio.sleep(params.get("takes", 0.0))
            guest.out["answer.json"] = json.dumps(params).encode()
            return 0
        return await self._misbehave(guest, do)

    async def _misbehave(self, guest: Guest, do: str) -> int:
        match do:
            case "failed":
                return 3
            case "out of memory":
                guest.allocate(2**50)
            case "too slow":
                await asyncio.sleep(60)
            case "wait":
                stop = asyncio.create_task(guest.stopped.wait())
                await asyncio.wait({stop, asyncio.create_task(self.gate.wait())}, return_when=asyncio.FIRST_COMPLETED)
                guest.out["answer.json"] = json.dumps(_params(guest)).encode()
            case "tampered":
                guest._link.say(Stream.STDOUT, b"I am PID 1\n")
                await asyncio.sleep(60)
            case "flood":
                guest.log(b"x" * 200_000)
            case "bad name":
                guest.out["../escape"] = b"x"
            case "break off":
                guest._link.break_off()
                await asyncio.sleep(60)
            case "cut":
                self.world.cut()
                await asyncio.sleep(60)
        return 0

    async def _judge(self, guest: Guest) -> int:
        outputs = guest.files.get("outputs/answer.json")
        answer = json.loads(outputs or guest.files["candidate/params.json"])
        tuning = "--tune" in guest.job.command
        does = "crash" if self.judge_is_broken else answer.get("judge", "score")
        score = answer.get("tuned", answer["value"]) if tuning else answer["value"]
        match does:
            case "crash":
                return 1
            case "silent":
                return 0
            case "nan":
                guest.out["result.json"] = b'{"score": NaN}'
            case "no metric":
                guest.out["result.json"] = b'{"valid": true}'
            case "no solution":
                guest.out["result.json"] = b'{"valid": false, "score": null}'
            case "break off":
                guest._link.break_off()
                await asyncio.sleep(60)
            case "cut":
                self.world.cut()
                await asyncio.sleep(60)
            case "wait":
                await self.gate.wait()
                guest.out["result.json"] = json.dumps({"score": score}).encode()
            case _:
                guest.out["result.json"] = json.dumps({"score": score}).encode()
        return 0


class ScriptedChamber:
    """A fake chamber on the hardware that the script names."""

    def __init__(self, inside: LiveChamber, script: Script) -> None:
        self._inside = inside
        self._cpu = script.cpu
        self._stop_after = script.stop_after

    @property
    def facts(self) -> Mapping[str, str]:
        return {**self._inside.facts, "cpu": self._cpu}

    async def run(self, bundle: Bundle, *, listener: Listener | None = None, talk: Talk | None = None) -> Outcome:
        running = asyncio.create_task(self._inside.run(bundle, listener=listener, talk=talk))
        try:
            if self._stop_after is not None:
                await asyncio.wait({running}, timeout=self._stop_after)
                await self.stop()
            return replace(await running, facts=self.facts)
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def stop(self) -> None:
        await self._inside.stop()

    async def kill(self) -> None:
        await self._inside.kill()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inside.__aexit__(kind, error, trace)


class ScriptedBackend:
    """The fake, with the script's word on every chamber that is opened."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._fake = FakeBackend(script.program, script.world)
        self.capabilities: Capabilities = self._fake.capabilities

    async def open(self, job: Job) -> ScriptedChamber:
        if self._script.on_open:
            await self._script.on_open(job)
        return ScriptedChamber(await self._fake.open(job), self._script)

    async def reap(self) -> list[str]:
        return await self._fake.reap()

    async def close(self) -> None:
        await self._fake.close()


class Proposing:
    """Offers what it was given, one entry an attempt: a point, several points, or an act of its own."""

    serial = False

    def __init__(self, *entries: Point | list[Point] | Act, branching: bool = False) -> None:
        self.entries = entries
        self.branching = branching
        self.asked: list[Brief] = []

    def exhausted(self, number: int) -> str | None:
        return None if number <= len(self.entries) else "all is proposed"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        self.asked.append(brief)
        entry = self.entries[brief.number - 1]
        if callable(entry):
            return await entry(brief)
        return [proposal(point) for point in (entry if isinstance(entry, list) else [entry])]


def proposal(point: Point) -> Proposal:
    return Proposal(operator="scripted", description=json.dumps(dict(point))[:400], params=dict(point))


class Clock:
    """The real one, moved forward: whoever waits for an hour need not take one."""

    def __init__(self) -> None:
        self._ahead = timedelta()
        self.waits: list[float] = []

    def __call__(self) -> datetime:
        return utc_now() + self._ahead

    def skip(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)

    def skip_back_off(self, event: e.Event, at: str) -> None:
        if isinstance(event, e.AttemptRequeued) and event.not_before:
            wait = (datetime.fromisoformat(event.not_before) - datetime.fromisoformat(at)).total_seconds()
            self.waits.append(wait)
            self.skip(wait)


@dataclass(frozen=True)
class Scripted(Opened):
    """An open campaign, with what it is driven by."""

    script: Script
    clock: Clock
    events: list[e.Event] = field(default_factory=list)

    async def run(self, seconds: float = 30.0) -> Finished:
        async with asyncio.timeout(seconds):
            return await self.campaign.run()

    def when(self, kind: type[e.Event], act: Callable[[Any], None]) -> None:
        """Act whenever such an event is on record."""
        self.bench.book.observers.append(lambda event, _: act(event) if isinstance(event, kind) else None)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a kind in this session."""
        return [event for event in self.events if isinstance(event, kind)]


def make_site(script: Script, *, usd_per_second: float = 0.0, ceiling: int = 1) -> Site:
    async def bake(_: ImageSpec) -> Image:
        return Image("blastdoor-trial:latest", "d")

    def add_input(name: str, _: Path) -> Input:
        return Input(name=name, digest="0" * 64)

    def price(_: Limits) -> float:
        return usd_per_second

    return Site("fake", ScriptedBackend(script), bake, add_input, price, lambda _: ceiling)


@asynccontextmanager
async def scripted(
    folder: Path,
    script: Script | None = None,
    *proposed: Point | list[Point] | Act,
    how: How = How.START,
    start: str | None = None,
    branching: bool = False,
    site: Site | None = None,
    **flags: Any,
) -> AsyncIterator[Scripted]:
    """Open a campaign; what is proposed comes from the list, or from the task's own proposer where there is none."""
    script = script or Script()
    site = site or make_site(script)
    given = Flags(**{"rate": 1e6, "width": 1, **flags} if how is not How.RESUME else flags)
    try:
        async with open_campaign(folder, site, how=how, flags=given, start=start) as opened:
            if proposed:
                proposer: Proposer = Proposing(*proposed, branching=branching)
                opened.bench.proposers[Role.SEARCH] = proposer
            clock = Clock()
            opened.bench.book._clock = clock
            session = Scripted(**vars(opened), script=script, clock=clock)
            opened.bench.book.observers.append(lambda event, _: session.events.append(event))
            opened.bench.book.observers.append(clock.skip_back_off)
            yield session
    finally:
        await site.backend.close()
    assert not script.world.chambers, "a chamber is left"


def _params(guest: Guest) -> dict[str, Any]:
    params: dict[str, Any] = json.loads(guest.files["params.json"])
    return params
