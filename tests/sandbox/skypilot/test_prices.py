"""What a machine costs: quoted, told, set aside, landed and charged; nothing is charged that was not set aside."""

import asyncio

import pytest

from sandbox import Job, Limits, Refused, Unavailable
from sandbox.backends.skypilot import rent
from tests.sandbox.skypilot.connecting import JOB, Connect, Purse, trial
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

LARGER = Job(command=("true",), limits=Limits(wall=5, cpus=4))


async def test_the_ceiling(owner: Connect, yard: Yard) -> None:
    """What costs more than allowed is refused with both numbers, what has no price too; neither is launched."""
    with pytest.raises(Refused, match=r"\$3600 an hour.*ceiling is \$10"):
        await (await owner(usd_per_hour=10)).open(JOB)
    yard.quoted = None
    with pytest.raises(Refused, match="knows no price"):
        await (await owner(usd_per_hour=10)).open(JOB)
    assert yard.launched == []


async def test_a_dearer_machine_than_was_quoted(owner: Connect, yard: Yard) -> None:
    """SkyPilot is told the ceiling; a machine that costs more all the same is given back at once."""
    yard.quoted, yard.usd_per_hour = 5.0, 50.0
    backend = await owner(usd_per_hour=10)
    assert await backend.usd_per_second(JOB.limits) == 10 / 3600
    with pytest.raises(Refused, match=r"costs \$50 an hour, but \$10 was set aside"):
        await backend.open(JOB)
    assert yard.launched[0][1].most_usd_per_hour == pytest.approx(10, rel=1e-3)
    assert yard.clusters == {}


@pytest.mark.parametrize("warm", [0, 1])
async def test_no_quote_and_a_price_after_all(warm: int, owner: Connect, yard: Yard) -> None:
    """Nothing was set aside, so a machine that turns out to cost something is ended, and nothing is booked."""
    yard.quoted = None
    backend = await owner(warm=warm)
    backend.purse = purse = Purse(usd=0.0)
    with pytest.raises(Refused, match=r"costs \$3600 an hour, but \$0 was set aside") as caught:
        await backend.open(JOB)
    assert (caught.value.usd, yard.clusters) == (0.0, {})
    assert [purse.settled[name] for name in purse.reserved] == [[0.0]] * warm


async def test_a_virtual_machine_without_a_price(owner: Connect, yard: Yard) -> None:
    """A cluster of one's own may be free, a cloud is not: where its price is not known, nothing is launched."""
    yard.quoted, yard.usd_per_hour = None, 0.0
    with pytest.raises(Refused, match="knows no price at aws"):
        await (await owner(infra="aws")).open(JOB)
    assert yard.launched == []
    assert (await trial(await owner()))[1].usage.usd == 0.0


async def test_a_machine_that_lost_its_price(owner: Connect, yard: Yard) -> None:
    """What was quoted is charged when SkyPilot knows no price of what came."""
    yard.usd_per_hour = 0.0
    assert (await trial(await owner()))[1].usage.usd > 0


async def test_a_price_that_rises_after_money_was_set_aside(
    monkeypatch: pytest.MonkeyPatch, owner: Connect, yard: Yard
) -> None:
    """What is rented costs no more than whoever sets money aside was told; a lower price is welcome."""
    monkeypatch.setattr(rent, "QUOTE_S", 0.0)
    yard.quoted = yard.usd_per_hour = 10.0
    backend = await owner()
    assert await backend.usd_per_second(JOB.limits) == 10 / 3600
    yard.quoted = yard.usd_per_hour = 5.0
    await (await backend.open(JOB)).kill()
    launched = len(yard.launched)
    yard.quoted = yard.usd_per_hour = 12.0
    for job in (JOB, LARGER):
        with pytest.raises(Refused, match=r"costs \$12 an hour .* now, but money was set aside for \$10"):
            await backend.open(job)
    assert len(yard.launched) == launched
    assert await backend.usd_per_second(JOB.limits) == 12 / 3600
    await (await backend.open(JOB)).kill()


class SlowDown(YardProvisioner):
    """Long enough for somebody to give up meanwhile."""

    def __init__(self, yard: Yard) -> None:
        super().__init__(yard)
        self.ending = asyncio.Event()
        self.go_on = asyncio.Event()

    async def down(self, name: str) -> None:
        self.ending.set()
        await self.go_on.wait()
        await super().down(name)


async def test_cancelled_while_one_makes_room(owner: Connect, yard: Yard) -> None:
    """A cluster that is ended to make room is settled for what it cost, whoever stops waiting meanwhile."""
    provisioner = SlowDown(yard)
    backend = await owner(provisioner, warm=1)
    backend.purse = purse = Purse()
    await trial(backend)
    opening = asyncio.create_task(backend.open(LARGER))
    await provisioner.ending.wait()
    opening.cancel()
    with pytest.raises((asyncio.CancelledError, Unavailable)):
        await opening
    closing = asyncio.create_task(backend.close())
    provisioner.go_on.set()
    await closing
    assert yard.clusters == {}
    assert [len(told) for told in purse.settled.values()] == [1]
    assert purse.settled.keys() == purse.reserved.keys()
