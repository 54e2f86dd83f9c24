"""Shared by the tests of Modal."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sandbox.backends.modal.backend import ModalBackend
from sandbox.config import ModalConfig
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import Bare
from tests.sandbox.modal.life import Connect, dismiss


@pytest_asyncio.fixture
async def bare(modal_emulator: ModalEmulator) -> Bare:
    return await Bare.connect(modal_emulator.environment())


@pytest.fixture
def config(tmp_path: Path) -> ModalConfig:
    """Owners of one test are alone in their place."""
    return ModalConfig(owners_folder=tmp_path / "owners", inputs_folder=tmp_path / "inputs")


@pytest_asyncio.fixture
async def connected(modal_emulator: ModalEmulator) -> AsyncIterator[Connect]:
    """Connects owners, and closes them in the end, their wardens with them: one may watch on for creates under way."""
    made: list[ModalBackend] = []

    async def connect(config: ModalConfig) -> ModalBackend:
        made.append(await ModalBackend.connect(config))
        return made[-1]

    yield connect
    for backend in made:
        warden = backend.warden_pid
        await backend.close()
        await dismiss(warden)


@pytest_asyncio.fixture
async def backend(connected: Connect, config: ModalConfig) -> ModalBackend:
    return await connected(config)
