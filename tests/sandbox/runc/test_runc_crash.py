"""After a SIGKILL of the orchestrator, at whichever step, nothing runs on and nothing is left."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from sandbox import RuncConfig
from sandbox.backends.runc.cgroups import Cgroups
from sandbox.backends.runc.estate import MEMORY, group_of, owners
from tests.sandbox.runc.conftest import comes_true

pytestmark = [pytest.mark.docker, pytest.mark.crash]

OWNER = Path(__file__).with_name("doomed_runc_owner.py")
STEPS = ["connected", "folder", "lobby", "starting", "started", "run"]


async def doomed(runtime: str, folder: Path, *steps: str) -> dict[str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(OWNER),
        runtime,
        str(folder),
        *steps,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 240)
    found = dict(line.split()[:2] for line in out.decode().splitlines() if line.split()[0] in steps)
    assert set(found) == set(steps), f"an owner did not come so far: {out!r}"
    return found


def left_of(folder: Path, owner: str) -> list[str]:
    """Processes, groups, folders and the lock of an owner."""
    cgroups = Cgroups.of_this_machine()
    found = [f"process {pid}" for pid in cgroups.processes(group_of(owner))]
    found += ["group"] if cgroups.exists(group_of(owner)) else []
    found += ["folder"] if owner in owners(folder) else []
    found += ["memory"] if (MEMORY / f"blastdoor-{owner}").exists() else []
    return found + (["lock"] if (folder / "owners" / owner).exists() else [])


@pytest.mark.parametrize("runtime", ["runc", "crun"])
async def test_nothing_is_left(runtime: str, tmp_path: Path) -> None:
    """The warden ends what a killed owner left, even with a candidate that keeps its own stdin open."""
    found = await doomed(runtime, tmp_path, *STEPS)

    def left() -> dict[str, list[str]]:
        return {step: left for step, owner in found.items() if (left := left_of(tmp_path, owner))}

    assert await comes_true(lambda: not left()), left()


@pytest.mark.parametrize("runtime", ["runc", "crun"])
async def test_next_owner_cleans_up(runtime: str, tmp_path: Path) -> None:
    """Where the warden died as well, the next one that connects ends what is left, and says so."""
    owner = (await doomed(runtime, tmp_path, "unguarded"))["unguarded"]
    assert left_of(tmp_path, owner)
    backend = await RuncConfig(folder=tmp_path).connect()
    await backend.close()
    assert [name for name in backend.reaped if owner in name]
    assert not left_of(tmp_path, owner)


@pytest.mark.parametrize("runtime", ["runc", "crun", "runsc"])
async def test_a_forgotten_chamber_ends_at_its_longest_life(runtime: str, tmp_path: Path) -> None:
    """Owner and warden are killed, and its own stdin is held open in there: the keeper ends it at that time."""
    owner = (await doomed(runtime, tmp_path, "forgotten"))["forgotten"]
    cgroups = Cgroups.of_this_machine()
    [life] = (tmp_path / "chambers" / owner).glob("*/life")
    group = group_of(owner, life.parent.name)
    assert cgroups.processes(group)
    assert int(life.read_text()) > 3_600
    life.write_text("1\n")
    assert await comes_true(lambda: not cgroups.processes(group)), "it runs on"
    assert await comes_true(lambda: not cgroups.processes(group_of(owner))), "the keeper stays"
    backend = await RuncConfig(folder=tmp_path).connect()
    await backend.close()
    assert not left_of(tmp_path, owner)
