"""A provisioner of our own in SkyPilot's place: clusters, requests under way, a bill, and faults at any step.

A launch is a request first and a cluster later, as it is with SkyPilot: whoever looks in between sees only the request.
Every other one that is cancelled had begun already, and leaves a cluster: who does not look again misses it.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Protocol

from sandbox.backends.skypilot.provisioner import Ask, Landed, Wanted
from sandbox.errors import Lost, Unavailable

LOOKS_UNTIL_UP = 60  # longer than anybody waits: only who cancels it is rid of it
# What goes over the line to the place. All else SkyPilot's server says, which is on this machine.
OVER_THE_LINE = ("launch", "down", "submit", "send", "call", "reach")
DRAG_S = 10.0
BREAKS_S = 30.0  # as ssh does, when nothing comes


class Fault(Enum):
    """What becomes of one call."""

    BEFORE = auto()  # it fails, and nothing has happened
    AFTER = auto()  # it has happened, and the reply is lost
    KILLED = auto()  # the owner is killed at this step, before it happens
    KILLED_AFTER = auto()  # the owner is killed at this step, when it has happened


class Line:
    """From SkyPilot's server, and from us, to the place where machines are. Times are the event loop's."""

    def __init__(self) -> None:
        self._whole = asyncio.Event()
        self._whole.set()
        self._stalls = False
        self.takes_s = 0.0

    @property
    def is_whole(self) -> bool:
        return self._whole.is_set()

    def cut(self) -> None:
        self._whole.clear()

    def stall(self) -> None:
        self._stalls = True
        self._whole.clear()

    def drag(self) -> None:
        """Whatever goes over it takes long, each way."""
        self.takes_s = DRAG_S

    def heal(self) -> None:
        self._stalls, self.takes_s = False, 0.0
        self._whole.set()

    async def cross(self, what: str) -> None:
        await asyncio.sleep(self.takes_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BREAKS_S if self._stalls else 0):
                await self._whole.wait()
        if not self.is_whole:
            raise Unavailable(f"{what}: the line is down")


class Dead(BaseException):
    """The owner is no more: nothing that it still tries has any effect."""


class Ground(Protocol):
    """What is behind a cluster's name: somewhere commands run."""

    async def send(self, source: Path, target: str) -> None: ...

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]: ...

    async def submit(self, command: str) -> None: ...

    async def raze(self) -> None: ...


@dataclass
class Cluster:
    ground: Ground
    usd_per_hour: float
    since: float
    wanted: Wanted


@dataclass
class Request:
    name: str
    wanted: Wanted
    looks: int = LOOKS_UNTIL_UP


@dataclass
class Yard:
    """The provider that several owners share."""

    make: Callable[[str], Ground]
    usd_per_hour: float = 3600.0
    quoted: float | None = 3600.0
    answers: bool = True
    line: Line = field(default_factory=Line)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)
    bill: dict[str, float] = field(default_factory=dict)
    lived: dict[str, float] = field(default_factory=dict)
    launched: list[tuple[str, Wanted]] = field(default_factory=list)
    _begun: list[Request] = field(default_factory=list)
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)

    def cancel(self, id_: str) -> None:
        request = self.requests.pop(id_, None)
        if request and int(id_.rpartition("-")[2]) % 2 == 0:
            self._begun.append(request)

    def look(self) -> None:
        """Time passes at the provider: what was asked for comes up."""
        while self._begun:
            self._rise(self._begun.pop())
        for id_, request in list(self.requests.items()):
            request.looks -= 1
            if request.looks <= 0:
                self.up(id_)

    def ask(self, name: str, wanted: Wanted) -> str:
        id_ = f"request-{next(self._ids)}"
        self.requests[id_] = Request(name, wanted)
        self.launched.append((name, wanted))
        return id_

    def up(self, id_: str) -> None:
        self._rise(self.requests.pop(id_))

    def _rise(self, request: Request) -> None:
        self.clusters[request.name] = Cluster(
            self.make(request.name), self.usd_per_hour, time.monotonic(), request.wanted
        )

    async def down(self, name: str) -> None:
        cluster = self.clusters.pop(name, None)
        if cluster:
            await cluster.ground.raze()
            seconds = time.monotonic() - cluster.since
            self.lived[name] = self.lived.get(name, 0.0) + seconds
            self.bill[name] = self.bill.get(name, 0.0) + seconds * cluster.usd_per_hour / 3600


