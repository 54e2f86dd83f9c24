"""What was rented and came to nothing is in the books all the same."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.wiring.beginning import How
from sandbox import Job, Refused
from sandbox.backends.fake.rent import Rent, Step
from tests.orchestrator.loop.rented import USD, Faults, billed, booked, rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, make_site, scripted, write_task


async def test_a_guard_that_was_refused_after_create_is_paid(tmp_path: Path) -> None:
    """Posture and price are compared after create: what the provider charged until then is booked."""
    folder = write_task(tmp_path / "task", GUARD)
    script, rent = Script(), Rent(USD, opening_s=0.05)
    site = rented_site(script, rent)
    opened = site.backend.open

    async def open_(job: Job) -> object:
        if job.command[0] != "guard":
            return await opened(job)
        rent.fault = Faults(Step.READY, lambda: Refused("the chamber's posture is not what was asked for"), many=99)
        try:
            return await opened(job)
        finally:
            rent.fault = Faults()

    site.backend.open = open_  # type: ignore[method-assign, assignment]
    async with scripted(folder, script, {"value": 1}, site=site, attempts=1) as session:
        await session.run()
        (guarded,) = session.of(e.GuardEnded)
        assert "posture" in guarded.reason
        assert guarded.spent.microdollars > 0
        assert booked(session) >= billed(rent) * 0.99


class Killed(BaseException):
    """As SIGKILL: nothing after it is recorded."""


@pytest.mark.parametrize("again", ["same", "other"])
async def test_resumed_on_another_backend_after_a_crash(tmp_path: Path, again: str) -> None:
    """A rented trial that its owner died in is booked at the price of where it ran, wherever the campaign goes on."""
    folder = write_task(tmp_path / "task")
    script, rent = Script(), Rent(USD)
    site = rented_site(script, rent)
    async with scripted(folder, script, {"value": 1, "takes": 20.0}, site=site, attempts=1) as session:
        started = asyncio.Event()
        session.when(e.TrialIntended, lambda event: started.set() if event.node != "1" else None)
        running = asyncio.create_task(session.campaign.run())
        await started.wait()
        await asyncio.sleep(1.0)
        before = booked(session)
        # The ledger is what a killed owner leaves: from here on it writes nothing more.
        session.bench.book.record = lambda *_: (_ for _ in ()).throw(Killed())  # type: ignore[method-assign]
        for task in [running, *session.campaign._running]:
            task.cancel()
        await asyncio.wait([running, *session.campaign._running])
        await site.backend.rented.close()  # type: ignore[attr-defined]
    cost = billed(rent) - before
    assert cost > 0
    script = Script()
    elsewhere = make_site(script) if again == "other" else rented_site(script, Rent(USD))
    async with scripted(folder, script, {"value": 1}, how=How.RESUME, site=replace(elsewhere)) as session:
        assert booked(session) - before >= 0.5 * USD, (
            f"it cost {cost:.4f}, and {booked(session) - before:.4f} is booked"
        )
