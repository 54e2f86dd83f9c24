"""Warm chambers: as many as demand asks for, each used once."""

import asyncio

import pytest

from sandbox.errors import Unavailable
from sandbox.warm import Demand, WarmPool
from tests.sandbox.scripted import settled

IDLE_S = 30.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Thing:
    """Stands for a chamber."""

    def __init__(self) -> None:
        self.broken = False
        self.killed = 0
        self.dying: asyncio.Event | None = None

    async def kill(self) -> None:
        self.killed += 1
        if self.dying:
            await self.dying.wait()


class Maker:
    """Makes things, remembers them, and fails while it is told to."""

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.made: list[Thing] = []
        self.failing = False
        self._gate = gate

    async def __call__(self) -> Thing:
        await (self._gate.wait() if self._gate else asyncio.sleep(0))
        if self.failing:
            raise Unavailable("the provider is gone")
        thing = Thing()
        self.made.append(thing)
        return thing


def demand_of(times: list[float], cap: int = 100, making: float = 0.5) -> Demand:
    demand = Demand(cap, IDLE_S)
    for time in times:
        demand.asked(time)
    for _ in range(30):
        demand.made(making)
    return demand


def test_target_follows_demand() -> None:
    """None before anybody asked; the faster they are asked for, and the longer one takes to make, the more are kept,
    which covers what is asked for meanwhile; whoever asked once may ask again.
    """
    assert Demand(10, IDLE_S).target(5.0) == 0
    assert demand_of([10.0]).target(10.0) == 1
    calm = demand_of([float(second) for second in range(10)]).target(9.0)
    busy = demand_of([second / 10 for second in range(16)]).target(1.5)
    slow = demand_of([second / 10 for second in range(16)], making=2.0).target(1.5)
    assert 1 <= calm < 5 <= busy < slow


@pytest.mark.parametrize("cap", [0, 3])
def test_target_is_capped(cap: int) -> None:
    """However great the demand, the cap holds; a cap of nothing keeps nothing."""
    assert demand_of([5.0] * 16, cap=cap).target(5.0) == cap


def test_target_fades_and_falls_to_zero() -> None:
    """When nobody asks, fewer are kept, and none after the idle time."""
    demand = demand_of([second / 10 for second in range(10)])
    targets = [demand.target(0.9 + later) for later in (0.0, 1.0, 10.0, IDLE_S)]
    assert targets == sorted(targets, reverse=True)
    assert 1 <= targets[-1] < targets[0]
    assert demand.target(0.9 + IDLE_S + 0.001) == 0


async def test_each_is_used_once() -> None:
    """No two callers ever get the same, and what is ready is taken first."""
    clock, make = Clock(), Maker()
    pool: WarmPool[Thing] = WarmPool(4, IDLE_S, clock)
    taken = []
    for _ in range(20):
        taken.append(await pool.take("shape", make))
        await settled()
        clock.now += 0.1
    assert len(set(map(id, taken))) == 20
    assert pool.ready > 0
    waiting = make.made[-1]
    before = len(make.made)
    assert await pool.take("shape", make) in make.made[:before]
    await pool.close()
    assert waiting.killed <= 1
    assert all(not thing.killed for thing in taken)


@pytest.mark.parametrize("swept", [False, True])
async def test_broken_is_replaced(swept: bool) -> None:
    """A broken one is never handed out: it is killed, and another made, when it is taken or noticed while it waits."""
    make = Maker()
    pool: WarmPool[Thing] = WarmPool(1, IDLE_S, Clock())
    await pool.take("shape", make)
    await settled()
    broken = make.made[-1]
    broken.broken = True
    assert pool.ready == 1
    if swept:
        await pool.sweep()
        await settled()
        assert (pool.ready, len(make.made)) == (1, 3)
    assert await pool.take("shape", make) is not broken
    assert broken.killed == 1
    await pool.close()


async def test_taking_during_a_sweep() -> None:
    """A taker that meets the sweep at its work disturbs neither."""
    clock, make = Clock(), Maker()
    pool: WarmPool[Thing] = WarmPool(4, IDLE_S, clock)
    for _ in range(8):
        await pool.take("shape", make)
        clock.now += 0.05
    await settled()
    assert pool.ready >= 2
    gate = asyncio.Event()
    for thing in make.made:
        thing.broken, thing.dying = True, gate
    sweeping = asyncio.create_task(pool.sweep())
    await settled()
    taking = asyncio.create_task(pool.take("shape", make))
    await settled()
    gate.set()
    await sweeping
    assert not (await taking).broken
    assert all(thing.killed <= 1 for thing in make.made)
    await pool.close()


