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


def test_no_demand_keeps_none() -> None:
    """Nothing is made before anybody asked."""
    assert Demand(10, IDLE_S).target(5.0) == 0


def test_one_request_keeps_one() -> None:
    """Whoever asked once may ask again."""
    assert demand_of([10.0]).target(10.0) == 1


def test_target_follows_demand() -> None:
    """The faster they are asked for, and the longer one takes to make, the more are kept."""
    calm = demand_of([float(second) for second in range(10)]).target(9.0)
    busy = demand_of([second / 10 for second in range(10)]).target(0.9)
    slow = demand_of([second / 10 for second in range(10)], making=2.0).target(0.9)
    assert 1 <= calm < busy < slow


def test_target_covers_what_is_asked_while_one_is_made() -> None:
    """At ten a second and half a second to make, at least five are asked for meanwhile."""
    assert demand_of([second / 10 for second in range(16)]).target(1.5) >= 5


def test_target_is_capped() -> None:
    """However great the demand, the cap holds; a cap of nothing keeps nothing."""
    rush = [5.0] * 16
    assert demand_of(rush, cap=3).target(5.0) == 3
    assert demand_of(rush, cap=0).target(5.0) == 0


def test_target_fades_and_falls_to_zero() -> None:
    """When nobody asks, fewer are kept, and none after the idle time."""
    demand = demand_of([second / 10 for second in range(10)])
    targets = [demand.target(0.9 + later) for later in (0.0, 1.0, 10.0, IDLE_S)]
    assert targets == sorted(targets, reverse=True)
    assert 1 <= targets[-1] < targets[0]
    assert demand.target(0.9 + IDLE_S + 0.001) == 0


def test_demand_is_pure() -> None:
    """Asking for the target changes nothing."""
    demand = demand_of([1.0, 2.0, 3.0])
    assert [demand.target(now) for now in (3.0, 99.0, 3.0)] == [demand.target(3.0), 0, demand.target(3.0)]


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


async def test_broken_is_replaced_when_taken() -> None:
    """A broken one is never handed out: it is killed, and another given."""
    make = Maker()
    pool: WarmPool[Thing] = WarmPool(1, IDLE_S, Clock())
    await pool.take("shape", make)
    await settled()
    broken = make.made[-1]
    broken.broken = True
    assert pool.ready == 1
    assert await pool.take("shape", make) is not broken
    assert broken.killed == 1
    await pool.close()


async def test_broken_is_replaced_by_the_sweep() -> None:
    """A broken one is noticed while it waits, killed, and another made."""
    make = Maker()
    pool: WarmPool[Thing] = WarmPool(1, IDLE_S, Clock())
    await pool.take("shape", make)
    await settled()
    make.made[-1].broken = True
    await pool.sweep()
    await settled()
    assert make.made[1].killed == 1
    assert pool.ready == 1
    assert len(make.made) == 3
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
    """Two sweeps that meet do no harm."""
    clock, make, gate = Clock(), Maker(), asyncio.Event()
    pool: WarmPool[Thing] = WarmPool(2, IDLE_S, clock)
    await pool.take("shape", make)
    await settled()
    make.made[-1].dying = gate
    clock.now += 2 * IDLE_S
    sweeps = [asyncio.create_task(pool.sweep()) for _ in range(2)]
    await settled()
    gate.set()
    await asyncio.gather(*sweeps)
    assert (pool.ready, make.made[-1].killed) == (0, 1)
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


async def test_idle_pool_is_emptied() -> None:
    """Once nobody has asked for a while, none is kept."""
    clock, make = Clock(), Maker()
    pool: WarmPool[Thing] = WarmPool(3, IDLE_S, clock)
    taken = await pool.take("shape", make)
    await settled()
    assert pool.ready == 1
    clock.now += IDLE_S + 1
    await pool.sweep()
    await settled()
    assert pool.ready == 0
    assert [thing.killed for thing in make.made if thing is not taken] == [1]
    await pool.close()


async def test_close_kills_all_that_wait() -> None:
    """Whatever waits is killed at the end, and what is being made ahead is given up; what was taken is the taker's."""
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


async def test_nothing_is_kept_after_close() -> None:
    """A closed pool still makes what is asked for, and keeps nothing."""
    make = Maker()
    pool: WarmPool[Thing] = WarmPool(4, IDLE_S, Clock())
    await pool.close()
    await pool.take("shape", make)
    await settled()
    assert (pool.ready, len(make.made)) == (0, 1)


async def test_cap_holds_over_all_shapes() -> None:
    """Several shapes share one cap, and what is being made counts."""
    clock, makers = Clock(), {shape: Maker() for shape in "abcde"}
    pool: WarmPool[Thing] = WarmPool(3, IDLE_S, clock)
    for _ in range(5):
        for shape, make in makers.items():
            await pool.take(shape, make)
            assert pool.ready <= 3
            await settled()
            assert pool.ready <= 3
            clock.now += 0.01
    assert pool.ready == 3
    await pool.close()


async def test_shapes_are_not_mixed() -> None:
    """Whoever asks for one shape never gets another."""
    one, other = Maker(), Maker()
    pool: WarmPool[Thing] = WarmPool(4, IDLE_S, Clock())
    for _ in range(3):
        assert await pool.take("one", one) in one.made
        await settled()
        assert await pool.take("other", other) in other.made
        await settled()
    await pool.close()


async def test_no_warm_chambers_no_memory_of_shapes() -> None:
    """With a cap of zero, every request is made fresh and no shape is remembered."""
    pool: WarmPool[Thing] = WarmPool(0, IDLE_S, Clock())
    make = Maker()
    for shape in range(100):
        await pool.take(shape, make)
    await settled()
    assert len(make.made) == 100
    assert not pool._shelves
    assert len(asyncio.all_tasks()) == 1
    await pool.close()


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
