"""Our backend keeps the contract through Modal's own SDK. The service at the other end is an emulator."""

import asyncio

import pytest

from sandbox.config import ModalConfig
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.modal import ModalSubject
from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.modal, pytest.mark.docker]


# What only this backend can get wrong; all of it where the backend or the contract changed, and in `make thorough`.
BRIEFLY = ("success_with_outputs", "timeout", "live_log_and_reports", "provider_gone", "live_owner_untouched")
ROWS = [name if name in BRIEFLY else pytest.param(name, marks=pytest.mark.touching("modal")) for name in CONTRACT]


@pytest.mark.parametrize("row", ROWS)
async def test_row(
    row: str, modal_emulator: ModalEmulator, config: ModalConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut() -> None:
        await asyncio.to_thread(modal_emulator.cut)

    subject = ModalSubject(config, cut)
    try:
        if row in subject.lacks:
            monkeypatch.setattr("sandbox.conformance.provider_rows.PATIENCE_S", 5.0)
            with pytest.raises(NotConforming):
                await CONTRACT[row](subject)
        else:
            await CONTRACT[row](subject)
    finally:
        modal_emulator.heal()
        await subject.close()
    assert modal_emulator.running() == []
