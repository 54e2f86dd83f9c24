"""The SkyPilot backend keeps the contract on a machine that is this one, with a real engine; SkyPilot itself is not."""

from pathlib import Path

import pytest

from sandbox.backends.skypilot.backend import SkyPilotBackend
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.skypilot import SkyPilotSubject
from tests.sandbox.skypilot.connecting import connected, settings
from tests.sandbox.skypilot.grounds import ThisMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

pytestmark = pytest.mark.docker

# What only this backend can get wrong; all of it where the backend or the contract changed, and in `make thorough`.
BRIEFLY = ("success_with_outputs", "timeout", "out_of_memory", "orphan_is_reaped")
ROWS = [
    name if name in BRIEFLY else pytest.param(name, marks=pytest.mark.touching("skypilot"))
    for name in CONTRACT
    if name not in SkyPilotSubject.lacks
]


def subject_on(yard: Yard, folder: Path) -> SkyPilotSubject:
    async def connect() -> SkyPilotBackend:
        return await connected(YardProvisioner(yard), settings(folder), paper=False)

    return SkyPilotSubject("slurm/yard", connect)


@pytest.mark.parametrize("row", ROWS)
async def test_row(row: str, tmp_path: Path) -> None:
    yard = Yard(ThisMachine)
    subject = subject_on(yard, tmp_path)
    try:
        await CONTRACT[row](subject)
    finally:
        await subject.close()
    assert (yard.clusters, yard.requests) == ({}, {})
