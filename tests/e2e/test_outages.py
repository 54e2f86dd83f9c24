"""A provider goes silent in the middle of a campaign: nobody pays or is set aside, and it goes on by itself (T86)."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

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


class Line(Protocol):
    """As a proxy does them."""

    def cut(self) -> None: ...

    def stall(self) -> None: ...

    def slow(self, bytes_per_s: float) -> None: ...

    def heal(self) -> None: ...


class Outages:
    """Hears a campaign's events; its first trials have a fault each. A line is slow while the trial lasts."""

    def __init__(self, line: Line, bytes_per_s: float) -> None:
        self._begin: dict[str, Callable[[], None]] = {
            "slow": partial(line.slow, bytes_per_s),
            "cut": line.cut,
            "stall": line.stall,
        }
        self._heal = line.heal
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
                self._begin[self._fault]()
                if self._fault != "slow":
                    threading.Timer(AWAY_S, self._over).start()

    def _over(self) -> None:
        self._fault = ""
        self._heal()


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
        outages = Outages(line, 200_000)
        await survived(circle_packing(tmp_path / "task"), Settings(), outages)
        assert line.felt
        assert set(outages.requeued) == {"cut"}


class Lines:
    """All that goes to Modal: its control plane, and the machine that a sandbox is on."""

    def __init__(self, *lines: FaultProxy) -> None:
        self._lines = lines

    def cut(self) -> None:
        for line in self._lines:
            line.cut()

    def stall(self) -> None:
        for line in self._lines:
            line.stall()

    def slow(self, bytes_per_s: float) -> None:
        for line in self._lines:
            line.slow(bytes_per_s)

    def heal(self) -> None:
        for line in self._lines:
            line.heal()


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
        outages = Outages(Lines(control, worker), 50_000)
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
        outages = Outages(line, 50_000)
        await survived(circle_packing(tmp_path / "task"), Settings(ledger=SecretStr(line.url)), outages)
        assert line.felt
        assert not outages.requeued
