"""Whatever fails at whichever step, no machine is left, none is paid twice, and none costs more than was set aside."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings as profile

from sandbox import Ending, Outcome, Refused, SandboxError, SkyPilotConfig, Unavailable
from sandbox.backends.skypilot import chamber as skypilot_chamber
from sandbox.backends.skypilot import machine as skypilot_machine
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.chamber import box_seconds
from sandbox.backends.skypilot.provisioner import Ask, Wanted
from tests.sandbox.skypilot.connecting import BUNDLE, JOB, Connect, Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine
from tests.sandbox.skypilot.yard import Dead, Fault, Yard, YardProvisioner

pytestmark = pytest.mark.touching("skypilot")

METHODS = ("launch", "send", "call", "submit", "down", "requests", "clusters", "cancel_requests")
OFTEN = ("launch", "launch", "down", "submit")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (skypilot_chamber, skypilot_machine):
        monkeypatch.setattr(module, "TRY_PAUSE_S", 0.001)


class Fate:
    """One fault at the n-th call of a method, and perhaps the same again at the next."""

    def __init__(self, dice: random.Random) -> None:
        self.method = dice.choice([*METHODS, *OFTEN])
        self.fault = dice.choice(list(Fault))
        self._skip = dice.choice((0, 0, 1, 2, 3))
        self._times = 1 if self.fault in (Fault.KILLED, Fault.KILLED_AFTER) else dice.choice((1, 1, 2, 4))
        self.struck = 0

    def __call__(self, method: str) -> Fault | None:
        if method != self.method:
            return None
        if self._skip:
            self._skip -= 1
            return None
        if self.struck >= self._times:
            return None
        self.struck += 1
        return self.fault


async def trial(backend: SkyPilotBackend, charged: list[float]) -> Outcome | None:
    """What was charged to the trial is noted, whether there was an outcome or not."""
    try:
        async with await backend.open(JOB) as chamber:
            outcome = await chamber.run(BUNDLE)
    except SandboxError as error:
        charged.append(error.usd)
        return None
    charged.append(outcome.usage.usd)
    return outcome


def strike_off(backend: SkyPilotBackend) -> None:
    """The kernel lets go of a dead owner's lock; nothing else of it is done, so that its file stays."""
    backend.tenancy.release()
    backend.tenancy.path.touch()


async def lived(
    yard: Yard, config: SkyPilotConfig, fate: Callable[[str], Fault | None]
) -> tuple[bool, list[float], Purse]:
    """An owner of two trials, that may be killed: whether it lives, and what it charged to trials and to its purse."""
    provisioner, charged, purse = YardProvisioner(yard), list[float](), Purse()
    backend = await connected(provisioner, config)
    backend.purse = purse if config.warm else None
    provisioner.fate_of = fate
    with contextlib.suppress(Dead):
        for _ in range(2):
            await trial(backend, charged)
        await backend.close()
    if provisioner.dead:
        strike_off(backend)
    await _reaped(yard, config)
    return not provisioner.dead, charged, purse


async def one_fault(seed: int, folder: Path, warm: int) -> Fate:
    yard, fate, config = Yard(lambda _: PaperMachine()), Fate(random.Random(seed)), settings(folder, warm=warm)
    alive, charged, purse = await lived(yard, config, fate)
    _balanced(yard, purse, charged, config, alive=alive)
    return fate


async def _reaped(yard: Yard, config: SkyPilotConfig) -> None:
    other = await connected(YardProvisioner(yard), config)
    for _ in range(4):
        await other.reap()
    await other.close()
    assert yard.clusters == {}, "a machine was left"
    assert yard.requests == {}, "a launch was left under way"


def _balanced(yard: Yard, purse: Purse, charged: list[float], config: SkyPilotConfig, *, alive: bool) -> None:
    """By the provider's own bill."""
    rate = yard.usd_per_hour / 3600
    worst = rate * (config.terms.opening_s + box_seconds(JOB) + config.terms.closing_s)
    assert all(usd <= worst for usd in charged), "a trial cost more than was set aside for it"
    for name, told in purse.settled.items():
        assert len(told) == 1, "the purse was told twice"
        assert told[0] <= purse.reserved[name], "a cluster cost more than was set aside for it"
    if alive:
        assert set(purse.settled) == set(purse.reserved), "the purse was not told of a cluster that is gone"
        total = sum(charged) + sum(usd for told in purse.settled.values() for usd in told)
        assert total >= sum(yard.bill.values()), "the provider's bill is higher than what was charged"


