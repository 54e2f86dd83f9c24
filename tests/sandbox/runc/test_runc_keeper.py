"""The keeper ends what nobody else ends, at its time."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import Bundle, Job, RuncConfig
from sandbox.backends.runc import keeper
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import LIFE, Estate
from sandbox.backends.runc.keeper import Keeper
from sandbox.errors import Unavailable
from sandbox.job import Ending

pytestmark = pytest.mark.docker


async def comes_true(look: Callable[[], bool]) -> bool:
    for _ in range(600):
        if look():
            return True
        await asyncio.sleep(0.1)
    return False


async def test_a_life_is_counted_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the keeper's own turns; a file that says nothing, or of a chamber that is gone, keeps it from nothing."""
    monkeypatch.setattr(keeper, "TURN_S", 1)
    estate = Estate(tmp_path, Cgroups.of_this_machine())
    warden = Keeper(estate)
    try:
        folders = {name: estate.chamber(name, 100) for name in ("a", "b", "c", "d")}
        (folders["a"] / "life").write_bytes(b"no number")
        (folders["b"] / "life").unlink()
        (folders["c"] / "life").write_text("1\n")
        warden.start()
        assert await comes_true(lambda: int((folders["d"] / "life").read_text()) < 99)
        assert warden.lives
    finally:
        estate.release()
    warden.collect()
    assert not warden.lives


async def test_a_life_is_never_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may fill the memory that its file is in; what was emptied first might find no room again, and by an empty
    file a chamber lives for ever.
    """
    monkeypatch.setattr(keeper, "TURN_S", 1)
    estate = Estate(tmp_path, Cgroups.of_this_machine())
    warden = Keeper(estate)
    kept = os.memfd_create("life", os.MFD_ALLOW_SEALING)
    try:
        life = estate.chamber("a", 100) / LIFE
        os.write(kept, life.read_bytes())
        fcntl.fcntl(kept, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        life.unlink()
        life.symlink_to(f"/proc/{os.getpid()}/fd/{kept}")
        warden.start()
        assert await comes_true(lambda: int(life.read_text()) < 98)
    finally:
        os.close(kept)
        estate.release()
    warden.collect()


async def test_a_keeper_that_died_is_replaced(tmp_path: Path) -> None:
    """Before the next chamber opens; and none without its group."""
    backend = await RuncConfig(folder=tmp_path).connect()
    try:
        first = backend._keeper._process
        assert first
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        await backend.guarded()
        assert backend._keeper.lives
        assert backend._keeper._process is not first
    finally:
        await backend.close()
    with pytest.raises(Unavailable, match="keeper"):
        Keeper(backend.estate).start()


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
