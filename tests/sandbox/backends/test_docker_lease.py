"""Leases: an owner that lives is always seen to live, one that does not is reaped, and a late one starts again."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import EXPIRY_LABEL, OWNER_LABEL, Lease, reap
from sandbox.errors import Refused, Unavailable
from tests.virtual_time import VirtualTime

LEASE_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class FakeEngine:
    """Keeps volumes and containers as an engine does, and lets somebody look at every step."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, str]] = {}
        self.running: dict[str, Mapping[str, Any]] = {}
        self.at_each_step: Callable[[], None] = lambda: None
        self.failure: Exception | None = None
        self.creating: Callable[[], None] = lambda: None
        self.created = 0

    def _step(self) -> None:
        self.at_each_step()
        if self.failure:
            raise self.failure

    async def create_volume(self, name: str, labels: dict[str, str]) -> None:
        self._step()
        self.creating()
        self.created += 1
        self.kept[name] = labels
        self.at_each_step()

    async def remove_volume(self, name: str) -> None:
        self._step()
        self.kept.pop(name, None)
        self.at_each_step()

    async def volumes(self, label: str) -> Sequence[Mapping[str, Any]]:
        self._step()
        return [{"Name": name, "Labels": labels} for name, labels in self.kept.items() if label in labels]

    async def containers(self, label: str) -> Sequence[Mapping[str, Any]]:
        self._step()
        return list(self.running.values())

    async def remove(self, container: str) -> bool:
        self._step()
        return self.running.pop(container, None) is not None

    def run(self, name: str, owner: str) -> None:
        self.running[name] = {"Id": name, "Names": [f"/{name}"], "Labels": {OWNER_LABEL: owner}}

    def sees(self, owner: str, now: float) -> bool:
        """Whether a reader of this moment finds a lease of the owner that holds."""
        return any(labels[OWNER_LABEL] == owner and float(labels[EXPIRY_LABEL]) > now for labels in self.kept.values())


class SlowEngine(FakeEngine):
    """Makes a volume when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.lets = asyncio.Event()

    async def create_volume(self, name: str, labels: dict[str, str]) -> None:
        self.asked.set()
        await self.lets.wait()
        await super().create_volume(name, labels)


def lease_on(engine: FakeEngine, clock: Callable[[], float]) -> Lease:
    return Lease(cast("Engine", engine), LEASE_S, clock)


async def reaped(engine: FakeEngine, clock: Clock) -> list[str]:
    ended, left = await reap(cast("Engine", engine), clock)
    assert left == []
    return ended


async def nothing() -> None: ...


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def lease(engine: FakeEngine, clock: Clock) -> Lease:
    """One that holds."""
    lease = lease_on(engine, clock)
    assert not lease.holds
    await lease.hold()
    return lease


async def test_lease_holds_until_its_end(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """A lease holds for its length, to the moment, for the owner and for everybody else."""
    clock.now += LEASE_S - 0.01
    assert lease.holds
    assert engine.sees(lease.owner, clock.now)
    clock.now += 0.01
    assert not lease.holds
    assert not engine.sees(lease.owner, clock.now)


async def test_reader_sees_a_live_owner_at_every_step(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """At every step of every renewal, and whatever a reaper does in between, a live owner has a lease that holds."""
    seen: list[bool] = []
    engine.at_each_step = lambda: seen.append(engine.sees(lease.owner, clock.now))
    for _ in range(20):
        clock.now += LEASE_S / 3
        await lease.renew()
        await reaped(engine, clock)
        assert lease.holds
    assert len(seen) > 80
    assert all(seen)


async def test_reaping_in_the_middle_of_a_renewal(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """A reaper that strikes at any single step of a renewal leaves a live owner's chambers alone."""
    engine.run("chamber", lease.owner)
    strikes = 0

    def strike() -> None:
        nonlocal strikes
        strikes += 1
        listed = reaped(engine, clock)
        look, engine.at_each_step = engine.at_each_step, lambda: None
        with pytest.raises(StopIteration):
            listed.send(None)
        engine.at_each_step = look

    engine.at_each_step = strike
    for _ in range(10):
        clock.now += LEASE_S / 3
        await lease.renew()
    assert strikes > 30
    assert list(engine.running) == ["chamber"]


