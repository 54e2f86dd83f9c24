"""Trials on rented machines: a cluster each against one warm cluster, and what drawn faults leave behind.

SkyPilot itself rents from a Slurm cluster of one node that is brought up for this. All of it runs on this machine.
"""

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from sandbox import Bundle, Job, Limits, SkyPilotConfig
from sandbox.backends.skypilot import machine as skypilot_machine
from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.job import Ending
from tests.sandbox.skypilot.connecting import Purse

if TYPE_CHECKING:
    from private_slurm import PrivateSlurm

FRESH = 3
WARM = 6
DRAWN = 100  # faults at drawn steps
LIMITS = Limits(wall=30, memory="64MiB", work_bytes="16MiB")
JOB = Job(command=("sh", "-c", "echo 42 >$BLASTDOOR_OUT/answer"), limits=LIMITS)


@contextlib.contextmanager
def _environment(cluster: "PrivateSlurm") -> Iterator[None]:
    before = dict(os.environ)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(cluster.environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _trial_s(backend: SkyPilotBackend) -> float:
    """As a caller waits for it: from the wish for a chamber to the outcome, with the machine given back."""
    started = time.monotonic()
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(Bundle({}))
    if outcome.ending is not Ending.COMPLETED or outcome.outputs != {"answer": b"42\n"}:
        raise RuntimeError(f"the trial did not go as it should: {outcome}")
    return time.monotonic() - started


async def _trials_s(cluster: "PrivateSlurm", folder: Path, count: int, warm: int) -> list[float]:
    config = SkyPilotConfig(infra=cluster.infra, owners_folder=folder / "owners", inputs_folder=folder / "i", warm=warm)
    backend = await SkyPilotBackend.connect(config)
    backend.purse = Purse()
    try:
        return [await _trial_s(backend) for _ in range(count)]
    finally:
        await backend.close()


async def _unclean(folder: Path) -> tuple[int, int]:
    """Runs on a provisioner of our own with a fault each, and how many left a machine or a wrong bill."""
    from tests.sandbox.skypilot.test_faults import one_fault

    pause, skypilot_machine.TRY_PAUSE_S = skypilot_machine.TRY_PAUSE_S, 0.001
    struck = unclean = seed = 0
    try:
        while struck < DRAWN:
            seed += 1
            try:
                struck += (await one_fault(seed, folder / str(seed), seed % 2)).struck > 0
            except AssertionError as error:
                print(f"seed {seed}: {error}")
                struck, unclean = struck + 1, unclean + 1
    finally:
        skypilot_machine.TRY_PAUSE_S = pause
    return struck, unclean


async def measure() -> list[Figure]:
    import private_slurm

    with (
        tempfile.TemporaryDirectory(prefix="blastdoor-bench-") as name,
        private_slurm.slurm(Path(name) / "apt.log") as cluster,
        _environment(cluster),
    ):
        folder = Path(name)
        fresh = await _trials_s(cluster, folder / "fresh", FRESH, warm=0)
        first, *warm = await _trials_s(cluster, folder / "warm", WARM + 1, warm=1)
        struck, unclean = await _unclean(folder / "stubbed")
    each, reused = statistics.median(fresh), statistics.median(warm)
    return [
        Figure("SkyPilot on Slurm: a trial with a cluster of its own", each, "s"),
        Figure("SkyPilot on Slurm: the first trial on a warm cluster, which is launched for it", first, "s"),
        Figure("SkyPilot on Slurm: a trial on a warm cluster", reused, "s"),
        Figure("SkyPilot on Slurm: a cluster each / a warm cluster", each / reused, "x", ">= 2"),
        Figure(f"SkyPilot, stubbed: unclean after {struck} faults at drawn steps", unclean, "", "<= 0"),
    ]
