"""Sandboxes made ahead of need: who pays for their waiting, and how long that can be."""

import asyncio
import time

import pytest
import pytest_asyncio
from grpclib import Status

from sandbox.backends.modal.backend import ModalBackend
from sandbox.backends.modal.standing import Standing
from sandbox.bundle import Bundle
from sandbox.config import ModalConfig
from sandbox.errors import Unavailable
from sandbox.job import Ending, Job, Limits
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import until
from tests.sandbox.modal.life import Connect

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]

JOB = Job(command=("sh", "-c", "echo well"), limits=Limits(wall=30, memory="64MiB"))
LONG = JOB.model_copy(update={"limits": Limits(wall=6 * 3600, memory="64MiB")})
IDLE_S = 8.0


class Money:
    """A purse that remembers. `room` is how many more it pays for."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.reserved: dict[str, float] = {}
        self.settled: dict[str, float] = {}

    async def reserve(self, name: str, worst_usd: float, usd_per_second: float | None = None) -> bool:
        if self.room <= 0:
            return False
        self.room -= 1
        self.reserved[name] = worst_usd
        return True

    def settle(self, name: str, usd: float, *, seen: bool = True) -> None:
        assert name not in self.settled, "paid twice"
        self.settled[name] = usd


@pytest.fixture
def warm(config: ModalConfig) -> ModalConfig:
    return config.model_copy(update={"warm": 1, "warm_idle": IDLE_S})


@pytest_asyncio.fixture
async def warmed(warm: ModalConfig, connected: Connect) -> ModalBackend:
    return await connected(warm)


class Dying:
    """A waiting chamber whose provider takes its time to end it."""

    broken = False

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        self.ended = asyncio.Event()

    async def kill(self) -> None:
        self.ending.set()
        await self.ended.wait()


async def serve(backend: ModalBackend) -> tuple[str, float]:
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(Bundle({}))
    assert outcome.ending is Ending.COMPLETED
    return chamber.name, outcome.usage.usd


async def one_ready(backend: ModalBackend) -> bool:
    return backend.warm_ready == 1


@pytest.mark.parametrize("purse", [None, 0])
async def test_nothing_stands_that_nobody_pays_for(
    warmed: ModalBackend, modal_emulator: ModalEmulator, purse: int | None
) -> None:
    """Without a purse, or with an empty one, trials go on with sandboxes of their own."""
    warmed.purse = None if purse is None else Money(room=purse)
    await serve(warmed)
    await asyncio.sleep(0.2)
    await serve(warmed)
    assert len(modal_emulator.sandboxes()) == 2
    assert warmed.warm_ready == 0


async def test_waiting_is_the_purses_and_serving_the_trials(
    warmed: ModalBackend, warm: ModalConfig, modal_emulator: ModalEmulator
) -> None:
    """A sandbox that was taken is settled at that moment for what it waited; the trial pays from there."""
    warmed.purse = purse = Money()
    rate, began = warm.rates.per_second(JOB.limits), time.monotonic()
    cold, _ = await serve(warmed)
    assert cold not in purse.reserved
    await until(lambda: one_ready(warmed))
    taken, usd = await serve(warmed)
    bill = next(one for one in modal_emulator.sandboxes() if one["name"] == taken)
    assert bill["seconds"] * rate <= purse.settled[taken] + usd <= (time.monotonic() - began) * rate
    await warmed.close()
    assert purse.settled.keys() == purse.reserved.keys()
    assert all(purse.settled[name] <= purse.reserved[name] for name in purse.settled)
    assert modal_emulator.running() == []


async def test_waiting_is_capped(warmed: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """One that nobody takes is ended when its time is over, and paid for once."""
    warmed.purse = purse = Money(room=1)
    await serve(warmed)
    await until(lambda: one_ready(warmed))
    (name,) = purse.reserved

    async def paid() -> bool:
        return name in purse.settled

    await until(paid, IDLE_S + 120)
    ended = next(one for one in modal_emulator.sandboxes() if one["name"] == name)
    assert ended["ended_at"] is not None
    assert 0 < purse.settled[name] <= purse.reserved[name]


async def test_what_stands_reserves_all_that_it_can_live(
    config: ModalConfig, connected: Connect, modal_emulator: ModalEmulator
) -> None:
    """Owner and warden can die together (power): then only the lifetime ends it, and the reserve covers that (T75)."""
    backend = await connected(config.model_copy(update={"warm": 1}))
    backend.purse = purse = Money(room=1)
    async with await backend.open(LONG):
        pass
    await until(lambda: one_ready(backend))
    (name,) = purse.reserved
    stands = next(one for one in modal_emulator.sandboxes() if one["name"] == name)
    assert purse.reserved[name] >= stands["timeout"] * config.rates.per_second(LONG.limits)


async def test_one_that_modal_refuses_is_paid_with_nothing(warmed: ModalBackend, modal_emulator: ModalEmulator) -> None:
    """A quota leaves no hold behind, though the name is looked for a while longer."""
    warmed.purse = purse = Money(room=1)
    modal_emulator.fail("SandboxCreateV2", status=Status.RESOURCE_EXHAUSTED, times=-1)

    async def paid() -> bool:
        return bool(purse.settled)

    with pytest.raises(Unavailable, match="quota"):
        await warmed.open(JOB)
    await until(paid)
    assert list(purse.settled.values()) == [0.0]
    assert modal_emulator.sandboxes() == []


async def test_one_that_is_being_ended_is_not_handed_out() -> None:
    """Who took it would get a chamber that was ordered to die, and a trial that ends as killed: a free ending."""
    capped, killed = Dying(), Dying()
    one, other = Standing(capped, None, 0.01), Standing(killed, None)  # type: ignore[arg-type]
    await capped.ending.wait()
    killing = asyncio.create_task(other.kill())
    await killed.ending.wait()
    assert (one.broken, other.broken) == (True, True)
    for chamber in (capped, killed):
        chamber.ended.set()
    await asyncio.gather(killing, one.kill())
