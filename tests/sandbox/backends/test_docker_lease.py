"""Leases: an owner that lives is always seen to live, one that does not is reaped, and a late one starts again."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import EXPIRY_LABEL, OWNER_LABEL, Lease, reap
from sandbox.errors import Refused, Unavailable

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

    def _step(self) -> None:
        self.at_each_step()
        if self.failure:
            raise self.failure

    async def create_volume(self, name: str, labels: dict[str, str]) -> None:
        self._step()
        self.creating()
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


def lease_on(engine: FakeEngine, clock: Clock) -> Lease:
    return Lease(cast("Engine", engine), LEASE_S, clock)


async def reaped(engine: FakeEngine, clock: Clock) -> list[str]:
    ended, left = await reap(cast("Engine", engine), clock)
    assert left == []
    return ended


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_new_lease_does_not_hold_yet(engine: FakeEngine, clock: Clock) -> None:
    """An owner without a lease opens nothing before it has one."""
    lease = lease_on(engine, clock)
    assert not lease.holds
    await lease.hold()
    assert lease.holds
    assert engine.sees(lease.owner, clock.now)


async def test_lease_holds_until_its_end(engine: FakeEngine, clock: Clock) -> None:
    """A lease holds for its length, to the moment, for the owner and for everybody else."""
    lease = lease_on(engine, clock)
    await lease.renew()
    clock.now += LEASE_S - 0.01
    assert lease.holds
    assert engine.sees(lease.owner, clock.now)
    clock.now += 0.01
    assert not lease.holds
    assert not engine.sees(lease.owner, clock.now)


async def test_reader_sees_a_live_owner_at_every_step(engine: FakeEngine, clock: Clock) -> None:
    """At every step of every renewal, and whatever a reaper does in between, a live owner has a lease that holds."""
    lease = lease_on(engine, clock)
    await lease.renew()
    seen: list[bool] = []
    engine.at_each_step = lambda: seen.append(engine.sees(lease.owner, clock.now))
    for _ in range(20):
        clock.now += LEASE_S / 3
        await lease.renew()
        await reaped(engine, clock)
        assert lease.holds
    assert len(seen) > 80
    assert all(seen)


async def test_reaping_in_the_middle_of_a_renewal(engine: FakeEngine, clock: Clock) -> None:
    """A reaper that strikes at any single step of a renewal leaves a live owner's chambers alone."""
    lease = lease_on(engine, clock)
    await lease.renew()
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


async def test_renewals_do_not_pile_up(engine: FakeEngine, clock: Clock) -> None:
    """Of many renewals, the last two are kept; after release, none."""
    lease = lease_on(engine, clock)
    for _ in range(10):
        await lease.renew()
        clock.now += LEASE_S / 3
    assert len(engine.kept) == 2
    await lease.release()
    assert engine.kept == {}
    assert not lease.holds
    with pytest.raises(Refused, match="released"):
        await lease.hold()


async def test_T86_lapsed_lease_is_taken_anew(engine: FakeEngine, clock: Clock) -> None:
    """An owner that slept through the end of its lease goes on; that it was unprotected for a while is remembered."""
    lease = lease_on(engine, clock)
    await lease.renew()
    engine.run("before", lease.owner)
    clock.now += LEASE_S
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
    assert (lease.holds, len(lease._volumes), len(engine.kept)) == (True, 1, 1)


async def test_renewal_that_took_too_long(engine: FakeEngine, clock: Clock) -> None:
    """One that arrives after the old lease ended is a lapse: somebody may have reaped meanwhile."""
    lease = lease_on(engine, clock)
    await lease.renew()
    clock.now += LEASE_S / 2

    def dawdle() -> None:
        clock.now += LEASE_S / 2

    engine.creating = dawdle
    await lease.renew()
    assert (lease.holds, lease.lapses) == (True, 1)
    engine.creating = lambda: None
    await lease.release()
    assert engine.kept == {}


async def test_engine_that_is_away_opens_nothing(engine: FakeEngine, clock: Clock) -> None:
    """Without a lease that holds nothing is made: a reaper would end it."""
    lease = lease_on(engine, clock)
    await lease.renew()
    clock.now += LEASE_S
    engine.failure = Unavailable("away")
    with pytest.raises(Unavailable):
        await lease.hold()
    assert not lease.holds


@pytest.mark.parametrize("failure", [Unavailable("away"), Refused("in use")])
async def test_failed_renewal_is_no_end(engine: FakeEngine, clock: Clock, failure: Exception) -> None:
    """An engine that fails for a while costs nothing as long as it is back before the lease ends."""
    lease = lease_on(engine, clock)
    await lease.renew()
    clock.now += LEASE_S / 3
    engine.failure = failure
    with pytest.raises(type(failure)):
        await lease.renew()
    assert lease.holds
    assert lease.in_doubt, "a slow engine may have made it all the same"
    engine.failure = None
    clock.now += LEASE_S / 3
    await lease.renew()
    clock.now += LEASE_S / 2
    assert lease.holds


