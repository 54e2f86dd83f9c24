"""Campaigns on Modal's emulator whose line is cut: what is booked in the end, beside what the provider charges.

`worst` is what would stay booked if nobody asked the provider later how long a sandbox lived.
"""

import asyncio
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from orchestrator.api import Settings, read_campaign, search
from orchestrator.domain import events as e
from orchestrator.domain.events import read_event
from orchestrator.wiring.ledgers import open_ledger
from sandbox import ModalConfig
from sandbox.job import Limits
from tests.e2e.backends import circle_packing
from tests.fault_proxy import FaultProxy
from tests.modal_emulator import ModalEmulator

ATTEMPTS = 14
WIDTH = 4
BETWEEN_S = 10.0
# So often the line is cut, for so many seconds each time.
CUTS = ((5, 14.0), (1, 40.0), (1, 120.0))
LIMITS = Limits(cpus=1, memory=512 * 1024**2)


@dataclass(frozen=True)
class Bill:
    """Dollars, and how many chambers were booked at their worst at first, and are still."""

    billed: float
    booked: float
    worst: float
    doubted: int
    left: int
    charged: int
    quarantined: int


class Cutter:
    """Cuts the line from the first trial of the search on."""

    def __init__(self, lines: list[FaultProxy], times: int, seconds: float) -> None:
        self._lines = lines
        self._times = times
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._cut, daemon=True)
        self._begun = False

    def __call__(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.TrialIntended) and event.node != "1" and not self._begun:
            self._begun = True
            self._thread.start()

    def _cut(self) -> None:
        for _ in range(self._times):
            for line in self._lines:
                line.cut()
            self._over.wait(self._seconds)
            for line in self._lines:
                line.heal()
            if self._over.wait(BETWEEN_S):
                return

    def close(self) -> None:
        self._over.set()
        if self._begun:
            self._thread.join()


async def measure() -> list[Figure]:
    return [figure for times, seconds in CUTS for figure in await _measured(times, seconds)]


async def _measured(times: int, seconds: float) -> list[Figure]:
    bill = await asyncio.to_thread(_cut, times, seconds)
    cut = f"cut {times} times for {seconds:g} s"
    return [
        Figure(f"{cut}: billed", bill.billed, "$"),
        Figure(f"{cut}: booked, of what is billed", bill.booked / bill.billed, "times", "<= 1.5"),
        Figure(f"{cut}: billed, of what is booked", bill.billed / bill.booked, "times", "<= 1"),
        Figure(f"{cut}: booked at first, of what is billed", bill.worst / bill.billed, "times"),
        Figure(f"{cut}: chambers that were booked at their worst", bill.doubted, ""),
        Figure(f"{cut}: chambers that still are", bill.left, "", "<= 0"),
        Figure(f"{cut}: attempts charged more than asked for", bill.charged - ATTEMPTS - 1, "", "<= 0"),
        Figure(f"{cut}: attempts set aside", bill.quarantined, "", "<= 0"),
    ]


def _cut(times: int, seconds: float) -> Bill:
    emulator, before = ModalEmulator(), dict(os.environ)
    try:
        os.environ.update(emulator.environment())
        with (
            tempfile.TemporaryDirectory(prefix="blastdoor-bench-") as folder,
            FaultProxy(emulator.environment()["MODAL_SERVER_URL"]) as control,
            FaultProxy(emulator.router) as worker,
        ):
            os.environ["MODAL_SERVER_URL"] = control.url
            emulator.route_by(worker.url)
            task, cutter = circle_packing(Path(folder, "task")), Cutter([control, worker], times, seconds)
            flags: dict[str, Any] = {"backend": "modal", "attempts": ATTEMPTS, "width": WIDTH, "usd": 100.0}
            asyncio.run(search(task, settings=Settings(), observer=cutter, seed=7, **flags))
            cutter.close()
            return _bill(task, emulator)
    finally:
        os.environ.clear()
        os.environ.update(before)
        emulator.close()


def _bill(task: Path, emulator: ModalEmulator) -> Bill:
    rates = ModalConfig().rates
    billed = sum(
        it["seconds"]
        * rates.per_second(LIMITS.model_copy(update={"cpus": it["cpu"][1], "memory": it["memory_mib"][1] << 20}))
        for it in emulator.sandboxes()
    )
    with open_ledger(task / ".blastdoor", read_only=True) as ledger:
        events = [read_event(record.body) for record in ledger.read()]
    freed = [it.freed.get("usd", 0) / 1e6 for it in events if isinstance(it, e.DoubtSettled)]
    charged = sum(isinstance(it, e.AttemptEnded) and it.ending.charged for it in events)
    quarantined = sum(isinstance(it, e.AttemptQuarantined) for it in events)
    with read_campaign(task, Settings()) as reading:
        nodes, left = reading.state.nodes.values(), len(reading.state.doubts)
        booked = sum(node.spent.microdollars for node in nodes) / 1e6
    return Bill(billed, booked, booked + sum(freed), len(freed) + left, left, charged, quarantined)
