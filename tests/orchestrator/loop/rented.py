"""A scripted campaign whose candidates run on rented chambers, and whose judge stays at home for nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.budget import Account
from orchestrator.wiring.site import Site
from sandbox import Purse, SandboxError, Terms
from sandbox.backends.fake.rent import Charges, Rent, RentedFake, Step
from tests.orchestrator.loop.script import Script, ScriptedBackend
from tests.orchestrator.loop.scripted import WALL_S, Scripted, make_site

USD = 0.01  # a second
TERMS = Terms(opening_s=20.0, closing_s=30.0)
# A trial's own limit and grace, what it may take beyond, and the terms; then the control job, which has no build.
TRIAL_S = WALL_S + 1 + 100 + 120 + 30
CONTROL_S = 10 + 1 + 100 + 120 + 30


class RentedBackend(ScriptedBackend):
    """The scripted one, at a price."""

    def __init__(self, script: Script, rent: Rent) -> None:
        super().__init__(script)
        self.rented = RentedFake(script.program, script.world, rent=rent)
        self._fake = self.rented

    @property
    def registry(self) -> str:
        return self.rented.registry

    async def lifetimes(self, given_up: Mapping[str, float]) -> dict[str, float]:
        return await self.rented.lifetimes(given_up)


@dataclass
class Faults:
    """What goes wrong, by the step of a create or an end and by how often that was met: from 1 on, `many` times."""

    at: Step | None = None
    error: Callable[[], SandboxError] | None = None
    first: int = 1
    many: int = 1
    met: dict[Step, int] = field(default_factory=dict)

    def __call__(self, step: Step, _: str) -> None:
        self.met[step] = self.met.get(step, 0) + 1
        if step is self.at and self.error and self.first <= self.met[step] < self.first + self.many:
            raise self.error()


def rented_site(
    script: Script, rent: Rent, *, terms: Terms = TERMS, ceiling: int = 1, backend: RentedBackend | None = None
) -> Site:
    backend = backend or RentedBackend(script, rent)

    def paid_by(purse: Purse) -> None:
        backend.rented.purse = purse

    home = make_site(script)
    return replace(
        home,
        name="rented",
        backend=backend,
        usd_per_second=lambda _: rent.usd_per_second,
        ceiling=lambda _: ceiling,
        terms=terms,
        judging=home,
        paid_by=paid_by,
        stand_down=backend.rented.stand_down,
    )


def booked(session: Scripted) -> float:
    """Dollars in the books."""
    return session.bench.book.accounts.used(Account.USD) / 1e6


def billed(rent: Rent) -> float:
    """Dollars that the provider's own register comes to."""
    assert isinstance(rent.register, Charges)
    return rent.register.seconds() * rent.usd_per_second