@pytest.mark.parametrize("warm", [0, 1])
async def test_faults_at_any_step(warm: int, tmp_path: Path) -> None:
    """Runs with a fault each, at steps and in ways that are drawn: no orphan, no double charge."""
    struck = 0
    seed = 0
    while struck < profile().max_examples:
        fate = await asyncio.wait_for(one_fault(seed, tmp_path / str(seed), warm), 30)
        struck += fate.struck > 0
        seed += 1
    assert seed < 4 * profile().max_examples


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fault", [Fault.KILLED, Fault.KILLED_AFTER])
@pytest.mark.parametrize("warm", [0, 1])
async def test_an_owner_killed_at_each_step(method: str, fault: Fault, warm: int, tmp_path: Path) -> None:
    """SIGKILL at each step, before and after its effect, in the first trial and in the second: nothing is left."""
    for skip in (0, 1):
        yard = Yard(lambda _: PaperMachine())
        await lived(yard, settings(tmp_path / str(skip), warm=warm), killer(method, fault, skip))


def killer(method: str, fault: Fault, skip: int) -> Callable[[str], Fault | None]:
    seen = 0

    def fate(called: str) -> Fault | None:
        nonlocal seen
        seen += called == method
        return fault if called == method and seen == skip + 1 else None

    return fate


async def test_a_living_owner_is_never_touched(owner: Connect, yard: Yard) -> None:
    """Whoever reaps while another one works takes nothing of it, neither its machine nor its launch under way."""
    mine, other = await owner(), await owner()
    yard.ask(mine.office.name(60), Wanted(Ask(1, 1), 60, 0, None))
    async with await mine.open(JOB) as chamber:
        assert await other.reap() == []
        assert chamber.name in yard.clusters
        assert (await chamber.run(BUNDLE)).ending is Ending.COMPLETED
    yard.requests.clear()


async def test_owners_elsewhere_are_left_until_their_end(yard: Yard, tmp_path: Path) -> None:
    """Of an owner on another machine nothing is known: its cluster is reaped once its own end has passed."""
    there = await connected(YardProvisioner(yard), settings(tmp_path / "there"))
    chamber = await there.open(JOB)
    for now, left in ((time.time, [chamber.name]), (lambda: 4e9, [])):
        here = await connected(YardProvisioner(yard), settings(tmp_path / "here"), clock=now)
        assert list(yard.clusters) == left
        assert (here.unreaped, here.place == there.place) == ((), False)
        await here.close()
    await there.close()


async def test_an_odd_lock_keeps_nobody_from_their_work(owner: Connect, yard: Yard) -> None:
    """Nobody can tell whether its owner lives: what that one made is left, and said, and others are reaped."""
    dead, unknown = await owner(), await owner()
    names = [(await it.open(JOB)).name for it in (dead, unknown)]
    for it in (dead, unknown):
        it.tenancy.release()
    lock = unknown.tenancy.path
    lock.mkdir()
    living = await owner()
    assert living.unreaped == (names[1],)
    assert list(yard.clusters) == [names[1]]
    lock.rmdir()
    assert await living.reap() == [names[1]]
    assert not living.unreaped


def no_end(method: str) -> Fault | None:
    return Fault.BEFORE if method == "down" else None


async def test_what_could_not_be_reaped_is_known(owner: Connect, yard: Yard) -> None:
    """Whoever comes next knows what a dead owner left that SkyPilot does not end: it may still cost money."""
    dead = await owner()
    chamber = await dead.open(JOB)
    dead.tenancy.release()
    provisioner = YardProvisioner(yard, no_end)
    living = await owner(provisioner)
    assert (living.unreaped, living.place) == ((chamber.name,), dead.place)
    provisioner.fate_of = lambda _: None
    assert await living.reap() == [chamber.name]
    assert living.unreaped == ()


@pytest.mark.parametrize("kind", [Unavailable, Refused])
async def test_a_provider_that_does_not_let_go(
    kind: type[SandboxError], owner: Connect, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial's outcome stands. What cannot be ended, though SkyPilot refuses it, is charged until its own end,
    remembered, and ended when that works again.
    """

    async def refuse(name: str) -> None:
        raise kind("down: not supported")

    provisioner = YardProvisioner(yard)
    backend = await owner(provisioner)
    charged: list[float] = []
    with monkeypatch.context() as patched:
        patched.setattr(provisioner, "down", refuse)
        outcome = await trial(backend, charged)
    assert outcome
    assert outcome.ending is Ending.COMPLETED
    assert charged[0] > 600, "it stands until it ends itself, and that costs"
    assert len(yard.clusters) == 1
    await trial(backend, charged)
    assert yard.clusters == {}


async def test_giving_up_while_it_comes_up(owner: Connect, yard: Yard) -> None:
    """Whoever is cancelled while a machine is launched leaves none."""
    backend = await owner()
    for turns in range(12):
        opening = asyncio.create_task(backend.open(JOB))
        for _ in range(turns):
            await asyncio.sleep(0.002)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await opening).kill()
        assert (yard.clusters, yard.requests) == ({}, {})
