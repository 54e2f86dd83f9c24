"""Rented opens, failures, kills and things that stand, in any order: caps hold, and the books cover the provider's."""

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.records import Phase
from orchestrator.loop import settling
from orchestrator.wiring.beginning import How
from sandbox import Lost, SandboxError, Unavailable
from sandbox.backends.fake.rent import Charges, Rent, Step
from tests.orchestrator.loop.books import check_books, ledger_of
from tests.orchestrator.loop.rented import CONTROL_S, TRIAL_S, USD, RentedBackend, billed, rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, Scripted, scripted, write_task

ATTEMPT = 2 * (TRIAL_S + CONTROL_S) * USD
ATTEMPTS = 4
# What one chamber may be off: between the provider's stamp and ours the event loop may be held up.
OFF = 0.03 * USD


@dataclass
class Chance:
    """Draws what goes wrong. Without doubts, every end is confirmed and nothing is killed."""

    draw: random.Random
    doubts: bool
    steps: int = 0
    tasks: set["asyncio.Task[bool]"] = field(default_factory=set)

    def fault(self, step: Step, _: str) -> None:
        """Never more than one in a row: else an attempt would be given up, which is tested elsewhere."""
        self.steps += 1
        harmless = step in (Step.CREATE, Step.CREATED, Step.READY)
        if self.steps % 2 and self.draw.random() < 0.25 and (harmless or self.doubts):
            error: Callable[[str], SandboxError] = self.draw.choice((Unavailable, Lost)) if harmless else Unavailable
            raise error(f"{step} went wrong")

    def points(self) -> list[Point]:
        does = ("answer", "answer", "failed", "break off") if self.doubts else ("answer", "answer", "failed")
        return [
            {"value": value, "do": self.draw.choice(does), "takes": self.draw.uniform(0, 0.01)}
            for value in range(1, ATTEMPTS + 1)
        ]

    def disturb(self, session: Scripted) -> None:
        """Have things stand, and stop the session, at events that are drawn."""
        rented = _backend(session).rented

        def hear(event: e.Event, _: str) -> None:
            accounts = session.accounts
            left = accounts.left(Account.USD)
            assert left is None or left >= 0, "used and held are over the cap"
            if isinstance(event, e.TrialEnded | e.AttemptOpened) and self.draw.random() < 0.4:
                task = asyncio.create_task(_stand(rented.stand))
                self.tasks.add(task)
            if self.doubts and isinstance(event, e.TrialIntended) and self.draw.random() < 0.1:
                asyncio.get_running_loop().call_later(self.draw.uniform(0, 0.01), session.campaign.stop, "Ctrl-C")

        session.bench.book.listeners.append(hear)


async def _stand(stand: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await stand()
    except SandboxError:
        return False


def _backend(session: Scripted) -> RentedBackend:
    backend = session.bench.door.backend
    assert isinstance(backend, RentedBackend)
    return backend


async def _to_the_end(folder: Path, chance: Chance, rents: list[Rent]) -> tuple[int, int]:
    """Run and resume until all attempts are over: micro-dollars booked, and of what stood."""
    points, how = chance.points(), How.START
    flags: dict[str, Any] = {"usd": 2.5 * ATTEMPT, "attempts": ATTEMPTS, "width": 2}
    while True:
        script = Script()
        rent = Rent(USD, opening_s=0.002, fault=chance.fault)
        rents.append(rent)
        site = rented_site(script, rent, ceiling=2)
        async with scripted(folder, script, *points, how=how, site=site, **flags) as session:
            chance.disturb(session)
            await session.run()
            await asyncio.gather(*chance.tasks)
            accounts, state = session.accounts, session.state
            assert not accounts.holds
            assert not state.standing
            spent = sum(node.spent.microdollars for node in state.nodes.values()) + state.campaign.standing.microdollars
            assert accounts.used(Account.USD) == spent
            over = state.campaign.stopped != "Ctrl-C"
        if over:
            if not all(node.phase in (Phase.ENDED, Phase.QUARANTINED) for node in state.nodes.values()):
                assert (accounts.left(Account.USD) or 0) < ATTEMPT * 1e6, state.campaign.stopped
            return spent, len(rents)
        how, flags = How.RESUME, {}


@settings(max_examples=12, deadline=None, derandomize=True)
@example(seed=400, doubts=True)  # A resume by a clock that is behind.
@given(seed=st.integers(0, 2**32), doubts=st.booleans())
def test_any_order(seed: int, doubts: bool) -> None:
    """Used and held never pass the limit; what is booked covers the provider's record, and equals it where it can."""
    rents: list[Rent] = []
    with tempfile.TemporaryDirectory() as base:
        folder = write_task(Path(base) / "task", "[stall]\nrefunds = 50\nafter = 50\n")
        chance = Chance(random.Random(seed), doubts)
        with mock.patch.multiple(settling, HOPE_S=0.0, SOON_S=0.0):  # what is never ended is never told of
            spent, _ = asyncio.run(_to_the_end(folder, chance, rents))
        with ledger_of(folder) as ledger:
            check_books(ledger)
    record, made = sum(map(billed, rents)), 0
    for rent in rents:
        assert not rent.register.running()
        assert isinstance(rent.register, Charges)
        made += rent.register.count
    assert spent / 1e6 >= record
    if not doubts:
        assert spent / 1e6 <= record + made * OFF
