"""A campaign on the fake backend in which every part does as it is told: task, proposer, clock and session."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from orchestrator.budget import Account, Accounts
from orchestrator.change import Reason
from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.domain.records import Node, Role, Spent
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Aim
from orchestrator.door import Door
from orchestrator.loop import campaign
from orchestrator.loop.campaign import Finished
from orchestrator.loop.jobs import Image
from orchestrator.loop.workbench import Workbench
from orchestrator.proposers import Brief, Proposer
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Choice, ImageSpec, takes
from orchestrator.units import utc_now
from orchestrator.wiring.beginning import How
from orchestrator.wiring.opening import Opened, open_campaign
from orchestrator.wiring.site import Site
from sandbox import Input, Job, Limits
from tests.orchestrator.loop.script import HELD, Script, ScriptedBackend
from tests.virtual_time import VirtualTime

Point = Mapping[str, Value]
T = TypeVar("T")
Act = Callable[[Brief], Awaitable[Sequence[Proposal]]]

# Far more than anything takes here: a test whose trials shall time out says so.
WALL_S = 60
TASK = """name = "scripted"
statement = "Do as you are told."
editable = ["params.json", "notes.txt"]

[trial]
command = ["trial"]
{trial}

[judge]
command = ["judge"]
limits = {{wall = "{wall}s", grace = "1s"}}

[parameters]
file = "params.json"
[parameters.space]
value = {{type = "int", low = {low}, high = {high}}}

{more}
"""
LIMITS = f'[limits]\nwall = "{WALL_S}s"\ngrace = "1s"\n'
TUNE = '[tune]\ntrials = 3\ncommand = ["tune"]\njudge = ["judge", "--tune"]\n'
GUARD = f'[[guards]]\nname = "sound"\ncommand = ["guard"]\nlimits = {{wall = "{WALL_S}s"}}\n'
HELDOUT = """[inputs]
data = "dev/data.txt"

