"""What a hostile reader found in the Modal backend; each test states what must be true."""

import asyncio

import pytest
from grpclib import Status

from orchestrator.tariff import Tariff
from orchestrator.wiring.engine import spare_of
from sandbox.backends.modal import ender as modal_ender
from sandbox.backends.modal.backend import ModalBackend
from sandbox.backends.modal.hold import ModalHold
from sandbox.backends.modal.marks import mark_of
from sandbox.backends.modal.order import lifetime
from sandbox.backends.modal.standing import Standing
from sandbox.config import ModalConfig
from sandbox.errors import SandboxError
from sandbox.job import Job, Limits
from sandbox.link import Deadlines
from sandbox.live import Death
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import until

JOB = Job(command=("sh", "-c", "echo well"), limits=Limits(wall=30, memory="64MiB"))
LONG = Job(command=("sh", "-c", "echo well"), limits=Limits(wall=6 * 3600, memory="64MiB"))


class Word:
    def __init__(self, status: str) -> None:
        self.status = status


class Dead:
    """A sandbox that Modal ended."""

    def __init__(self, status: str) -> None:
        self._status = status

    async def ended(self) -> Word:
        return Word(self._status)


class NoLink:
    def close(self) -> None: ...


async def test_t80_thrashing_at_its_own_limit_is_no_refund() -> None:
    """modal_proto: "killed by the memory manager after thrashing at its own memory limit": the candidate's doing."""

    async def nothing(*_: object) -> bool:
        return False

    hold = ModalHold("a", Dead("MEMORY_THRASHING_EVICTION"), NoLink(), 1.0, 0.0, nothing, nothing)  # type: ignore[arg-type]
    assert await hold.cause_of_death(1) is Death.MEMORY


class Dying:
    """A waiting chamber whose provider takes its time to end it."""

    broken = False

    def __init__(self) -> None:
        self.ending = asyncio.Event()

    async def kill(self) -> None:
        self.ending.set()
        await asyncio.sleep(60)


async def test_one_that_is_being_ended_is_not_handed_out() -> None:
    """Who takes it gets a chamber that was ordered to die, and a trial that ends as killed: a free ending."""
    chamber = Dying()
    standing = Standing(chamber, None, 0.01)  # type: ignore[arg-type]
    await chamber.ending.wait()
    try:
        assert standing.broken
    finally:
        assert standing._cap
        standing._cap.cancel()


def test_t75_a_trial_reserves_all_that_its_sandbox_can_live(config: ModalConfig) -> None:
    """A sandbox whose end is not confirmed costs until its lifetime: that, and no less, is the worst case."""
    for warm in (0, 1):
        wanted = config.model_copy(update={"warm": warm})
        tariff = Tariff(wanted.rates.per_second, 60.0, spare_of(wanted), wanted.terms)
        assert tariff.whole_life(JOB.limits).milliseconds >= lifetime(wanted, JOB) * 1000, f"warm={warm}"


class Money:
    def __init__(self) -> None:
        self.reserved: dict[str, float] = {}
        self.settled: dict[str, float] = {}

    def reserve(self, name: str, worst_usd: float, usd_per_second: float | None = None) -> bool:
        if self.reserved:
            return False
        self.reserved[name] = worst_usd
        return True

    def settle(self, name: str, usd: float) -> None:
        self.settled[name] = usd


@pytest.mark.modal
@pytest.mark.docker
async def test_t75_what_stands_reserves_all_that_it_can_live(
    config: ModalConfig, modal_emulator: ModalEmulator
) -> None:
    """Owner and warden can die together (power): then only the lifetime ends it, and the reserve must cover it."""
    backend = await ModalBackend.connect(config.model_copy(update={"warm": 1}))
    backend.purse = purse = Money()
    try:
        async with await backend.open(LONG):
            pass

        async def ready() -> bool:
            return backend.warm_ready == 1

        await until(ready)
        (name,) = purse.reserved
        stands = next(one for one in modal_emulator.sandboxes() if one["name"] == name)
        worst = stands["timeout"] * config.rates.per_second(LONG.limits)
        assert purse.reserved[name] >= worst, f"reserved {purse.reserved[name]:.4f}, it may cost {worst:.4f}"
    finally:
        await backend.close()


@pytest.mark.modal
@pytest.mark.docker
async def test_t77_mark_ends_no_sooner_than_the_sandbox(config: ModalConfig, modal_emulator: ModalEmulator) -> None:
    """A reaper on another machine ends what is past its mark: a slow image must not make that early."""
    backend = await ModalBackend.connect(config)
    modal_emulator.slow("ImageGetOrCreate", 4.0)
    try:
        async with await backend.open(JOB):
            (sandbox,) = modal_emulator.sandboxes()
            mark = mark_of(sandbox["tags"])
            assert mark
            assert mark.ends >= sandbox["created_at"] + sandbox["timeout"] - 1
    finally:
        await backend.close()


@pytest.mark.modal
@pytest.mark.docker
@pytest.mark.parametrize("second", [Status.RESOURCE_EXHAUSTED, Status.PERMISSION_DENIED])
async def test_t73_lost_reply_then_a_refusal(
    config: ModalConfig, modal_emulator: ModalEmulator, second: Status
) -> None:
    """A refused retry says nothing of the first try, whose reply was lost: it is still looked for, ended and paid."""
    backend = await ModalBackend.connect(config)
    lost = modal_emulator.hang("SandboxCreateV2", "after")
    opening = asyncio.create_task(backend.open(JOB))
    assert await asyncio.to_thread(modal_emulator.reached, lost)
    modal_emulator.fail("SandboxCreateV2", "before", second, -1)
    modal_emulator.release(lost)  # made, and the connection ends before the answer
    try:
        with pytest.raises(SandboxError) as found:
            await opening
        modal_emulator.heal()
        running = modal_emulator.running()
    finally:
        await backend.close()
    left = modal_emulator.running()
    unpaid = running and not (found.value.usd or found.value.unended)
    assert (bool(unpaid), len(left)) == (False, 0), "it runs unpaid, and is left behind when its owner closes"


@pytest.mark.modal
@pytest.mark.docker
async def test_t72_create_that_outlasts_its_deadline(
    config: ModalConfig, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In flight counts from when a create was given up, not from when it was begun. (300 s to 60 s, scaled down.)"""
    monkeypatch.setattr(modal_ender, "IN_FLIGHT_S", 1.0)
    short = config.model_copy(update={"deadlines": Deadlines(provision=5.0, upload=20.0, collect=20.0)})
    backend = await ModalBackend.connect(short)
    held = modal_emulator.hold("SandboxCreateV2", "before")
    try:
        with pytest.raises(SandboxError) as found:
            await backend.open(JOB)
        unended = found.value.unended
        modal_emulator.release(held)

        async def runs() -> bool:
            return len(modal_emulator.running()) == 1

        await until(runs)
        assert unended, "nobody ever answered, and it counts as ended for certain"
    finally:
        await backend.close()
    assert modal_emulator.running() == []
