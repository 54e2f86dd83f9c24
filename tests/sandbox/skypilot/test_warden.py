"""Who ends an owner's machines when the owner is gone: patient, and thorough."""

import asyncio
from pathlib import Path

import pytest

from sandbox import Refused
from sandbox.backends.skypilot.names import name_for
from sandbox.backends.skypilot.warden import end_all
from sandbox.tenancy import Mark
from tests.sandbox.skypilot.connecting import JOB, Connect, connected, settings
from tests.sandbox.skypilot.yard import Yard, YardProvisioner
from tests.virtual_time import VirtualTime

pytestmark = pytest.mark.touching("skypilot")


async def test_the_warden_looks_more_than_once(owner: Connect, yard: Yard) -> None:
    """It ends its owner's clusters and launches, one that comes late included, and nobody else's."""
    mine, other = await owner(), await owner()
    await mine.open(JOB)
    kept = await other.open(JOB)
    late = asyncio.create_task(_ask_late(yard, mine.owner))
    assert await end_all(mine.owner, YardProvisioner(yard), patience_s=20, pause_s=0.02) == 2
    await late
    assert list(yard.clusters) == [kept.name]


async def _ask_late(yard: Yard, owner: str) -> None:
    await asyncio.sleep(0.03)
    yard.ask(name_for(Mark(owner, "0" * 8, 0)), yard.launched[0][1])


def test_one_cluster_that_can_not_be_ended_does_not_keep_the_warden_from_the_others(
    tmp_path: Path, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever SkyPilot says of it, a refusal too: the rest is ended, and it is tried again in each round. A server
    that does not answer for a while is asked again.
    """
    VirtualTime(monkeypatch).run(_one_that_can_not_be_ended(tmp_path, yard))


async def _one_that_can_not_be_ended(tmp_path: Path, yard: Yard) -> None:
    backend = await connected(YardProvisioner(yard), settings(tmp_path))
    stuck, *_ = sorted([(await backend.open(JOB)).name for _ in range(3)])
    warden, tries = YardProvisioner(yard), 0
    down = warden.down

    async def refusing(name: str) -> None:
        nonlocal tries
        if name == stuck:
            tries += 1
            raise Refused("down: not supported")
        await down(name)

    yard.answers = False
    asyncio.get_running_loop().call_later(30, setattr, yard, "answers", True)
    warden.down = refusing  # type: ignore[method-assign]  # one cluster that SkyPilot does not end
    assert await end_all(backend.owner, warden, patience_s=240) == 2
    assert list(yard.clusters) == [stuck]
    assert tries > 5, "five tries are one round"
    await backend.close()
