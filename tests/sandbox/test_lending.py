"""Who has which GPU of an engine: no two chambers share one, within an owner and between owners."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from sandbox import Gpu, Refused, Unavailable
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.gpus import EVERY_GPU, claims, gpu_label
from sandbox.backends.lending import Gpus, Taken, refuse_taken
from sandbox.gpus import SeenGpu
from sandbox.live import LiveChamber

MIXED = [SeenGpu("Tesla T4", 15_360, "GPU-t"), SeenGpu("NVIDIA A10", 23_028, "GPU-a"), SeenGpu("Tesla T4", id="GPU-u")]


class Containers:
    """What of an engine is looked at: containers with their labels."""

    def __init__(self) -> None:
        self.there: dict[str, dict[str, str]] = {}

    async def containers(self, label: str) -> Sequence[Mapping[str, Any]]:
        await asyncio.sleep(0)
        return [{"Id": name, "Labels": labels} for name, labels in self.there.items() if label in labels]


class Owner:
    """One backend's GPUs on a pretended engine; its chambers are names of containers."""

    def __init__(self, engine: Containers, wait_s: float = 60.0) -> None:
        self.engine = engine
        self.gpus = Gpus(wait_s, poll_s=0.0)
        self.looks = 0
        self.made = 0

    async def look(self) -> Sequence[SeenGpu]:
        self.looks += 1
        await asyncio.sleep(0)
        return MIXED

    async def make(self, ids: tuple[str, ...]) -> LiveChamber:
        self.made += 1
        name = f"{id(self)}-{self.made}"
        self.engine.there[name] = gpu_label(ids)
        await asyncio.sleep(0)
        try:
            refuse_taken(name, ids, await claims(cast(Engine, self.engine)))
        except Taken:
            del self.engine.there[name]
            self.gpus.give_back(ids)
            raise
        made: Any = (name, ids)
        return cast(LiveChamber, made)

    async def open(self, wanted: str) -> tuple[str, tuple[str, ...]]:
        made: Any = await self.gpus.open(Gpu.parse(wanted), self.look, self.make)
        return cast(tuple[str, tuple[str, ...]], made)

    def end(self, chamber: tuple[str, tuple[str, ...]]) -> None:
        del self.engine.there[chamber[0]]
        self.gpus.give_back(chamber[1])


async def settled(task: "asyncio.Task[Any]") -> bool:
    for _ in range(20):
        await asyncio.sleep(0)
    return task.done()


async def test_each_chamber_has_its_own() -> None:
    """Two of one kind get one each; a third waits until one of them ends, and gets that one."""
    owner = Owner(Containers())
    first, second = await owner.open("T4:1"), await owner.open("T4:1")
    assert {first[1], second[1]} == {("GPU-t",), ("GPU-u",)}
    third = asyncio.create_task(owner.open("T4:1"))
    assert not await settled(third)
    owner.end(second)
    assert (await third)[1] == second[1]
    assert owner.looks == 1


async def test_several_at_once() -> None:
    """Two GPUs for one chamber are given together, never one first and the other later."""
    owner = Owner(Containers())
    one = await owner.open("T4:1")
    both = asyncio.create_task(owner.open("T4:2"))
    assert not await settled(both)
    other = await owner.open("A10:1")
    owner.end(one)
    assert set((await both)[1]) == {"GPU-t", "GPU-u"}
    assert other[1] == ("GPU-a",)


@pytest.mark.parametrize("wanted", ["T4:3", "H100:1", "any:4"])
async def test_more_than_there_are(wanted: str) -> None:
    """What the engine does not have is refused at once, with what it has."""
    owner = Owner(Containers())
    with pytest.raises(Refused, match=f"wanted {wanted}, there is Tesla T4, NVIDIA A10, Tesla T4"):
        await owner.open(wanted)
    assert owner.made == 0


async def test_one_that_is_cancelled_takes_nothing() -> None:
    """A job that is given up while it waits leaves the GPU to the next."""
    owner = Owner(Containers())
    first = await owner.open("A10:1")
    waiting = asyncio.create_task(owner.open("A10:1"))
    await settled(waiting)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    owner.end(first)
    assert (await owner.open("A10:1"))[1] == ("GPU-a",)


async def test_another_owner_is_seen() -> None:
    """What another owner's chamber has is passed over while there is another GPU, and waited for when there is none."""
    engine = Containers()
    ours, theirs = Owner(engine), Owner(engine)
    taken = await theirs.open("T4:1")
    assert not set((await ours.open("T4:1"))[1]) & set(taken[1])
    waiting = asyncio.create_task(ours.open("A10:1"))
    await settled(waiting)
    assert (await waiting)[1] == ("GPU-a",)
    late = asyncio.create_task(theirs.open("A10:1"))
    assert not await settled(late)
    ours.end(await waiting)
    assert (await late)[1] == ("GPU-a",)


async def test_another_owner_that_does_not_end() -> None:
    """In the end it is a failure of the provider, not of the program: the attempt is tried again."""
    engine = Containers()
    await Owner(engine).open("A10:1")
    with pytest.raises(Unavailable, match="GPU-a is in use by another owner"):
        await Owner(engine, wait_s=-1).open("A10:1")


async def test_nobody_ever_shares() -> None:
    """Many jobs of two owners, of all shapes at once: each ends, and no GPU ever has two chambers."""
    engine = Containers()
    owners = [Owner(engine), Owner(engine)]

    async def job(number: int) -> None:
        owner = owners[number % 2]
        chamber = await owner.open(("any:1", "T4:1", "any:2", "A10:1", "any:3")[number % 5])
        assert not used & set(chamber[1])
        used.update(chamber[1])
        for _ in range(3):
            await asyncio.sleep(0)
        used.difference_update(chamber[1])
        owner.end(chamber)

    used: set[str] = set()
    async with asyncio.timeout(60):
        await asyncio.gather(*(job(number) for number in range(40)))
    assert not engine.there


async def test_a_failed_look_is_no_answer() -> None:
    """An engine that failed once is asked again. A GPU that cannot be named cannot be given to one chamber alone, and
    the chamber that looks at all of them holds none.
    """
    owner = Owner(Containers())

    async def fails() -> Sequence[SeenGpu]:
        raise Unavailable("down")

    with pytest.raises(Unavailable, match="down"):
        await owner.gpus.open(Gpu(), fails, owner.make)
    assert await owner.open("any:1")

    async def nameless() -> Sequence[SeenGpu]:
        return [SeenGpu("NVIDIA H200")]

    with pytest.raises(Refused, match="there is NVIDIA H200"):
        await Owner(Containers()).gpus.open(Gpu(), nameless, owner.make)
    assert gpu_label(EVERY_GPU) == gpu_label(()) == {}