@pytest.mark.parametrize("failure", [Unavailable("away"), Refused("in use")])
async def test_beat_goes_on_after_a_failure(
    engine: FakeEngine, clock: Clock, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an attempt to renew fails by, the next one is made, also after a lapse, until it is released."""
    naps = 0

    async def nap(_: float) -> bool:
        nonlocal naps
        await asyncio.sleep(0)
        naps += 1
        engine.failure = failure if naps < 4 else None
        clock.now += LEASE_S if naps == 6 else 1
        return naps == 8

    lease = lease_on(engine, clock)
    await lease.renew()
    monkeypatch.setattr(lease, "_released_within", nap)
    beats: list[int] = []

    async def after_beat() -> None:
        beats.append(naps)

    await lease._renew_for_ever(after_beat)
    assert (naps, lease.lapses) == (8, 1)
    assert beats == [4, 5, 6, 7], "called after every renewal that worked, and only then"


async def test_beat_goes_on_beside_what_follows_it(
    engine: FakeEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chamber that the engine cannot end, and so says nothing of, takes the lease from none of the others."""
    lease = lease_on(engine, clock)
    lease._seconds = 86_400  # any part of which would be a hang
    await lease.renew()
    naps = followed = 0

    async def nap(_: float) -> bool:
        nonlocal naps
        await asyncio.sleep(0)
        naps += 1
        return naps == 5

    async def hangs() -> None:
        nonlocal followed
        followed += 1
        await asyncio.Event().wait()

    renewed: list[int] = []

    async def renew() -> None:
        renewed.append(naps)

    monkeypatch.setattr(lease, "_released_within", nap)
    monkeypatch.setattr(lease, "renew", renew)
    await asyncio.wait_for(lease._renew_for_ever(hangs), 60)
    assert renewed == [1, 2, 3, 4]
    assert followed == 1, "one at a time"


@pytest.mark.parametrize(("failures", "answer_s"), [(1, LEASE_S / 4), (2, LEASE_S / 24)])
async def test_failed_renewal_is_tried_again_in_time(
    engine: FakeEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch, failures: int, answer_s: float
) -> None:
    """An engine that fails after a quarter of the lease, once or twice, and then takes its time, costs no lease."""
    lease = lease_on(engine, clock)
    await lease.renew()
    tries = 0

    def dawdle() -> None:
        nonlocal tries
        tries += 1
        clock.now += LEASE_S / 4 if tries <= failures else answer_s
        if tries <= failures:
            raise Unavailable("the engine does not answer")

    held: list[bool] = []

    async def nap(seconds: float) -> bool:
        clock.now += seconds
        held.append(lease.holds)
        return tries > failures

    async def after_beat() -> None:
        pass

    engine.creating = dawdle
    monkeypatch.setattr(lease, "_released_within", nap)
    await lease._renew_for_ever(after_beat)
    assert (held, lease.lapses) == ([True] * (failures + 2), 0)


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


async def test_release_waits_for_a_renewal_that_is_under_way(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its volume would come when nobody removes it any more."""
    engine = SlowEngine()
    engine.lets.set()
    lease = lease_on(engine, clock)

    async def nap(_: float) -> bool:
        await asyncio.sleep(0)
        return lease._released.is_set()

    async def after_beat() -> None:
        pass

    monkeypatch.setattr(lease, "_released_within", nap)
    await lease.acquire(after_beat)
    engine.asked.clear()
    engine.lets.clear()
    await engine.asked.wait()
    releasing = asyncio.create_task(lease.release())
    await asyncio.sleep(0)
    assert not releasing.done()
    engine.lets.set()
    await releasing
    assert engine.kept == {}


async def test_reap_ends_only_what_lapsed(engine: FakeEngine, clock: Clock) -> None:
    """Chambers and leases of lapsed owners go, of owners without any lease too; a live one's stay."""
    dead, live = lease_on(engine, clock), lease_on(engine, clock)
    await dead.renew()
    clock.now += LEASE_S / 2
    await live.renew()
    engine.run("of-dead", dead.owner)
    engine.run("of-live", live.owner)
    engine.run("of-nobody", "somebody")
    assert await reaped(engine, clock) == ["of-nobody"]
    clock.now += LEASE_S / 2
    ended = await reaped(engine, clock)
    assert sorted(engine.running) == ["of-live"]
    assert len(engine.kept) == 1
    assert ended[0] == "of-dead"
    assert len(ended) == 2
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


async def test_reap_says_only_what_it_ended(engine: FakeEngine, clock: Clock) -> None:
    """A chamber that somebody else removed first is not claimed; one without a name is called by its id."""
    engine.run("a", "gone")
    engine.running["nameless"] = {"Id": "nameless", "Names": [], "Labels": {OWNER_LABEL: "gone"}}
    assert await reaped(engine, clock) == ["a", "nameless"]
    engine.run("b", "gone")
    listed = await engine.containers(OWNER_LABEL)
    engine.running.clear()

    async def stale(_: str) -> Sequence[Mapping[str, Any]]:
        return listed

    engine.containers = stale  # type: ignore[method-assign, assignment]  # a list that is out of date when it is used
    assert await reaped(engine, clock) == []


async def test_reap_says_what_it_could_not_end(engine: FakeEngine, clock: Clock) -> None:
    """One that the engine does not let go keeps nobody from ending the others."""
    engine.run("a", "gone")
    engine.run("b", "gone")
    engine.kept |= {name: {OWNER_LABEL: "gone", EXPIRY_LABEL: "0"} for name in ("old", "older")}
    remove, remove_volume = engine.remove, engine.remove_volume

    async def stubborn(container: str) -> bool:
        if container == "a":
            raise Unavailable("a is busy")
        return await remove(container)

    async def clinging(name: str) -> None:
        if name == "old":
            raise Refused("volume is in use")
        await remove_volume(name)

    engine.remove = stubborn  # type: ignore[method-assign]  # an engine with a will of its own
    engine.remove_volume = clinging  # type: ignore[method-assign]  # likewise
    assert await reap(cast("Engine", engine), clock) == (["b", "older"], ["a", "old"])


async def test_reap_with_a_label_that_is_no_time(engine: FakeEngine, clock: Clock) -> None:
    """A lease that says nonsense holds nothing."""
    engine.kept["odd"] = {OWNER_LABEL: "odd", EXPIRY_LABEL: "tomorrow"}
    assert await reaped(engine, clock) == ["odd"]
