"""Clusters that stand: lent only while they last, and waiting for one costs nothing. In virtual time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sandbox import Unavailable
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.backends.skypilot.chamber import box_seconds
from sandbox.link import Deadlines
from tests.sandbox.skypilot.connecting import JOB, Connect, Purse, connected, settings, trial
from tests.sandbox.skypilot.grounds import PaperMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner
from tests.virtual_time import VirtualTime

pytestmark = pytest.mark.touching("skypilot")

SPARE_S = 300 + 120 + 300  # sent, submitted, brought back
Story = Callable[[SkyPilotBackend], Awaitable[None]]


@pytest.fixture
def told(tmp_path: Path, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Plays a story with one standing cluster."""

    async def played(story: Story, **wanted: object) -> None:
        backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=1, **wanted))
        backend.purse = Purse()
        await story(backend)
        await backend.close()

    return lambda story, **wanted: VirtualTime(monkeypatch).run(played(story, **wanted))


@pytest.mark.parametrize(("after_s", "lasts"), [(500.0, True), (700.0, False)])
def test_one_that_is_about_to_end_itself_as_idle_is_not_lent(
    after_s: float, lasts: bool, told: Callable[..., None], yard: Yard
) -> None:
    """Autodown counts from the last submission, not from the launch: who would not be done before is given another,
    and that one is ended.
    """

    async def story(backend: SkyPilotBackend) -> None:
        first, _ = await trial(backend)
        assert yard.launched[0][1].idle_s == box_seconds(JOB) + 600 + SPARE_S
        await asyncio.sleep(400)
        assert (await trial(backend))[0] == first
        await asyncio.sleep(after_s)
        second, _ = await trial(backend)
        assert (second == first) is lasts
        assert list(yard.clusters) == [second]

    told(story, autodown=600)


@pytest.mark.parametrize(("left_s", "lasts"), [(30.0, True), (-30.0, False)])
def test_one_that_is_about_to_end_for_good_is_not_lent(
    left_s: float, lasts: bool, told: Callable[..., None], yard: Yard
) -> None:
    """The trial must be sent, submitted, run and brought back before the cluster's absolute end."""

    async def story(backend: SkyPilotBackend) -> None:
        first, _ = await trial(backend)
        ends = yard.launched[0][1].ends
        while (left := ends - time.time() - box_seconds(JOB) - SPARE_S - left_s) > 0:
            await asyncio.sleep(min(left, 300))  # no autodown before
            last, _ = await trial(backend)
        assert (last == first) is lasts

    told(story, lifetime=3600)


def test_who_waits_in_vain_hears_it_before_giving_up(told: Callable[..., None], yard: Yard) -> None:
    """Whoever opens a chamber gives up after so long: by then we have said what to change, and that it cost nothing."""
    deadlines = Deadlines(provision=900.0, upload=300.0, collect=300.0)

    async def story(backend: SkyPilotBackend) -> None:
        async with await backend.open(JOB):
            opening = asyncio.create_task(backend.open(JOB))
            await asyncio.wait([opening], timeout=settings(Path(), deadlines=deadlines).terms.opening_s)
            with pytest.raises(Unavailable, match="raise --standing, or lower --width") as caught:
                opening.result()
            assert (caught.value.usd, caught.value.unended) == (0.0, False)
        assert len(yard.launched) == 1

    told(story, deadlines=deadlines)


class Slow(PaperMachine):
    """It takes long to be furnished."""

    async def call(self, command: str, cap: int, timeout: float) -> tuple[int, bytes]:
        if "furnish.sh" in command:
            await asyncio.sleep(60)
        return await super().call(command, cap, timeout)


@pytest.mark.parametrize("busy", [True, False])
async def test_giving_up_on_a_standing_cluster_costs_nothing(busy: bool, owner: Connect, yard: Yard) -> None:
    """Neither while one is waited for nor while it is made: the campaign's purse pays for it, and the trial is told."""
    yard.make = lambda _: PaperMachine() if busy else Slow()
    backend = await owner(warm=1)
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