async def test_two_sweeps_at_once() -> None:
    """Once nobody has asked for a while, none is kept; two sweeps that meet do no harm."""
    clock, make, gate = Clock(), Maker(), asyncio.Event()
    pool: WarmPool[Thing] = WarmPool(2, IDLE_S, clock)
    taken = await pool.take("shape", make)
    await settled()
    assert pool.ready == 1
    make.made[-1].dying = gate
    clock.now += IDLE_S + 1
    sweeps = [asyncio.create_task(pool.sweep()) for _ in range(2)]
    await settled()
    gate.set()
    await asyncio.gather(*sweeps)
    assert (pool.ready, make.made[-1].killed, taken.killed) == (0, 1, 0)
    await pool.close()


async def test_failure_reaches_whoever_asks() -> None:
    """A maker that fails is not hidden: the caller gets its error, and a later one is served again."""
    make = Maker()
    make.failing = True
    pool: WarmPool[Thing] = WarmPool(2, IDLE_S, Clock())
    for _ in range(2):
        with pytest.raises(Unavailable, match="gone"):
            await pool.take("shape", make)
        await settled()
    make.failing = False
    assert await pool.take("shape", make) in make.made
    await settled()
    assert pool.ready > 0
    await pool.close()


async def test_close_kills_all_that_wait() -> None:
    """Whatever waits is killed at the end, and what is being made ahead is given up; what was taken is the taker's.

    A closed pool still makes what is asked for, and keeps nothing.
    """
    gate = asyncio.Event()
    first, slow = Maker(), Maker(gate)
    pool: WarmPool[Thing] = WarmPool(4, IDLE_S, Clock())
    taken = await pool.take("shape", first)
    await settled()
    taking = asyncio.create_task(pool.take("slow", slow))
    await settled()
    await pool.close()
    gate.set()
    late = await taking
    await settled()
    assert pool.ready == 0
    assert [thing.killed for thing in first.made if thing is not taken] == [1]
    assert slow.made == [late]
    assert (taken.killed, late.killed) == (0, 0)
    made = len(first.made)
    await pool.take("shape", first)
    await settled()
    assert (pool.ready, len(first.made)) == (0, made + 1)


async def test_emptied_while_it_is_swept() -> None:
    """A sweep that is under way when the pool is emptied makes nothing new for a shelf that nobody has any more."""
    clock, make = Clock(), Maker()
    pool: WarmPool[Thing] = WarmPool(4, IDLE_S, clock)
    taken = await pool.take("shape", make)
    await settled()
    (waiting,) = [thing for thing in make.made if thing is not taken]
    waiting.broken, waiting.dying = True, asyncio.Event()
    sweeping = asyncio.create_task(pool.sweep())
    await settled()
    await pool.empty()
    waiting.dying.set()
    await sweeping
    await settled()
    assert (pool.ready, len(make.made)) == (0, 2)
    await pool.close()


async def test_cap_holds_over_all_shapes() -> None:
    """Several shapes share one cap, what is being made counts, and nobody ever gets another shape."""
    clock, makers = Clock(), {shape: Maker() for shape in "abcde"}
    pool: WarmPool[Thing] = WarmPool(3, IDLE_S, clock)
    for _ in range(5):
        for shape, make in makers.items():
            assert await pool.take(shape, make) in make.made
            assert pool.ready <= 3
            await settled()
            assert pool.ready <= 3
            clock.now += 0.01
    assert pool.ready == 3
    await pool.close()


async def test_no_warm_chambers() -> None:
    """With a cap of zero, every request is made fresh, and nothing is done behind the caller's back."""
    pool: WarmPool[Thing] = WarmPool(0, IDLE_S, Clock())
    make = Maker()
    for shape in range(100):
        await pool.take(shape, make)
    await settled()
    assert (len(make.made), pool.ready, len(asyncio.all_tasks())) == (100, 0, 1)


async def test_trial_goes_first() -> None:
    """With a head start, the next chamber is made only after the one that was taken had its time."""
    maker = Maker()
    pool: WarmPool[Thing] = WarmPool(1, IDLE_S, Clock(), head_start_s=60.0)
    await pool.take("shape", maker)
    await settled()
    assert (len(maker.made), pool.ready) == (2, 1)
    await pool.take("shape", maker)
    await settled()
    assert (len(maker.made), pool.ready) == (2, 0)
    await pool.close()
    assert len(maker.made) == 2, "nothing is made once the pool is closed"