async def test_renewals_do_not_pile_up(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """Of many renewals, the last two are kept; after release, none."""
    for _ in range(10):
        clock.now += LEASE_S / 3
        await lease.renew()
    assert len(engine.kept) == 2
    await lease.release()
    assert engine.kept == {}
    assert not lease.holds
    with pytest.raises(Refused, match="released"):
        await lease.hold()


async def test_T86_lapsed_lease_is_taken_anew(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """An owner that slept through the end of its lease goes on; that it was unprotected for a while is remembered.

    While the engine is away it holds none, and so opens nothing: a reaper would end it.
    """
    engine.run("before", lease.owner)
    clock.now += LEASE_S
    engine.failure = Unavailable("away")
    with pytest.raises(Unavailable):
        await lease.hold()
    assert not lease.holds
    engine.failure = None
    await reaped(engine, clock)
    await lease.hold()
    engine.run("after", lease.owner)
    await reaped(engine, clock)
    assert (lease.holds, lease.lapses, list(engine.running)) == (True, 1, ["after"])
    await lease.hold()
    assert lease.lapses == 1


async def test_many_openings_after_a_lapse_renew_it_once(clock: Clock) -> None:
    """They wait for the first of them, and find a lease that holds."""
    engine = SlowEngine()
    lease = lease_on(engine, clock)
    opening = [asyncio.create_task(lease.hold()) for _ in range(5)]
    await engine.asked.wait()
    engine.lets.set()
    await asyncio.gather(*opening)
    assert (lease.holds, engine.created) == (True, 1)


async def test_renewal_that_took_too_long(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """One that arrives after the old lease ended is a lapse: somebody may have reaped meanwhile."""
    clock.now += LEASE_S / 2

    def dawdle() -> None:
        clock.now += LEASE_S / 2

    engine.creating = dawdle
    await lease.renew()
    assert (lease.holds, lease.lapses) == (True, 1)


async def test_failed_renewal_is_no_end(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    clock.now += LEASE_S / 3
    engine.failure = Unavailable("away")
    with pytest.raises(Unavailable):
        await lease.renew()
    assert lease.holds
    assert lease.in_doubt, "a slow engine may have made it all the same"


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return VirtualTime(monkeypatch)


@pytest.mark.parametrize("failure", [Unavailable("away"), Refused("in use")])
def test_beat_goes_on_after_a_failure(hours: VirtualTime, failure: Exception) -> None:
    """Whatever an attempt to renew fails by, the next one is made, also after a lapse, until it is released."""

    async def scene() -> list[tuple[int, int]]:
        engine, seen, beats = FakeEngine(), [], []

        async def after_beat() -> None:
            beats.append(1)

        lease = lease_on(engine, lambda: time.time())
        await lease.acquire(after_beat)
        for failing_s in (0.0, LEASE_S / 2, 2 * LEASE_S):
            engine.failure = failure if failing_s else None
            await asyncio.sleep(failing_s)
            beats.clear()
            engine.failure = None
            await asyncio.sleep((LEASE_S / 24 if failing_s else LEASE_S / 3) + 0.5)
            assert lease.holds
            seen.append((len(beats), lease.lapses))
        await lease.release()
        beats.clear()
        await asyncio.sleep(LEASE_S)
        return [*seen, (len(beats), len(engine.kept))]

    # A beat follows each renewal that worked, and only that; soon after a failure, a third of the lease later else.
    assert hours.run(scene()) == [(1, 0), (1, 0), (1, 1), (0, 0)]


def test_beat_goes_on_beside_what_follows_it(hours: VirtualTime) -> None:
    """A chamber that the engine cannot end, and so says nothing of, takes the lease from none of the others."""

    async def scene() -> tuple[bool, int, int]:
        engine, followed = FakeEngine(), 0

        async def hangs() -> None:
            nonlocal followed
            followed += 1
            await asyncio.Event().wait()

        lease = lease_on(engine, lambda: time.time())
        await lease.acquire(hangs)
        await asyncio.sleep(5 * LEASE_S)
        found = (lease.holds, lease.lapses, followed)
        await lease.release()
        return found

    assert hours.run(scene()) == (True, 0, 1), "one at a time"


@pytest.mark.parametrize(("failures", "answer_s"), [(1, LEASE_S / 4), (2, LEASE_S / 24)])
def test_failed_renewal_is_tried_again_in_time(hours: VirtualTime, failures: int, answer_s: float) -> None:
    """An engine that fails after a quarter of the lease, once or twice, and then takes its time, costs no lease."""

    class Dawdling(FakeEngine):
        tries = 0

        async def create_volume(self, name: str, labels: dict[str, str]) -> None:
            self.tries += 1
            if 1 < self.tries <= 1 + failures:
                await asyncio.sleep(LEASE_S / 4)
                raise Unavailable("the engine does not answer")
            if self.tries > 1:
                await asyncio.sleep(answer_s)
            await super().create_volume(name, labels)

    async def scene() -> tuple[bool, int]:
        engine = Dawdling()
        lease = lease_on(engine, lambda: time.time())
        await lease.acquire(nothing)
        held = []
        while engine.created < 2:
            held.append(lease.holds)
            await asyncio.sleep(0.5)
        await lease.release()
        return all(held), lease.lapses

    assert hours.run(scene()) == (True, 0)


def test_release_waits_for_a_renewal_that_is_under_way(hours: VirtualTime) -> None:
    """Else its volume would come when nobody removes it any more."""

    async def scene() -> bool:
        engine = SlowEngine()
        engine.lets.set()
        lease = lease_on(engine, lambda: time.time())
        await lease.acquire(nothing)
        engine.asked.clear()
        engine.lets.clear()
        await engine.asked.wait()
        releasing = asyncio.create_task(lease.release())
        await asyncio.sleep(0)
        assert not releasing.done()
        engine.lets.set()
        await releasing
        return bool(engine.kept)

    assert not hours.run(scene())


async def test_reap_ends_only_what_lapsed(engine: FakeEngine, clock: Clock, lease: Lease) -> None:
    """Chambers and leases of lapsed owners go, of owners without any lease too; a live one's stay. A lease that says
    nonsense holds nothing.
    """
    clock.now += LEASE_S / 2
    live = lease_on(engine, clock)
    await live.renew()
    engine.kept["odd"] = {OWNER_LABEL: "somebody", EXPIRY_LABEL: "tomorrow"}
    for name, owner in (("of-dead", lease.owner), ("of-live", live.owner), ("of-nobody", "somebody")):
        engine.run(name, owner)
    assert await reaped(engine, clock) == ["of-nobody", "odd"]
    clock.now += LEASE_S / 2
    ended = await reaped(engine, clock)
    assert list(engine.running) == ["of-live"]
    assert len(engine.kept) == 1
    assert (ended[0], len(ended)) == ("of-dead", 2)
    assert await reaped(engine, clock) == []


async def test_reap_waits_for_all_at_once(engine: FakeEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine may say nothing for minutes to each that it cannot end; they do not take turns."""
    all_asked = asyncio.Barrier(3)

    async def remove(_: str) -> bool:
        await all_asked.wait()
        raise Unavailable("the engine does not answer")

    monkeypatch.setattr(engine, "remove", remove)
    for name in "abc":
        engine.run(name, "gone")
    ended, left = await asyncio.wait_for(reap(cast("Engine", engine), clock), 5)
    assert (ended, sorted(left)) == ([], ["a", "b", "c"])


async def test_reap_says_what_it_ended(engine: FakeEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody else removed first is not claimed, and what the engine does not let go keeps nobody from ending
    the others.
    """
    for name in ("a", "b", "c"):
        engine.run(name, "gone")
    engine.kept |= {name: {OWNER_LABEL: "gone", EXPIRY_LABEL: "0"} for name in ("old", "older")}
    remove, remove_volume = engine.remove, engine.remove_volume

    async def stubborn(container: str) -> bool:
        if container == "a":
            raise Unavailable("a is busy")
        return container != "c" and await remove(container)

    async def clinging(name: str) -> None:
        if name == "old":
            raise Refused("volume is in use")
        await remove_volume(name)

    monkeypatch.setattr(engine, "remove", stubborn)
    monkeypatch.setattr(engine, "remove_volume", clinging)
    assert await reap(cast("Engine", engine), clock) == (["b", "older"], ["a", "old"])
