"""A provider that charges, pretended: it keeps a register of what it rents out, and things can go wrong at each step.

The register is the provider's own memory. It may outlive the owner, as a provider does: then it is in a file.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from sandbox.backends.fake.backend import FakeBackend, FakeHold, FakeWorld, Program, new_name
from sandbox.errors import SandboxError
from sandbox.job import Job
from sandbox.live import LiveChamber
from sandbox.price import billed_clock
from sandbox.purse import Purse


class Step(StrEnum):
    """What an owner asks of its provider, before the effect and after it."""

    CREATE = "create"
    CREATED = "created"
    READY = "ready"
    END = "end"
    ENDED = "ended"


class Register(Protocol):
    """What the provider knows and charges for. No two have one `name`."""

    @property
    def name(self) -> str: ...

    def begin(self, name: str, owner: str) -> None: ...

    def end(self, name: str) -> None:
        """Harmless when it is over."""

    def running(self) -> Mapping[str, str]:
        """Names, each with its owner."""

    def lived(self, name: str) -> float | None:
        """Seconds that are charged for; None while it runs."""


@dataclass
class Charges:
    """A register in memory."""

    clock: Callable[[], float] = billed_clock
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    _since: dict[str, float] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)

    def begin(self, name: str, owner: str) -> None:
        self._since[name], self._owners[name] = self.clock(), owner

    def end(self, name: str) -> None:
        self._until.setdefault(name, self.clock())

    def running(self) -> Mapping[str, str]:
        return {name: owner for name, owner in self._owners.items() if name not in self._until}

    def lived(self, name: str) -> float | None:
        if name not in self._since:
            return 0.0
        return self._until[name] - self._since[name] if name in self._until else None

    @property
    def count(self) -> int:
        """How many were ever made."""
        return len(self._since)

    def seconds(self) -> float:
        """Charged so far, for all of them."""
        return sum(self._until.get(name, self.clock()) - since for name, since in self._since.items())


def _nothing(step: Step, name: str) -> None:
    del step, name


@dataclass
class Rent:
    """`fault` is told of each step and raises what goes wrong there. `standing_s` is how long one may stand at most."""

    usd_per_second: float
    register: Register = field(default_factory=Charges)
    opening_s: float = 0.0
    standing_s: float = 60.0
    fault: Callable[[Step, str], None] = _nothing


class RentedHold(FakeHold):
    """One that is charged for from its creation until the provider has confirmed its end."""

    def __init__(self, world: FakeWorld, owner: str, program: Program, name: str, rent: Rent) -> None:
        self.billed_since = billed_clock()
        self.usd_per_second = rent.usd_per_second
        self._rent = rent
        rent.register.begin(name, owner)
        super().__init__(world, owner, program, name)

    async def destroy(self) -> None:
        self._rent.fault(Step.END, self.name)
        await super().destroy()
        self._rent.fault(Step.ENDED, self.name)

    async def die(self) -> None:
        await super().die()
        self._rent.register.end(self.name)


@dataclass
class _Standing:
    chamber: LiveChamber
    hold: RentedHold
    since: float


@dataclass(kw_only=True)
class RentedFake(FakeBackend):
    """The fake at a price. What stands ready is made by `stand` and paid by the purse; without one, nothing stands."""

    rent: Rent
    purse: Purse | None = None
    is_over: Callable[[str], bool] | None = None  # whether an owner is gone; None: the world's own list says so
    _standing: list[_Standing] = field(default_factory=list)

    async def open(self, job: Job) -> LiveChamber:
        self.capabilities.admit(job)
        chamber, hold = self._taken() or await self._make(new_name(self.owner))
        hold.job = job
        chamber.serve(job)
        return chamber

    async def stand(self) -> bool:
        """Have one ready before it is asked for; False where nobody pays for it."""
        name, worst = new_name(self.owner), self.rent.usd_per_second * (self.rent.opening_s + self.rent.standing_s)
        if self.purse is None or not await self.purse.reserve(name, worst, self.rent.usd_per_second):
            return False
        since = billed_clock()
        try:
            chamber, hold = await self._make(name)
        except SandboxError as error:
            if not error.unended:
                self.purse.settle(name, error.usd)
            raise
        self._standing.append(_Standing(chamber, hold, since))
        return True

    async def stand_down(self) -> None:
        """End what stands. What cannot be ended is not settled: nobody knows yet what it costs."""
        while self._standing:
            one = self._standing.pop()
            await one.chamber.kill()
            if one.chamber.bill.final and self.purse:
                self.purse.settle(one.hold.name, one.chamber.bill.usd)

    async def reap(self) -> list[str]:
        self.world.check()
        is_over = self.is_over or (lambda owner: owner not in self.world.live_owners)
        dead = [name for name, owner in self.rent.register.running().items() if is_over(owner)]
        for name in dead:
            if hold := self.world.chambers.get(name):
                await hold.die()
            self.rent.register.end(name)
        return dead

    async def close(self) -> None:
        await self.stand_down()
        await super().close()

    @property
    def registry(self) -> str:
        return f"fake/{self.rent.register.name}"

    async def lifetimes(self, given_up: Mapping[str, float]) -> dict[str, float]:
        self.world.check()
        lived = {name: self.rent.register.lived(name) for name in given_up}
        return {name: seconds for name, seconds in lived.items() if seconds is not None}

    def _taken(self) -> tuple[LiveChamber, RentedHold] | None:
        if not self._standing or self.purse is None:
            return None
        one, now = self._standing.pop(), billed_clock()
        self.purse.settle(one.hold.name, (now - one.since) * self.rent.usd_per_second)
        one.hold.billed_since = now
        return one.chamber, one.hold

    async def _make(self, name: str) -> tuple[LiveChamber, RentedHold]:
        self.world.check()
        self.rent.fault(Step.CREATE, name)
        hold = RentedHold(self.world, self.owner, self.program, name, self.rent)
        chamber = LiveChamber(hold, self.deadlines)
        try:
            self.rent.fault(Step.CREATED, name)
            await asyncio.sleep(self.rent.opening_s)
            await chamber.greet()
            self.rent.fault(Step.READY, name)
        except BaseException as error:  # noqa: BLE001  it is raised again, with what it cost
            raise await chamber.give_up(error) from None
        return chamber, hold
