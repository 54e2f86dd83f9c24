"""Clusters that stand: lent only while they last, and waiting for one costs nothing."""

import asyncio
import time
from pathlib import Path

import pytest

from sandbox import Bundle, Job, Limits, Unavailable
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.chamber import box_seconds
from sandbox.backends.skypilot.machine import Machine
from sandbox.link import Deadlines
from tests.sandbox.skypilot.connecting import Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner
from tests.virtual_time import VirtualTime

pytestmark = pytest.mark.touching("skypilot")

JOB = Job(command=("true",), limits=Limits(wall=5))
SPARE_S = 300 + 120 + 300  # sent, submitted, brought back


def paper() -> Yard:
    return Yard(lambda _: PaperMachine())


async def trial(backend: SkyPilotBackend, after_s: float = 0.0) -> str:
    """The cluster on which it ran, so long after now by the pool's own clock."""
    backend._pool._clock = lambda: time.time() + after_s
    async with await backend.open(JOB) as chamber:
        await chamber.run(Bundle({}))
    return chamber.name


def machine_of(backend: SkyPilotBackend) -> Machine:
    (item,) = backend._pool._standing
    assert item.rented
    assert item.rented.machine
    return item.rented.machine


@pytest.mark.parametrize(("after_s", "lasts"), [(500.0, True), (700.0, False)])
async def test_one_that_is_about_to_end_itself_as_idle_is_not_lent(after_s: float, lasts: bool, tmp_path: Path) -> None:
    """Autodown counts from the last submission: who would not be done before is given another, and it is ended."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1, autodown=600))
    backend.purse = Purse()
    first = await trial(backend)
    assert yard.launched[0][1].idle_s == box_seconds(JOB) + 600 + SPARE_S
    second = await trial(backend, after_s)
    assert (second == first) is lasts
    assert list(yard.clusters) == [second]
    await backend.close()


@pytest.mark.parametrize(("left_s", "lasts"), [(30.0, True), (-30.0, False)])
async def test_one_that_is_about_to_end_for_good_is_not_lent(left_s: float, lasts: bool, tmp_path: Path) -> None:
    """The trial must be sent, submitted, run and brought back before the cluster's absolute end."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = Purse()
    first = await trial(backend)
    machine_of(backend).submitted = time.time() + 1e6  # no autodown before
    ends = yard.launched[0][1].ends
    second = await trial(backend, ends - time.time() - box_seconds(JOB) - SPARE_S - left_s)
    assert (second == first) is lasts
    await backend.close()


async def test_a_submission_puts_the_end_off(tmp_path: Path) -> None:
    """What counts is the last one, not the launch."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1, autodown=600))
    backend.purse = Purse()
    first = await trial(backend)
    machine_of(backend).submitted -= 10_000
    assert await trial(backend, -9_500) == first
    assert machine_of(backend).submitted > time.time() - 60
    await backend.close()


def test_who_waits_in_vain_hears_it_before_giving_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a chamber gives up after so long: by then we have said what to change, and that it cost nothing."""
    VirtualTime(monkeypatch).run(_who_waits_in_vain(tmp_path))


async def _who_waits_in_vain(tmp_path: Path) -> None:
    yard = paper()
    config = settings(tmp_path, warm=1, deadlines=Deadlines(provision=900.0, upload=300.0, collect=300.0))
    backend = await connected(YardProvisioner(yard), config)
    backend.purse = Purse()
    async with await backend.open(JOB):
        opening = asyncio.create_task(backend.open(JOB))
        await asyncio.wait([opening], timeout=config.terms.opening_s)
        with pytest.raises(Unavailable, match="raise --standing, or lower --width") as caught:
            opening.result()
        assert (caught.value.usd, caught.value.unended) == (0.0, False)
    assert len(yard.launched) == 1
    await backend.close()


class Slow(PaperMachine):
    """It takes long to be furnished."""

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        if "furnish.sh" in command:
            await asyncio.sleep(60)
        return await super().call(command, cap, timeout)


@pytest.mark.parametrize("busy", [True, False])
async def test_giving_up_on_a_standing_cluster_costs_nothing(busy: bool, tmp_path: Path) -> None:
    """Neither while one is waited for nor while it is made: the campaign's purse pays for it, and the trial is told."""
    yard = Yard(lambda _: PaperMachine() if busy else Slow())
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1))
    backend.purse = purse = Purse()
    if busy:
        await backend.open(JOB)
    opening = asyncio.create_task(backend.open(JOB))
    await asyncio.sleep(0.1)
    opening.cancel()
    with pytest.raises(Unavailable, match="cost nothing") as caught:
        await opening
    assert (caught.value.usd, caught.value.unended) == (0.0, False)
    await backend.close()
    assert purse.settled.keys() == purse.reserved.keys()
