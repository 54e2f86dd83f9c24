"""The line to Modal breaks, and a trial that runs there neither ends by it nor pays for it (T86).

The package tries a stream again for ten seconds; here it gives up after some hundredths, and all else is as short.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from modal.sandbox._task_command_router_client import TaskCommandRouterClient

from sandbox import Ending, Job, Outcome
from sandbox.backends.modal.backend import ModalBackend
from sandbox.config import ModalConfig
from sandbox.wire.log import Report
from tests.fault_proxy import FaultProxy
from tests.modal_emulator import ModalEmulator
from tests.sandbox.modal.life import BUNDLE, LIMITS, close

pytestmark = [pytest.mark.modal, pytest.mark.docker]

GIVES_UP_S = 0.1  # the package, with the few retries that it is given here
AWAY_S = 1.0
JOB = Job(command=("sh", "-c", "echo begun; sleep 2; cat main.txt > /work/out/x; echo over"), limits=LIMITS)


@dataclass
class Line:
    """All that goes to Modal: its control plane, and the machine that a sandbox is on."""

    control: FaultProxy
    worker: FaultProxy

    @property
    def both(self) -> tuple[FaultProxy, FaultProxy]:
        return self.control, self.worker


@pytest.fixture
def line(modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setitem(TaskCommandRouterClient.__init__.__kwdefaults__, "stream_stdio_max_retries", 3)
    with (
        FaultProxy(modal_emulator.environment()["MODAL_SERVER_URL"]) as control,
        FaultProxy(modal_emulator.router) as worker,
    ):
        monkeypatch.setenv("MODAL_SERVER_URL", control.url)
        modal_emulator.route_by(worker.url)
        yield Line(control, worker)
        for proxy in (control, worker):
            proxy.heal()


class Ear:
    """Hears when the program has begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.begun.set()

    def report(self, report: Report) -> None:
        del report


async def test_T86_a_stream_that_breaks_goes_on_where_it_was(line: Line, config: ModalConfig) -> None:
    """A cut that outlasts the package's own tries costs a trial nothing: not a byte is missing or comes twice."""
    backend = await ModalBackend.connect(config)
    try:
        outcome, ear = await _run_through(backend, line, JOB)
    finally:
        await close(backend)
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"x": b"hello"})
    assert ear.lines == ["begun", "over"]


async def _run_through(backend: ModalBackend, line: Line, job: Job) -> tuple[Outcome, Ear]:
    ear = Ear()
    async with await backend.open(job) as chamber:
        running = asyncio.create_task(chamber.run(BUNDLE, listener=ear))
        await asyncio.wait_for(ear.begun.wait(), 60)
        for proxy in line.both:
            proxy.cut()
        await asyncio.sleep(AWAY_S)
        for proxy in line.both:
            proxy.heal()
        return await running, ear