class YardProvisioner:
    """Implements `Provisioner` for one owner. `fate_of` decides about each call, by the name of its method."""

    def __init__(self, yard: Yard, fate: Callable[[str], Fault | None] = lambda _: None) -> None:
        self.yard = yard
        self.fate_of = fate
        self.dead = False

    async def check(self, place: str) -> None:
        async with self._step("check"):
            pass

    async def quote(self, place: str, ask: Ask) -> float | None:
        async with self._step("quote"):
            return self.yard.quoted

    async def launch(self, name: str, place: str, wanted: Wanted, timeout: float) -> Landed:
        async with self._step("launch") as fault:
            id_ = self.yard.ask(name, wanted)
            # Sometimes the reply is lost while the launch is under way, sometimes when the cluster is up.
            if fault and sum(map(ord, name)) % 2:
                await self._finish("launch", fault)
            await asyncio.sleep(0.01)
            if id_ not in self.yard.requests:
                raise Unavailable("launch: somebody cancelled the request")
            self.yard.up(id_)
        return Landed(self.yard.clusters[name].usd_per_hour, "a pretended machine")

    async def reach(self, place: str) -> None:
        async with self._step("reach"):
            pass

    async def clusters(self) -> list[str]:
        async with self._step("clusters"):
            found = list(self.yard.clusters)
            self.yard.look()
        return found

    async def lived(self) -> dict[str, float | None]:
        async with self._step("lived"):
            return {**dict.fromkeys(self.yard.clusters), **self.yard.lived}

    async def requests(self) -> dict[str, str]:
        async with self._step("requests"):
            return {id_: request.name for id_, request in self.yard.requests.items()}

    async def cancel_requests(self, ids: list[str]) -> None:
        async with self._step("cancel_requests"):
            for id_ in ids:
                self.yard.cancel(id_)

    async def down(self, name: str) -> None:
        async with self._step("down"):
            await self.yard.down(name)

    async def submit(self, name: str, command: str) -> None:
        async with self._step("submit"):
            await self._ground(name).submit(command)

    async def send(self, name: str, source: Path, target: str, timeout: float) -> None:
        async with self._step("send"):
            await self._ground(name).send(source, target)

    async def call(self, name: str, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        async with self._step("call"):
            return await self._ground(name).call(command, cap, timeout)

    def _ground(self, name: str) -> Ground:
        if name not in self.yard.clusters:
            raise Lost(f"the cluster {name} is gone")
        return self.yard.clusters[name].ground

    @contextlib.asynccontextmanager
    async def _step(self, method: str) -> AsyncIterator[Fault | None]:
        await asyncio.sleep(0)
        if self.dead:
            raise Dead
        if not self.yard.answers:
            raise Unavailable(f"{method}: the yard was told not to answer")
        fault = self.fate_of(method)
        if method in OVER_THE_LINE:
            await self.yard.line.cross(method)
        if fault is Fault.BEFORE:
            raise Unavailable(f"{method}: failed on purpose")
        if fault is Fault.KILLED:
            self._die()
        yield fault
        await self._finish(method, fault)

    async def _finish(self, method: str, fault: Fault | None) -> None:
        if method in OVER_THE_LINE and method != "reach":  # which is no more than a knock
            await self.yard.line.cross(method)
        if fault is Fault.AFTER:
            raise Unavailable(f"{method}: the reply was lost on purpose")
        if fault is Fault.KILLED_AFTER:
            self._die()

    def _die(self) -> None:
        self.dead = True
        raise Dead
