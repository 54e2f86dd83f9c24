"""Whoever gives up on a machine hears of that one whether it ended, and waits for no other."""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import Unavailable
from sandbox.backends.skypilot.machine import written
from sandbox.backends.skypilot.rent import Office
from sandbox.tenancy import Tenancy
from tests.sandbox.skypilot.connecting import JOB, Connect, settings
from tests.sandbox.skypilot.grounds import PaperMachine
from tests.sandbox.skypilot.yard import Fault, Yard, YardProvisioner

pytestmark = pytest.mark.touching("skypilot")


class Held(PaperMachine):
    """Furnishing takes until somebody gives up."""

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        if "furnish.sh" in command:
            await asyncio.sleep(60)
        return await super().call(command, cap, timeout)


class Unfit(PaperMachine):
    """It cannot be made ready."""

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        return (1, b"no engine") if "furnish.sh" in command else await super().call(command, cap, timeout)


class SlowToEnd(YardProvisioner):
    """To end a cluster takes until it is let go."""

    def __init__(self, yard: Yard) -> None:
        super().__init__(yard)
        self.ending: set[str] = set()
        self.let_go: set[str] = set()

    async def down(self, name: str) -> None:
        self.ending.add(name)
        await until(lambda: name in self.let_go)
        await super().down(name)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  the yard tells nobody
            await asyncio.sleep(0.002)


async def test_nobody_waits_for_the_end_of_another_ones(owner: Connect, yard: Yard) -> None:
    """While a trial's machine takes its time to end, who opens gets another one, and who gave up on one that ended
    knows that it has. Only what could not be ended is tried again first.
    """
    grounds = iter([PaperMachine(), PaperMachine(), Held()])
    yard.make = lambda _: next(grounds)
    provisioner = SlowToEnd(yard)
    backend = await owner(provisioner)
    other = await backend.open(JOB)
    killing = asyncio.create_task(other.kill())
    await until(lambda: other.name in provisioner.ending)
    async with asyncio.timeout(60):
        third = await backend.open(JOB)
    opening = asyncio.create_task(backend.open(JOB))
    await until(lambda: len(yard.clusters) == 3)
    (mine,) = set(yard.clusters) - {other.name, third.name}
    opening.cancel()
    await until(lambda: mine in provisioner.ending)
    provisioner.let_go.add(mine)
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert set(yard.clusters) == {other.name, third.name}
    provisioner.let_go |= {other.name, third.name}
    await asyncio.gather(killing, third.kill())


@pytest.mark.parametrize("ground", [Held, Unfit])
async def test_one_that_could_not_be_ended_is_told(ground: type[PaperMachine], owner: Connect, yard: Yard) -> None:
    """Whether its end began when somebody gave up, or was under way already because the machine was no good."""
    yard.make = lambda _: ground()
    ends: list[str] = []

    def no_end(method: str) -> Fault | None:
        ends.extend([method] * (method == "down"))
        return Fault.BEFORE if method == "down" else None

    provisioner = YardProvisioner(yard, no_end)
    backend = await owner(provisioner)
    opening = asyncio.create_task(backend.open(JOB))
    await until(lambda: ends if ground is Unfit else yard.clusters)
    opening.cancel()
    with pytest.raises(Unavailable) as caught:
        await opening
    assert caught.value.unended
    provisioner.fate_of = lambda _: None
    await backend.close()
    assert yard.clusters == {}


async def test_an_end_that_was_cut_short_is_tried_again(owner: Connect, yard: Yard) -> None:
    """Nobody knows of it otherwise: the warden is told that not all has ended, and closing tries again."""
    provisioner = SlowToEnd(yard)
    backend = await owner(provisioner)
    chamber = await backend.open(JOB)
    ending = asyncio.create_task(backend.office.end(chamber.name))
    await until(lambda: provisioner.ending)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert backend.office.left == {chamber.name}
    provisioner.let_go.add(chamber.name)
    await backend.close()
    assert (yard.clusters, backend.office.left) == ({}, frozenset())


async def test_giving_up_while_something_is_written(tmp_path: Path) -> None:
    """A folder is removed when nobody writes to it any more: nothing of a bundle stays, and no other error comes."""
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def write(folder: Path) -> None:
        begun.set()
        go_on.wait(60)
        folder.mkdir(exist_ok=True)
        (folder / "bundle").write_bytes(b"x")
        over.set()

    async def send() -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            await written(write, Path(folder))

    sending = asyncio.create_task(send())
    await until(begun.is_set)
    sending.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await until(over.is_set)
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_what_could_not_be_ended_is_tried_side_by_side(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers nobody is asked for minutes about each; they do not take turns. An error that nobody
    expects is told once the others are over: nothing of ours runs on behind it.
    """
    office = Office(settings(tmp_path), YardProvisioner(yard), Tenancy(tmp_path), 0.0)
    yard.answers = False
    office.hurry()
    assert [await office.end(name) for name in "abc"] == [False] * 3
    all_asked, ended = asyncio.Barrier(3), []

    async def end(name: str) -> bool:
        await all_asked.wait()
        if name == "a":
            raise ZeroDivisionError
        for _ in range(20):
            await asyncio.sleep(0)
        ended.append(name)
        return True

    monkeypatch.setattr(office, "end", end)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(office.close(), 5)
    assert sorted(ended) == ["b", "c"]


async def test_how_long_one_lived_that_was_not_seen_to_end(owner: Connect, yard: Yard) -> None:
    """It is booked at its worst, with its name; SkyPilot's history tells later, no less than is charged."""
    lost = {"reach": Fault.BEFORE, "down": Fault.AFTER, "clusters": Fault.BEFORE}
    away = False
    backend = await owner(YardProvisioner(yard, lambda method: lost.get(method) if away else None))
    chamber = await backend.open(JOB)
    assert await backend.lifetimes({chamber.name: 0.0}) == {}
    backend.office.hurry()
    away = True
    await chamber.kill()
    assert chamber.bill.unseen == chamber.name
    away = False
    await backend.office.end_left()
    never = backend.office.name(60.0)
    assert await backend.lifetimes({never: time.time(), "another": 0.0}) == {}
    told = await backend.lifetimes({chamber.name: 0.0, never: 0.0})
    assert told.keys() == {chamber.name, never}
    assert told[never] == 0.0
    assert yard.bill[chamber.name] <= told[chamber.name] * yard.usd_per_hour / 3600 <= chamber.bill.usd
