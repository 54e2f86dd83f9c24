"""The keeper ends what nobody else ends, at its time."""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox import Bundle, Job, RuncConfig
from sandbox.backends.runc import keeper
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import LIFE, Estate
from sandbox.backends.runc.keeper import Keeper
from sandbox.errors import Unavailable
from sandbox.job import Ending
from tests.sandbox.runc.conftest import comes_true

pytestmark = pytest.mark.docker


@pytest.fixture
async def estate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Estate]:
    """With a keeper that takes its turn each second."""
    monkeypatch.setattr(keeper, "TURN_S", 1)
    estate = Estate(tmp_path, Cgroups.of_this_machine())
    yield estate
    estate.release()


async def test_a_life_is_counted_down(estate: Estate) -> None:
    """By the keeper's own turns; a file that says nothing, or of a chamber that is gone, keeps it from nothing. It goes
    with its owner's group, and none starts without it.
    """
    warden = Keeper(estate)
    folders = {name: estate.chamber(name, 100) for name in ("a", "b", "c", "d")}
    (folders["a"] / LIFE).write_bytes(b"no number")
    (folders["b"] / LIFE).unlink()
    (folders["c"] / LIFE).write_text("1\n")
    warden.start()
    assert await comes_true(lambda: int((folders["d"] / LIFE).read_text()) < 99)
    assert warden.lives
    estate.release()
    warden.collect()
    assert not warden.lives
    with pytest.raises(Unavailable, match="keeper"):
        Keeper(estate).start()


async def test_a_life_is_never_emptied(estate: Estate) -> None:
    """Anybody may fill the memory that its file is in; what was emptied first might find no room again, and by an empty
    file a chamber lives for ever.
    """
    kept = os.memfd_create("life", os.MFD_ALLOW_SEALING)
    life = estate.chamber("a", 100) / LIFE
    os.write(kept, life.read_bytes())
    fcntl.fcntl(kept, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    life.unlink()
    life.symlink_to(f"/proc/{os.getpid()}/fd/{kept}")
    Keeper(estate).start()
    assert await comes_true(lambda: int(life.read_text()) < 98)
    os.close(kept)


async def test_a_keeper_that_died_is_replaced(tmp_path: Path) -> None:
    """Before the next chamber opens."""
    backend = await RuncConfig(folder=tmp_path).connect()
    try:
        first = backend.keeper.process
        assert first
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        await backend.guarded()
        assert backend.keeper.lives
        assert backend.keeper.process is not first
    finally:
        await backend.close()


async def test_only_its_own_time_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose life is over ends beside one that has time, and is taken for one that ended."""
    monkeypatch.setattr(keeper, "TURN_S", 1)
    backend = await RuncConfig(folder=tmp_path).connect()
    try:
        async with (
            await backend.open(Job(command=("sleep", "2"))) as whole,
            await backend.open(Job(command=("sleep", "60"))) as ended,
        ):
            (backend.estate.folder / ended.name.rpartition("-")[2] / LIFE).write_text("1\n")
            outcomes = await asyncio.gather(whole.run(Bundle({})), ended.run(Bundle({})))
        assert [it.ending is Ending.COMPLETED for it in outcomes] == [True, False]
    finally:
        await backend.close()
