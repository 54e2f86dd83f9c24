"""A provider goes silent in the middle of a campaign: nobody pays or is set aside, and it goes on by itself (T86)."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from modal.sandbox._task_command_router_client import TaskCommandRouterClient
from pydantic import SecretStr

from orchestrator.api import Settings, read_campaign, search
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.loop import settling
from private_postgres import PrivatePostgres
from sandbox import DockerConfig, ModalConfig
from sandbox.backends.modal import backend as modal_backend
from tests.e2e.backends import circle_packing
from tests.fault_proxy import FaultProxy
from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

AWAY_S = 3.0
ATTEMPTS = 1
FAULTS = ("slow", "cut", "stall")


class Outages:
    """Hears a campaign's events; its first trials have a fault each. A line is slow while the trial lasts."""

    def __init__(self, bytes_per_s: float, *lines: FaultProxy) -> None:
        self._lines = lines
        self._begin: dict[str, Callable[[FaultProxy], None]] = {
            "slow": lambda line: line.slow(bytes_per_s),
            "cut": FaultProxy.cut,
            "stall": FaultProxy.stall,
        }
        self.left = list(FAULTS)
        self._fault = self._last = ""
        self.requeued: list[str] = []
        self.quarantined = 0
        self.proposed_meanwhile = 0

    def __call__(self, event: e.Event, _: str) -> None:
        match event:
            case e.AttemptRequeued():
                self.requeued.append(self._last)
            case e.AttemptQuarantined():
                self.quarantined += 1
            case e.Proposed():
                self.proposed_meanwhile += self._fault in ("cut", "stall")
            case e.TrialEnded() if self._fault == "slow":
                self._over()
            case e.TrialIntended() if self.left and not self._fault:
                self._last = self._fault = self.left.pop(0)
                for line in self._lines:
                    self._begin[self._fault](line)
                if self._fault != "slow":
                    threading.Timer(AWAY_S, self._over).start()

    def _over(self) -> None:
        self._fault = ""
        for line in self._lines:
            line.heal()


async def survived(folder: Path, settings: Settings, outages: Outages, **flags: Any) -> None:
    """Every attempt was charged and scored once, whatever became of its first try."""
    await search(folder, settings=settings, attempts=ATTEMPTS, seed=7, width=1, observer=outages, **flags)
    assert not outages.left, "each fault came"
    assert (outages.quarantined, outages.proposed_meanwhile) == (0, 0)
    with read_campaign(folder, settings) as reading:
        endings = [node.ending for node in reading.state.nodes.values()]
    assert endings == [Ending.SCORED] * (ATTEMPTS + 1)


async def test_T86_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits in a line that stalls, or is slow, is only late."""
    with FaultProxy(DockerConfig().host, tmp_path) as line:
        monkeypatch.setenv("DOCKER_HOST", line.url)
        monkeypatch.setenv("BLASTDOOR_DOCKER_HOST", line.url)
        outages = Outages(200_000, line)
        await survived(circle_packing(tmp_path / "task"), Settings(), outages)
        assert line.felt
        assert set(outages.requeued) == {"cut"}


@pytest.mark.touching("modal", "recovery")
@pytest.mark.modal
async def test_T86_modal(tmp_path: Path, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was booked at its worst meanwhile is settled by Modal's own list."""
    monkeypatch.setattr(modal_backend, "IN_FLIGHT_S", 2 * AWAY_S)
    monkeypatch.setattr(settling, "SOON_S", 1.0)
    monkeypatch.setitem(TaskCommandRouterClient.__init__.__kwdefaults__ or {}, "stream_stdio_max_retries", 3)
    url = modal_emulator.environment()["MODAL_SERVER_URL"]
    with FaultProxy(url) as control, FaultProxy(modal_emulator.router) as worker:
        monkeypatch.setenv("MODAL_SERVER_URL", control.url)
        modal_emulator.route_by(worker.url)
        outages = Outages(50_000, control, worker)
        await survived(circle_packing(tmp_path / "task"), Settings(), outages, backend="modal")
        assert control.felt + worker.felt
    assert not modal_emulator.running()
    rates = ModalConfig().rates
    with read_campaign(tmp_path / "task", Settings()) as reading:
        booked = sum(node.spent.microdollars for node in reading.state.nodes.values()) / 1e6
        assert not reading.state.doubts
    billed = sum(
        it["seconds"] * (it["cpu"][1] * rates.cpu + it["memory_mib"][1] / 1024 * rates.memory_gib)
        for it in modal_emulator.sandboxes()
    )
    assert billed <= booked <= 2 * billed


@pytest.mark.touching("postgres", "recovery")
@pytest.mark.postgres
async def test_T86_the_database(tmp_path: Path, postgres_server: PrivatePostgres) -> None:
    with FaultProxy(postgres_server.url()) as line:
        outages = Outages(50_000, line)
        await survived(circle_packing(tmp_path / "task"), Settings(ledger=SecretStr(line.url)), outages)
        assert line.felt
        assert not outages.requeued
