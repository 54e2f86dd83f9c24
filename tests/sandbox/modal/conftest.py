"""Shared by the tests of Modal."""

import pytest_asyncio

from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import Bare


@pytest_asyncio.fixture
async def bare(modal_emulator: ModalEmulator) -> Bare:
    return await Bare.connect(modal_emulator.environment())