[heldout]
step = 1
judge = ["judge", "--heldout"]
inputs = {data = "held/data.txt"}
"""
CPU = '[[metrics]]\nname = "score"\nbinds = ["cpu"]\n'


def write_task(folder: Path, *more: str, trial: str = "", low: int = 1, high: int = 12, limits: str = LIMITS) -> Path:
    """A task folder; the baseline's value is 0."""
    text = TASK.format(trial=trial, low=low, high=high, wall=WALL_S, more="\n".join((limits, *more)))
    files = {
        "blastdoor.toml": text,
        "workspace/params.json": json.dumps({"value": 0}, indent=2) + "\n",
        "workspace/notes.txt": "nothing\n",
        "judge/judge.txt": "one that is scripted\n",
        "dev/data.txt": "what is developed on\n",
        "held/data.txt": "what is held out\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


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


def written(point: Point) -> Act:
    """The whole file with the parameters: it may hold more than the space has."""

    async def act(_: Brief) -> Sequence[Proposal]:
        text = f"params.json\n```json\n{json.dumps(point, indent=2, sort_keys=True)}\n```\n"
        return [Proposal(operator="write", description="params.json", text=text)]

    return act


class Clock:
    """The real one, moved forward: a wait of an hour takes none.

    It stands past all that an earlier session put off, since that one's was moved forward, too.
    """

    def __init__(self, put_off: Iterable[str] = ()) -> None:
        latest = max((datetime.fromisoformat(it) for it in put_off if it), default=utc_now())
        self._ahead = max(timedelta(), latest - utc_now())
        self.waits: list[float] = []

    def __call__(self) -> datetime:
        return utc_now() + self._ahead

    def skip(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)

    def seconds(self) -> float:
        return self().timestamp()

    def skip_wait(self, event: e.Event, at: str) -> None:
        if isinstance(event, e.BreakerOpened):
            self.skip(event.wait_s)
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
    stamps: list[str] = field(default_factory=list)

    ends: list[Finished] = field(default_factory=list)

    def hear(self, event: e.Event, at: str) -> None:
        self.events.append(event)
        self.stamps.append(at)

    async def run(self, seconds: float = 240.0) -> Finished:
        """The bound is for a campaign that hangs: nothing depends on how fast the machine is."""
        async with asyncio.timeout(seconds):
            self.ends.append(await self.campaign.run())
        return self.ends[-1]

    @property
    def reason(self) -> str:
        """Why it ended."""
        return self.ends[-1].reason

    @property
    def state(self) -> State:
        return self.bench.state

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.bench.state.nodes

    @property
    def accounts(self) -> Accounts:
        return self.bench.book.accounts

    @property
    def champion(self) -> str:
        """Its name."""
        found = self.bench.state.champion()
        assert found
        return found.id

    def score(self, name: str) -> float:
        verdict = self.bench.state.nodes[name].verdict
        assert verdict
        return verdict.metrics["score"]

    def when(self, kind: type[e.Event], act: Callable[[Any], object], *, on_disk: bool = False) -> None:
        """Act whenever such an event happens, before anything else does; or when it is on disk, which is all that a
        crash leaves.
        """

        def observe(event: e.Event, _: str) -> None:
            if isinstance(event, kind):
                act(event)

        (self.bench.book.observers if on_disk else self.bench.book.listeners).append(observe)

    def stop_at(self, kind: type[e.Event], number: int) -> None:
        """End the session, as Ctrl-C does, at the so-manieth event of a kind."""
        left = number

        def act(_: e.Event) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.campaign.stop("Ctrl-C")

        self.when(kind, act)

    @property
    def charged(self) -> int:
        """How many attempts are used up."""
        return self.bench.book.accounts.used(Account.ATTEMPTS)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a kind in this session."""
        return [event for event in self.events if isinstance(event, kind)]


def make_site(script: Script, *, usd_per_second: float = 0.0, ceiling: int = 1) -> Site:
    async def bake(_: ImageSpec) -> Image:
        return Image("blastdoor-trial:latest", "d")

    def add_input(name: str, path: Path) -> Input:
        return Input(name=name, digest=HELD if path.parent.name == "held" else "0" * 64)

    def price(_: Limits) -> float:
        return usd_per_second

    return Site("fake", ScriptedBackend(script), bake, add_input, price, lambda _: ceiling)


def worst_of(door: Door, job: Job) -> Spent:
    """What is to be reserved for one run of a job."""
    return door.worst_within(job.limits, builds=bool(job.build))


def take_words(bench: Workbench, proposed: Sequence[Point | list[Point] | Act]) -> None:
    """A point tells the script by keys of its own what is to happen, so the space has those for this session."""
    points = [point for it in proposed if not callable(it) for point in (it if isinstance(it, list) else [it])]
    said: dict[str, dict[str, Value]] = {}
    for name, value in (pair for point in points for pair in point.items()):
        said.setdefault(name, {})[json.dumps(value)] = value
    parameters = bench.task.parameters
    if parameters is None:
        return
    words = {
        name: Choice(values=tuple(values.values()))
        for name, values in said.items()
        if name not in parameters.space or not all(takes(parameters.space[name], it) for it in values.values())
    }
    wider = parameters.model_copy(update={"space": {**parameters.space, **words}})
    object.__setattr__(bench, "task", bench.task.model_copy(update={"parameters": wider}))


@asynccontextmanager
async def scripted(
    folder: Path,
    script: Script | None = None,
    *proposed: Point | list[Point] | Act,
    how: How = How.START,
    start: str | None = None,
    branching: bool = False,
    site: Site | None = None,
    settings: Settings | None = None,
    aim: Aim = Aim.BETTER,
    instance: Proposer | None = None,
    words: Sequence[Point] = (),
    outside: bool = False,
    **flags: Any,
) -> AsyncIterator[Scripted]:
    """Open a campaign; what is proposed comes from the list, or from the task's own proposer where there is none.
    `words` are points that acts propose and the task's space does not have; `outside`: some are refused for that.
    """
    script = script or Script()
    site = site or make_site(script)
    given = Flags(**{"rate": 1e6, "width": 1, **flags} if how is not How.RESUME else flags)
    try:
        async with open_campaign(
            folder, site, how=how, flags=given, start=start, settings=settings, aim=aim, proposer=instance
        ) as opened:
            if proposed:
                proposer: Proposer = Proposing(*proposed, branching=branching)
                opened.bench.proposers[Role.SEARCH] = proposer
                take_words(opened.bench, [*proposed, *words])
            clock = Clock(node.not_before for node in opened.bench.state.nodes.values())
            opened.bench.book.clock = clock
            opened.bench.breaker.clock = clock.seconds
            session = Scripted(**vars(opened), script=script, clock=clock)
            opened.bench.book.listeners.append(session.hear)
            opened.bench.book.listeners.append(clock.skip_wait)
            yield session
            strays = [it.refused for it in session.of(e.Proposed) if it.refused and Reason.NO_POINT in it.refused]
            assert outside or not strays, f"the test proposes what the space does not have: {strays[0]}"
    finally:
        await site.backend.close()
    assert not script.world.chambers, "a chamber is left"


async def ran(
    folder: Path,
    script: Script | None = None,
    *proposed: Point | list[Point] | Act,
    how: How = How.START,
    stop: tuple[type[e.Event], int] | None = None,
    **flags: Any,
) -> Scripted:
    """A whole session, over; or stopped at the so-manieth event of a kind."""
    async with scripted(folder, script, *proposed, how=how, **flags) as session:
        if stop:
            session.stop_at(*stop)
        await session.run()
    return session


class Virtual:
    """Runs one session after the other, each in a time of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._monkeypatch.context() as patched:
            patched.setattr(campaign, "POLL_S", 0.2)
            return VirtualTime(patched).run(work)
