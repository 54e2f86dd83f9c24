"""The line to Modal breaks, and a trial that runs there neither ends by it nor pays for it (T86).

The package tries a stream again for ten seconds; here it gives up after some hundredths, and all else is as short.
"""

import asyncio
import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from modal.sandbox._task_command_router_client import TaskCommandRouterClient

from sandbox import Bundle, Chamber, Ending, Job, Outcome, Silent
from sandbox.backends.modal import backend as modal_backend
from sandbox.backends.modal.backend import ModalBackend
from sandbox.pulse import Pulse
from sandbox.wire.log import Report
from tests.fault_proxy import FaultProxy
from tests.modal_emulator import ModalEmulator
from tests.sandbox.modal.life import BUNDLE, LIMITS

pytestmark = [pytest.mark.modal, pytest.mark.docker, pytest.mark.touching("modal")]

AWAY_S = 1.0
JOB = Job(command=("sh", "-c", "echo begun; sleep 2; cat main.txt > /work/out/x; echo over"), limits=LIMITS)
WALL_S = 5.0  # of one that is cut off in time: so long the word that it has begun may take to come
LONG = Job(command=("sh", "-c", "echo begun; sleep 600"), limits=LIMITS.model_copy(update={"wall": WALL_S}))


@dataclass
class Line:
    """All that goes to Modal: its control plane, and the machine that a sandbox is on."""

    control: FaultProxy
    worker: FaultProxy

    def cut(self) -> None:
        self.control.cut()
        self.worker.cut()

    def stall(self) -> None:
        self.control.stall()
        self.worker.stall()

    def slow(self, bytes_per_s: float) -> None:
        self.control.slow(bytes_per_s)
        self.worker.slow(bytes_per_s)

    def heal(self) -> None:
        self.control.heal()
        self.worker.heal()


@pytest.fixture
def line(modal_emulator: ModalEmulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(modal_backend, "Pulse", functools.partial(Pulse, every_s=0.2, within_s=0.5))
    defaults = TaskCommandRouterClient.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "stream_stdio_max_retries", 3)
    with (
        FaultProxy(modal_emulator.environment()["MODAL_SERVER_URL"]) as control,
        FaultProxy(modal_emulator.router) as worker,
    ):
        monkeypatch.setenv("MODAL_SERVER_URL", control.url)
        modal_emulator.route_by(worker.url)
        yield Line(control, worker)


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


@pytest.mark.parametrize("worker_alone", [False, True])
async def test_T86_a_stream_that_breaks_goes_on_where_it_was(
    line: Line, backend: ModalBackend, worker_alone: bool
) -> None:
    """A cut that outlasts the package's own tries costs a trial nothing: not a byte is missing or comes twice."""
    async with await backend.open(JOB) as chamber:
        running, ear = await begun(chamber)
        (line.worker if worker_alone else line).cut()
        await asyncio.sleep(AWAY_S)
        line.heal()
        outcome = await running
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"x": b"hello"})
    assert ear.lines == ["begun", "over"]


@pytest.mark.parametrize("fault", ["cut", "stall"])
async def test_T86_nobody_pays_for_a_silence(line: Line, backend: ModalBackend, fault: str) -> None:
    """A trial whose time passes while Modal answers nobody has not timed out: no control job has to tell so, and its
    end is confirmed once Modal is back."""
    async with await backend.open(LONG) as chamber:
        running, _ = await begun(chamber)
        getattr(line, fault)()
        await asyncio.sleep(WALL_S + AWAY_S)
        line.heal()
        with pytest.raises(Silent, match="the provider did not answer for"):
            await running
        assert chamber.bill.final


async def test_T86_a_bundle_is_sent_through_a_cut(line: Line, backend: ModalBackend) -> None:
    """What was on its way when the line broke arrives once, and whole."""
    large = Bundle({"main.txt": bytes(range(256)) * 8192})
    job = Job(command=("sh", "-c", "sha256sum main.txt > /work/out/x"), limits=LIMITS)
    async with await backend.open(job) as chamber:
        line.worker.slow(4 << 20)
        running = asyncio.create_task(chamber.run(large))
        await asyncio.sleep(0.2)
        line.worker.cut()
        await asyncio.sleep(0.3)
        line.worker.heal()
        outcome = await running
    assert outcome.outputs["x"].split()[0].decode() == hashlib.sha256(large.files["main.txt"]).hexdigest()


async def test_T86_a_slow_line(line: Line, backend: ModalBackend) -> None:
    """A line that takes its time is no silence, and no fault of the program."""
    line.slow(20_000)
    async with await backend.open(JOB) as chamber:
        outcome = await chamber.run(BUNDLE)
    assert (outcome.ending, outcome.outputs) == (Ending.COMPLETED, {"x": b"hello"})


async def begun(chamber: Chamber) -> tuple[asyncio.Task[Outcome], Ear]:
    ear = Ear()
    running = asyncio.create_task(chamber.run(BUNDLE, listener=ear))
    await asyncio.wait_for(ear.begun.wait(), 60)
    return running, ear
