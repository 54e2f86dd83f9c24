"""Shared by the tests of Modal."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sandbox.backends.modal.backend import ModalBackend
from sandbox.config import ModalConfig
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import Bare
from tests.sandbox.modal.life import close


@pytest_asyncio.fixture
async def bare(modal_emulator: ModalEmulator) -> Bare:
    return await Bare.connect(modal_emulator.environment())


@pytest.fixture
def config(tmp_path: Path) -> ModalConfig:
    """Owners of one test are alone in their place."""
    return ModalConfig(owners_folder=tmp_path / "owners", inputs_folder=tmp_path / "inputs")


@pytest_asyncio.fixture
async def backend(modal_emulator: ModalEmulator, config: ModalConfig) -> AsyncIterator[ModalBackend]:
    backend = await ModalBackend.connect(config)
    yield backend
    await close(backend)
