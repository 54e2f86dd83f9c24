"""A provider goes silent in the middle of a campaign: nobody pays or is set aside, and it goes on by itself (T86)."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from modal.sandbox._task_command_router_client import TaskCommandRouterClient
from pydantic import SecretStr

from orchestrator.api import Settings, read_campaign, search
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from private_postgres import PrivatePostgres
from sandbox import DockerConfig
from tests.e2e.backends import circle_packing
from tests.fault_proxy import FaultProxy
from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

AWAY_S = 3.0
ATTEMPTS = 1


class Outage:
    """Hears a campaign's events; at its second trial the line goes away for a while."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end
        self._away = False
        self.trials = 0
        self.requeued = 0
        self.quarantined = 0
        self.proposed_meanwhile = 0

    def __call__(self, event: e.Event, _: str) -> None:
        match event:
            case e.AttemptRequeued():
                self.requeued += 1
            case e.AttemptQuarantined():
                self.quarantined += 1
            case e.Proposed():
                self.proposed_meanwhile += self._away
            case e.TrialIntended():
                self.trials += 1
                if self.trials == 2:
                    self._away = True
                    self._begin()
                    threading.Timer(AWAY_S, self._over).start()

    def _over(self) -> None:
        self._away = False
        self._end()


async def survived(folder: Path, settings: Settings, outage: Outage, **flags: Any) -> None:
    """Every attempt was charged and scored once, whatever became of its first try."""
    await search(folder, settings=settings, attempts=ATTEMPTS, seed=7, width=1, observer=outage, **flags)
    assert (outage.quarantined, outage.proposed_meanwhile) == (0, 0)
    with read_campaign(folder, settings) as reading:
        endings = [node.ending for node in reading.state.nodes.values()]
    assert endings == [Ending.SCORED] * (ATTEMPTS + 1)


@pytest.mark.parametrize("fault", ["cut", "stall"])
async def test_T86_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    with FaultProxy(DockerConfig().host, tmp_path) as line:
        monkeypatch.setenv("DOCKER_HOST", line.url)
        monkeypatch.setenv("BLASTDOOR_DOCKER_HOST", line.url)
        outage = Outage(getattr(line, fault), line.heal)
        await survived(circle_packing(tmp_path / "task"), Settings(), outage)
        assert line.felt
        assert (outage.requeued > 0) == (fault == "cut"), "what waits in a line that stalls is only late"


@pytest.mark.modal
async def test_T86_modal(tmp_path: Path, modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TaskCommandRouterClient.__init__.__kwdefaults__ or {}, "stream_stdio_max_retries", 3)
    url = modal_emulator.environment()["MODAL_SERVER_URL"]
    with FaultProxy(url) as control, FaultProxy(modal_emulator.router) as worker:
        monkeypatch.setenv("MODAL_SERVER_URL", control.url)
        modal_emulator.route_by(worker.url)

        def both(what: str) -> None:
            for line in (control, worker):
                getattr(line, what)()

        outage = Outage(partial(both, "stall"), partial(both, "heal"))
        await survived(circle_packing(tmp_path / "task"), Settings(), outage, backend="modal")
        assert control.felt + worker.felt
    assert not modal_emulator.running()


@pytest.mark.postgres
async def test_T86_the_database(tmp_path: Path, postgres_server: PrivatePostgres) -> None:
    with FaultProxy(postgres_server.url()) as line:
        outage = Outage(line.cut, line.heal)
        await survived(circle_packing(tmp_path / "task"), Settings(ledger=SecretStr(line.url)), outage)
        assert line.felt
