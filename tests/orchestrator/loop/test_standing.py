"""What stands at a provider longer than one chamber is paid by the campaign, under the same caps as all else."""

from pathlib import Path

import pytest
import structlog

from orchestrator.budget import Account, Amounts
from orchestrator.domain import events as e
from orchestrator.loop.purse import CampaignPurse
from orchestrator.task import TaskError
from orchestrator.views.campaign.happenings import line_of
from orchestrator.views.campaign.sections.money import standing_line
from orchestrator.wiring.beginning import How
from sandbox import Unavailable
from sandbox.backends.fake.rent import Step
from tests.orchestrator.loop.rented import CONTROL_S, TRIAL_S, USD, Faults, RentedBackend, billed, booked, rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Scripted, scripted
from tests.orchestrator.loop.telling import in_moments, rent_of

ROUNDING = 1e-4
# A standing thing's worst case.
WORST = round(60 * USD * 1_000_000)
BASELINE = round((TRIAL_S + CONTROL_S) * USD * 1_000_000)
ATTEMPT = round((2 * TRIAL_S + CONTROL_S) * USD * 1_000_000)


def backend_of(session: Scripted) -> RentedBackend:
    backend = session.bench.door.backend
    assert isinstance(backend, RentedBackend)
    return backend


@in_moments
async def test_stands_is_taken_and_paid_once(folder: Path) -> None:
    """Idle seconds are the campaign's, serving seconds the trial's; both together are what the provider charged."""
    script, rent = Script(), rent_of(USD)
    async with scripted(folder, script, {"value": 1}, {"value": 2}, site=rented_site(script, rent)) as session:
        rented = backend_of(session).rented
        assert await rented.stand()
        assert await rented.stand()
        assert session.accounts.held(Account.USD) == 2 * WORST
        rent.opening_s = 10.0  # beside which what a busy machine adds between the provider's clock and ours is nothing
        await session.run()
        campaign = session.state.campaign
        assert (campaign.stood, session.state.standing) == (2, {})
        assert campaign.standing.microdollars > 0
        spent = sum(node.spent.microdollars for node in session.nodes.values())
        assert campaign.standing.microdollars + spent == session.accounts.used(Account.USD)
        assert billed(rent) <= booked(session) <= billed(rent) * 1.5 + ROUNDING
        assert standing_line(campaign).startswith("$")


@in_moments
async def test_ended_before_the_last_event(folder: Path) -> None:
    """What still stands when the campaign is over is ended and settled first: the session's last word is the last."""
    script, rent = Script(), rent_of(USD)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), attempts=1) as session:

        async def stand() -> None:
            assert await backend_of(session).rented.stand()

        for _ in range(5):
            await stand()
        await session.run()
        assert [event.kind for event in session.events[-2:]] == ["campaign stopped", "session ended"]
        assert len(session.of(e.StandingEnded)) == 5
        assert not any(event.interrupted for event in session.of(e.StandingEnded))
        assert not rent.register.running()
        assert not session.accounts.holds
        assert await backend_of(session).rented.stand() is False, "the purse is closed"


@in_moments
async def test_what_can_not_be_ended_costs_its_worst(folder: Path) -> None:
    """A standing thing that the provider does not let us end is booked at its worst case, and the ledger says so."""
    faults = Faults()
    script, rent = Script(), rent_of(USD, fault=faults)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:

        def fall_silent(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                faults.at, faults.error, faults.many = Step.END, lambda: Unavailable("no answer"), 99

        session.when(e.AttemptEnded, fall_silent)
        for _ in range(4):  # three trials take one each
            assert await backend_of(session).rented.stand()
        await session.run()
        lost = [event for event in session.of(e.StandingEnded) if event.interrupted]
        assert [event.spent.microdollars for event in lost] == [WORST]
        assert "nobody saw its end" in line_of(lost[0])
        faults.many = 0


@in_moments
async def test_nothing_stands_that_would_keep_an_attempt_from_starting(folder: Path) -> None:
    """A purse that pays for what stands leaves room for a whole attempt, always."""
    script, rent = Script(), rent_of(USD)
    cap = (ATTEMPT + 2 * WORST + 5) / 1e6
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), usd=cap) as session:
        rented = backend_of(session).rented
        with structlog.testing.capture_logs() as logged:
            assert [await rented.stand() for _ in range(4)] == [True, True, False, False]
        warned = [entry["event"] for entry in logged if entry["log_level"] == "warning"]
        assert warned == ["nothing stands between trials: the cap is too small"]
        await session.run()
        assert session.charged == 1


