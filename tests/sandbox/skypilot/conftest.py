"""A yard, owners that rent there, and the one file that drives SkyPilot, which needs its package and no server."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.skypilot.backend import SkyPilotBackend
from tests.sandbox.skypilot.connecting import Connect, Purse, connected, settings
from tests.sandbox.skypilot.grounds import PaperMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """SkyPilot reads the home folder when it is imported; nothing of this account's is of interest."""
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))
    try:
        from sandbox.backends.skypilot import sdk as skypilot_sdk
    finally:
        if before is not None:
            os.environ["HOME"] = before
    return skypilot_sdk


@pytest.fixture
def yard() -> Yard:
    """Its machines are on paper."""
    return Yard(lambda _: PaperMachine())


@pytest.fixture
async def owner(yard: Yard, tmp_path: Path) -> AsyncIterator[Connect]:
    """`await owner(warm=1)`: a backend of its own at the yard, by these settings; closed in the end.

    With a provisioner of its own, if one is given. A purse pays for what stands.
    """
    made: list[SkyPilotBackend] = []

    async def connect(provisioner: YardProvisioner | None = None, **wanted: Any) -> SkyPilotBackend:
        made.append(await connected(provisioner or YardProvisioner(yard), settings(tmp_path, **wanted)))
        made[-1].purse = Purse() if wanted.get("warm") else None
        return made[-1]

    yield connect
    for backend in made:
        await backend.close()
