"""The suite on runtimes that we drive ourselves: all rows and all flags in `make thorough`, the walls always."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox import RuncConfig
from sandbox.attacks import gpu
from sandbox.attacks.hosts import LocalTarget
from sandbox.attacks.mutations import MUTATIONS, run_mutations
from sandbox.attacks.suite import run_suite
from sandbox.posture import FULL

pytestmark = [pytest.mark.docker, pytest.mark.attack]

HAS_GPU = Path("/dev/nvidiactl").exists()
# One of each wall, and what only this backend does itself: the image's settings, realms, files of a chamber's own, the
# end of everything.
BRIEFLY = {"C01", "C02", "T02", "T05", "T09", "T11", "T12", "T97", "T98"}


def target(runtime: str, folder: Path, **more: Any) -> LocalTarget:
    return LocalTarget(RuncConfig.model_validate({"runtime": runtime, "folder": folder, **more}))


@pytest.mark.parametrize("runtime", ["runc", pytest.param("crun", marks=pytest.mark.touching("runc"))])
async def test_the_walls(runtime: str, tmp_path: Path) -> None:
    results = await run_suite(target(runtime, tmp_path), BRIEFLY)
    assert not [(it.attack.title, it.finding) for it in results if not it.good]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("runtime", ["runc", "crun", "runsc"])
async def test_every_row(runtime: str, tmp_path: Path) -> None:
    """No row is left out but those that need a GPU: each looks at the chamber from inside, from outside, or both."""
    results = await run_suite(target(runtime, tmp_path, warm=2))
    missing = {it.attack.attempt.__module__ for it in results if not it.here}
    assert missing == (set() if runtime != "runsc" and HAS_GPU else {gpu.__name__})
    assert not [(it.attack.title, it.finding) for it in results if it.here and not it.good]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("flag", [mutation.flag for mutation in MUTATIONS])
@pytest.mark.parametrize("runtime", ["runc", "crun", "runsc"])
async def test_every_flag_is_noticed(runtime: str, flag: str, tmp_path: Path) -> None:
    (verdict,) = await run_mutations(target(runtime, tmp_path), {flag})
    assert verdict.good, [(it.attack.title, it.finding) for it in verdict.results]


@pytest.mark.touching("runc")
@pytest.mark.parametrize(
    ("off", "hidden"), [(("seccomp",), True), (("own_files",), True), (("seccomp", "own_files"), False)], ids=str
)
async def test_either_of_two_layers_hides_what_is_read(off: tuple[str, ...], hidden: bool, tmp_path: Path) -> None:
    """Without watches, or with files of one's own, a neighbour's reads are not seen; without both they are."""
    posture = replace(FULL, **dict.fromkeys(off, False))
    results = await run_suite(target("runc", tmp_path), {"T98"}, posture=posture)
    (seen,) = [it.finding for it in results if it.attack.title == "see which files of the image a neighbour opens"]
    assert (seen.ran, seen.blocked) == (True, hidden), seen.evidence


async def test_a_flag_that_cannot_be_off_is_said(tmp_path: Path) -> None:
    """Nothing keeps a log here: the check says why, and does not call the flag noticed."""
    (verdict,) = await run_mutations(target("runc", tmp_path), {"log_driver"})
    assert not verdict.red
    assert "no engine" in verdict.unseen