@in_moments
async def test_nothing_stands_for_attempts_that_do_not_come(folder: Path) -> None:
    """Where no attempt is left to serve, nothing is made to stand, and nobody is told that money is short."""
    script, rent = Script(), rent_of(USD)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), attempts=1, usd=100) as session:
        await session.run()
        purse = CampaignPurse(session.bench.book, "rented", lambda: Amounts.exact({Account.ATTEMPTS: 1}))
        with structlog.testing.capture_logs() as logged:
            assert not await purse.reserve("one", WORST / 1e6)
        assert logged == []


@in_moments
async def test_confirmed_late(folder: Path) -> None:
    """What is settled after its own end has passed cost no more than was set aside, so no cap is passed by it."""
    script, rent = Script(), rent_of(USD)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:
        purse = backend_of(session).rented.purse
        assert purse
        assert await purse.reserve("one", WORST / 1e6, USD)
        purse.settle("one", 100 * WORST / 1e6)
        assert session.state.campaign.standing.microdollars == WORST
        await session.run()


@in_moments
async def test_what_stands_makes_room(folder: Path) -> None:
    """When an attempt cannot start only for what stands idle, that is ended: a campaign never waits for itself."""
    script, rent = Script(), rent_of(USD)
    cap = (ATTEMPT + WORST) / 1e6
    async with scripted(folder, script, {"value": 1}, {"value": 2}, site=rented_site(script, rent), usd=cap) as session:
        rented = backend_of(session).rented
        # One that is not asked to leave room for anybody.
        rented.purse = greedy = CampaignPurse(session.bench.book, "rented", Amounts)

        def stand(event: e.AttemptEnded) -> None:
            if event.node == "1":
                assert greedy.set_aside("idle", (session.accounts.left(Account.USD) or 0) / 1e6)

        async def stand_down() -> None:
            if "idle" in session.state.standing:
                greedy.settle("idle", 0.0)

        session.when(e.AttemptEnded, stand)
        object.__setattr__(session.bench, "stand_down", stand_down)
        await session.run()
        assert session.charged == 2
        assert [event.name for event in session.of(e.StandingEnded)] == ["idle"]


@in_moments
async def test_after_a_crash(folder: Path) -> None:
    """What a dead owner left standing is booked at its price for the seconds since its intent, and never twice."""
    script, rent = Script(), rent_of(USD)
    site = rented_site(script, rent)
    async with scripted(folder, script, {"value": 1}, site=site) as session:
        rented = backend_of(session).rented
        assert await rented.stand()
        assert session.bench.purse is not None
        assert await session.bench.purse.reserve("priceless", 0.25)
        session.bench.purse.close()  # as if we had died here: nobody settles
    again = rented_site(Script(), rent_of(USD))
    async with scripted(folder, None, {"value": 1}, how=How.RESUME, site=again) as session:
        assert not session.state.standing
        spent = session.state.campaign.standing.microdollars
        assert billed(rent) <= spent / 1e6 - 0.25 < WORST / 1e6
        assert session.accounts.used(Account.USD) == spent
        await session.run()


@pytest.mark.parametrize(("usd", "attempts", "most"), [(1.0, 5, ATTEMPT), (6.0, 5, ATTEMPT), (1.0, 0, BASELINE)])
@in_moments
async def test_cap_that_does_not_cover_one_attempt(folder: Path, usd: float, attempts: int, most: int) -> None:
    """It is said in one line, with both sums, before anything is created or recorded. To cover the baseline alone
    is not enough, unless no attempt is wanted.
    """
    rent = rent_of(USD)
    told = rf"--usd of \${usd:.2f} is not enough for one attempt on rented, .* \${most / 1e6:.2f} at its worst"
    with pytest.raises(TaskError, match=told):
        async with scripted(folder, None, {"value": 1}, site=rented_site(Script(), rent), usd=usd, attempts=attempts):
            pass
    assert not rent.register.running()
    assert billed(rent) == 0
