"""What a machine costs: quoted, told, set aside, landed and charged; nothing is charged that was not set aside."""

import asyncio
from pathlib import Path

import pytest

from sandbox import Bundle, Job, Limits, Refused, Unavailable
from sandbox.backends.skypilot import rent
from tests.sandbox.skypilot.connecting import Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

JOB = Job(command=("true",), limits=Limits(wall=5))
LARGER = Job(command=("true",), limits=Limits(wall=5, cpus=4))


def paper(quoted: float | None = 3600.0, usd_per_hour: float = 3600.0) -> Yard:
    return Yard(lambda _: PaperMachine(), usd_per_hour, quoted)


async def test_the_ceiling(tmp_path: Path) -> None:
    """What costs more than allowed is refused with both numbers, what has no price too; neither is launched."""
    yard = paper()
    backend = await connected(YardProvisioner(yard), settings(tmp_path, usd_per_hour=10))
    with pytest.raises(Refused, match=r"\$3600 an hour.*ceiling is \$10"):
        await backend.open(JOB)
    yard.quoted = None
    other = await connected(YardProvisioner(yard), settings(tmp_path, usd_per_hour=10))
    with pytest.raises(Refused, match="knows no price"):
        await other.open(JOB)
    assert yard.launched == []
    await asyncio.gather(backend.close(), other.close())


async def test_a_dearer_machine_than_was_quoted(tmp_path: Path) -> None:
    """SkyPilot is told the ceiling; a machine that costs more all the same is given back at once."""
    yard = paper(quoted=5.0, usd_per_hour=50.0)
    backend = await connected(YardProvisioner(yard), settings(tmp_path, usd_per_hour=10))
    assert await backend.usd_per_second(JOB.limits) == 10 / 3600
    with pytest.raises(Refused, match=r"costs \$50 an hour, but \$10 was set aside"):
        await backend.open(JOB)
    assert yard.launched[0][1].most_usd_per_hour == pytest.approx(10, rel=1e-3)
    assert yard.clusters == {}
    await backend.close()


@pytest.mark.parametrize("warm", [0, 1])
async def test_no_quote_and_a_price_after_all(warm: int, tmp_path: Path) -> None:
    """Nothing was set aside, so a machine that turns out to cost something is ended, and nothing is booked."""
    yard = paper(quoted=None)
    backend = await connected(YardProvisioner(yard), settings(tmp_path, warm=warm))
    backend.purse = purse = Purse(usd=0.0)
    with pytest.raises(Refused, match=r"costs \$3600 an hour, but \$0 was set aside") as caught:
        await backend.open(JOB)
    assert caught.value.usd == 0.0
    assert yard.clusters == {}
    assert [purse.settled[name] for name in purse.reserved] == [[0.0]] * warm
    await backend.close()


async def test_a_virtual_machine_without_a_price(tmp_path: Path) -> None:
    """A cluster of one's own may be free, a cloud is not: where its price is not known, nothing is launched."""
    yard = paper(quoted=None, usd_per_hour=0.0)
    cloud = await connected(YardProvisioner(yard), settings(tmp_path, infra="aws"))
    with pytest.raises(Refused, match="knows no price at aws"):
        await cloud.open(JOB)
    assert yard.launched == []
    own = await connected(YardProvisioner(yard), settings(tmp_path))
    async with await own.open(JOB) as chamber:
        assert (await chamber.run(Bundle({}))).usage.usd == 0.0
    await asyncio.gather(cloud.close(), own.close())


async def test_a_machine_that_lost_its_price(tmp_path: Path) -> None:
    """What was quoted is charged when SkyPilot knows no price of what came."""
    backend = await connected(YardProvisioner(paper(usd_per_hour=0.0)), settings(tmp_path))
    async with await backend.open(JOB) as chamber:
        assert (await chamber.run(Bundle({}))).usage.usd > 0
    await backend.close()


async def test_a_price_that_rises_after_money_was_set_aside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is rented costs no more than whoever sets money aside was told; a lower price is welcome."""
    monkeypatch.setattr(rent, "_QUOTE_S", 0.0)
    yard = paper(quoted=10.0, usd_per_hour=10.0)
    backend = await connected(YardProvisioner(yard), settings(tmp_path))
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
    await backend.close()


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


async def test_cancelled_while_one_makes_room(tmp_path: Path) -> None:
    """A cluster that is ended to make room is settled for what it cost, whoever stops waiting meanwhile."""
    provisioner = SlowDown(paper())
    backend = await connected(provisioner, settings(tmp_path, warm=1))
    backend.purse = purse = Purse()
    async with await backend.open(JOB) as chamber:
        await chamber.run(Bundle({"a": b"b"}))
    opening = asyncio.create_task(backend.open(LARGER))
    await provisioner.ending.wait()
    opening.cancel()
    with pytest.raises((asyncio.CancelledError, Unavailable)):
        await opening
    closing = asyncio.create_task(backend.close())
    provisioner.go_on.set()
    await closing
    assert provisioner.yard.clusters == {}
    assert [len(told) for told in purse.settled.values()] == [1]
    assert purse.settled.keys() == purse.reserved.keys()
