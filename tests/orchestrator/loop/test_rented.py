"""Candidates on rented chambers: what is reserved, what is booked, and what a provider's failures cost."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.llm.line import Unusable
from orchestrator.loop import breaker, settling
from orchestrator.views.campaign.waiting import away_because
from orchestrator.wiring.beginning import How
from orchestrator.wiring.site import Site
from sandbox import Denied, Job, Refused, TakenAway, Terms, Unavailable
from sandbox.backends.fake.rent import Charges, Rent, Step
from sandbox.price import billed_clock
from tests.orchestrator.loop.rented import CONTROL_S, TRIAL_S, USD, Faults, billed, booked, rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, WALL_S, Scripted, make_site, ran, scripted, write_task
from tests.orchestrator.loop.telling import in_moments, rent_of

WORST = round((TRIAL_S + CONTROL_S) * USD * 1_000_000)
ROUNDING = 1e-4
# So long that what a busy machine adds between the provider's clock and ours is nothing beside it.
OPENING_S = 10.0


def assert_covered(session: Scripted, rent: Rent) -> None:
    assert billed(rent) <= booked(session) <= billed(rent) * 1.2 + ROUNDING


def never_over(session: Scripted, limit: int | None = None) -> None:
    """At every event, what is used and held together is within the cap."""

    def look(*_: object) -> None:
        left = session.accounts.left(Account.USD)
        assert left is None or left >= 0

    session.bench.book.listeners.append(look)


@in_moments
async def test_worst_case_is_reserved_before_create(folder: Path) -> None:
    """A trial's worst case, opening and tail included, is held before anything exists; the judge at home costs none."""
    held: list[int] = []
    script = Script()

    async def on_open(job: Job) -> None:
        if job.command[0] == "trial":
            held.append(session.accounts.held(Account.USD))

    script.on_open = on_open
    rent = rent_of(USD)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:
        await session.run()
        # The baseline has one trial; an attempt has its replay as well, and whichever breaks off is its last.
        attempt = round((2 * TRIAL_S + CONTROL_S) * USD * 1_000_000)
        assert held == [WORST, attempt, attempt]
        assert not session.accounts.holds


@in_moments
async def test_settled_by_measured_seconds(folder: Path) -> None:
    """What is booked is what the provider's register says, from create to the confirmed end, and the rest goes back."""
    script, rent = Script(), rent_of(USD, opening_s=OPENING_S)
    points = [{"value": value, "takes": 0.02} for value in (1, 2, 3)]
    async with scripted(folder, script, *points, site=rented_site(script, rent)) as session:
        never_over(session)
        await session.run()
        assert_covered(session, rent)
        assert booked(session) == sum(node.spent.microdollars for node in session.nodes.values()) / 1e6
        assert not rent.register.running()


@in_moments
async def test_judge_and_candidate_have_their_own_prices(tmp_path: Path) -> None:
    """A guard beside the judge stays at home and costs nothing; one beside the candidate is rented."""
    guard = GUARD.replace(f"{WALL_S}s", "0.5s")  # there is no workspace beside a judge, and this one hangs without it
    away, home = guard.replace("sound", "away"), guard.replace("sound", "home") + 'in = "judge"\n'
    held: dict[str, int] = {}
    for name, one in {"none": "", "away": away, "home": home}.items():
        script = Script()
        task = write_task(tmp_path / name, one)
        async with scripted(task, script, {"value": 1}, site=rented_site(script, rent_of(USD)), attempts=1) as session:
            reserved: list[e.Reserved] = []
            session.when(e.Reserved, reserved.append)
            await session.run()
            held[name] = reserved[-1].amounts["usd"]
    assert held["none"] == held["home"] < held["away"]


@pytest.mark.parametrize("step", [Step.CREATED, Step.READY])
@in_moments
async def test_failed_open_is_paid(folder: Path, step: Step) -> None:
    """A chamber that was created and never served costs what the provider charges: booked as a loss, and refunded."""
    faults = Faults(step, lambda: Unavailable("the reply was lost"), first=2, many=2)
    script, rent = Script(), rent_of(USD, opening_s=OPENING_S, fault=faults)
    session = await ran(folder, script, {"value": 1}, site=rented_site(script, rent))
    node, losses = session.nodes["1.1"], session.accounts.losses
    assert [event.ending for event in session.of(e.AttemptRequeued)] == [Ending.INFRASTRUCTURE] * 2
    assert (node.ending, session.charged) == (Ending.SCORED, 1)
    failed = [it for it in session.state.trials_of("1.1") if it.ending is Ending.INFRASTRUCTURE]
    assert sum(trial.spent.microdollars for trial in failed) == losses.usd > 0
    assert_covered(session, rent)


@in_moments
async def test_nothing_created_costs_nothing(folder: Path) -> None:
    """Quota that is exhausted is told before anything exists: retried with back-off, refunded, and free."""
    faults = Faults(Step.CREATE, lambda: Unavailable("quota exhausted"), first=2, many=2)
    script, rent = Script(), rent_of(USD, fault=faults)
    session = await ran(folder, script, {"value": 1}, site=rented_site(script, rent))
    first, second = session.clock.waits
    assert all(0.5 <= wait < 1 for wait in (first, second))
    assert session.accounts.losses.usd == 0
    assert session.nodes["1.1"].ending is Ending.SCORED


@in_moments
async def test_quota_for_good_ends_the_campaign(tmp_path: Path) -> None:
    """A provider that never has room is given up after a while; nothing was charged, and nobody set aside."""
    folder = write_task(tmp_path / "task", "[stall]\nrefunds = 3\nin_a_row = 5\n")
    faults = Faults(Step.CREATE, lambda: Unavailable("quota exhausted"), first=2, many=99)
    script, rent = Script(), rent_of(USD, fault=faults)
    session = await ran(folder, script, {"value": 1}, site=rented_site(script, rent))
    finished = session.ends[-1]
    node = session.nodes["1.1"]
    assert (node.phase, node.trials, session.charged) == (Phase.QUEUED, 5, 0)
    assert "quota exhausted" in node.why
    assert finished.gave_up


@in_moments
async def test_unreachable_provider(folder: Path) -> None:
    """A provider that does not answer from the start ends the campaign with a line that says so."""
    script, rent = Script(), rent_of(USD)
    script.world.answers = False
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:
        with pytest.raises(Unavailable, match="told not to answer; given up after"):
            await session.run()
        assert booked(session) == 0
        script.world.answers = True


@in_moments
async def test_T86_a_wait_is_said_before_a_trial_breaks_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that costs nothing to ask is asked soon: its outage is on record while the trial still hopes."""
    monkeypatch.setattr(breaker, "AGAIN_S", 0.0)
    script, rent = Script(), rent_of(USD)
    terms = Terms(opening_s=20.0, closing_s=30.0, quiet_s=0.05)
    async with scripted(
        folder, script, {"value": 1, "do": "wait"}, site=rented_site(script, rent, terms=terms), attempts=1
    ) as session:
        session.clock.skip_wait = lambda *_: None  # type: ignore[method-assign]
        running = asyncio.create_task(session.run())
        while "1.1-1" not in session.state.trials or not script.world.chambers:  # noqa: ASYNC110 an event is only told when it is on record
            await asyncio.sleep(0.01)
        script.world.answers = False
        while not session.state.campaign.away:  # noqa: ASYNC110 likewise
            await asyncio.sleep(0.01)
        assert not session.state.trials["1.1-1"].ended
        assert "rented does not answer" in away_because(session.state.campaign)
        script.world.answers = True
        session.campaign.stop("seen")
        await running


@in_moments
async def test_no_chamber_in_time(tmp_path: Path) -> None:
    """An opening that outlasts its deadline is ended, confirmed and paid for: a stall that costs what it stood."""
    folder = write_task(tmp_path / "task", '[stall]\nprovision = "1s"\nafter = 1\nin_a_row = 2\n')
    script = Script()
    rent = rent_of(USD, opening_s=60.0)
    site = rented_site(script, rent, terms=Terms(opening_s=1.0, closing_s=1.0))
    session = await ran(folder, script, {"value": 1}, site=site)
    finished = session.ends[-1]
    assert "no chamber within" in session.nodes["1"].why
    assert finished.gave_up
    assert_covered(session, rent)
    assert billed(rent) >= 1.0 * USD
    assert not rent.register.running()


@pytest.mark.parametrize("step", [Step.CREATE, Step.CREATED])
@in_moments
async def test_refused_token_ends_the_campaign(folder: Path, step: Step) -> None:
    """A token that is over is no use trying: one line, no retry is burnt, and a resume goes on with the attempt."""
    faults = Faults(step, lambda: Denied("the token is over: make a new one"), first=2, many=99)
    script, rent = Script(), rent_of(USD, opening_s=OPENING_S, fault=faults)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:
        with pytest.raises(Unusable, match="the token is over"):
            await session.run()
        node = session.nodes["1.1"]
        assert (node.phase, node.trials, session.charged) == (Phase.QUEUED, 1, 0)
        assert session.state.campaign.refunds == {}
        assert session.state.campaign.stopped == "the token is over: make a new one"
        assert_covered(session, rent)
    site = rented_site(Script(), rent_of(USD))
    session = await ran(folder, None, {"value": 1}, how=How.RESUME, site=site)
    assert session.nodes["1.1"].ending is Ending.SCORED


@in_moments
async def test_token_that_runs_out_under_way(folder: Path) -> None:
    """After delivery, too: the control job is refused as well, so it is not the candidate's fault."""
    faults = Faults(Step.CREATE, lambda: Denied("the token is over"), first=3, many=99)
    script, rent = Script(), rent_of(USD, fault=faults)
    async with scripted(folder, script, {"value": 1, "do": "break off"}, site=rented_site(script, rent)) as session:
        with pytest.raises(Unusable, match="connection broke"):
            await session.run()
        assert session.state.trials["1.1-1"].ending is Ending.INFRASTRUCTURE
        assert (session.nodes["1.1"].phase, session.charged) == (Phase.QUEUED, 0)


@in_moments
async def test_machine_taken_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider's own word that it took a machine away is proof enough: refunded, and run again elsewhere."""
    script, rent = Script(), rent_of(USD, opening_s=OPENING_S)
    site = rented_site(script, rent)
    opened = site.backend.open
    runs = 0

    async def open_and_lose(job: Job) -> object:
        nonlocal runs
        chamber = await opened(job)
        runs += job.command[0] == "trial"
        if runs == 2 and job.command[0] == "trial":
            runs += 1

            async def run(*_: object, **__: object) -> None:
                await asyncio.sleep(0.02)
                raise TakenAway("the worker died")

            monkeypatch.setattr(chamber, "run", run)
        return chamber

    monkeypatch.setattr(site.backend, "open", open_and_lose)
    session = await ran(folder, script, {"value": 1}, site=site)
    assert session.state.trials["1.1-1"].ending is Ending.INFRASTRUCTURE
    assert "true" not in script.commands, "no control job was needed"
    assert (session.nodes["1.1"].ending, session.charged) == (Ending.SCORED, 1)
    assert session.accounts.losses.usd > 0
    assert_covered(session, rent)


@in_moments
async def test_control_job_is_paid(folder: Path) -> None:
    """Whoever pays for a broken trial pays for the control job that proved it: both are in the provider's register."""
    script, rent = Script(), rent_of(USD, opening_s=OPENING_S)
    site = rented_site(script, rent)
    session = await ran(folder, script, {"value": 1, "do": "break off"}, site=site)
    assert "true" in script.commands
    assert session.nodes["1.1"].ending is Ending.FAILED
    assert_covered(session, rent)


@in_moments
async def test_end_that_is_not_confirmed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminate that fails costs the worst case, and the trial keeps its outcome: the provider's lifetime ends it."""
    monkeypatch.setattr(settling, "HOPE_S", 0.0)
    faults = Faults(Step.END, lambda: Unavailable("no answer"), first=2)
    script, rent = Script(), rent_of(USD, fault=faults)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:
        never_over(session)
        await session.run()
        trial = session.state.trials["1.1-1"]
        assert trial.ending is None
        assert trial.spent.microdollars == round(TRIAL_S * USD * 1e6)
        assert session.nodes["1.1"].ending is Ending.SCORED
        assert booked(session) >= billed(rent)


@pytest.mark.parametrize("how", ["outcome", "break off", "not opened"])
async def test_end_that_is_seen_late(folder: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A machine that slept for hours sees the end of what it rented hours late: the provider's lifetime ended that long
    before, so it costs its worst case and no more.
    """
    ahead = 0.0

    def faults(step: Step, _: str) -> None:
        nonlocal ahead
        if step is Step.CREATED and register.count == 2 and how == "not opened":
            raise Unavailable("the reply was lost")
        if step is Step.END and register.count == 2:
            ahead = 8 * 3600.0

    monkeypatch.setattr("sandbox.live.billed_clock", lambda: billed_clock() + ahead)
    script, register = Script(), Charges()
    rent = Rent(USD, register, fault=faults)
    point: dict[str, int | str] = {"value": 1} | ({"do": how} if how == "break off" else {})
    async with scripted(folder, script, point, site=rented_site(script, rent), attempts=1) as session:
        never_over(session)
        await session.run()
        trial = session.state.trials["1.1-1"]
        worst, control = (round(seconds * USD * 1e6) for seconds in (TRIAL_S, CONTROL_S))
        assert worst <= trial.spent.microdollars <= worst + control * (how == "break off")


@in_moments
async def test_stopped_without_confirmation(folder: Path) -> None:
    """Ctrl-C while the provider does not answer: what may still be running is booked at its worst case."""
    faults = Faults(Step.END, lambda: Unavailable("no answer"), first=2, many=99)

    def stopped(step: Step, name: str) -> None:
        faults(step, name)
        if (
            step is Step.READY and faults.met[step] == 2
        ):  # of the candidate; before it is rented, nothing could be booked
            session.campaign.stop("Ctrl-C")

    script, rent = Script(), rent_of(USD, fault=stopped)
    async with scripted(folder, script, {"value": 1, "do": "wait"}, site=rented_site(script, rent)) as session:
        await session.run()
        trial = session.state.trials["1.1-1"]
        assert trial.ending is Ending.INTERRUPTED
        assert trial.spent.microdollars == round(TRIAL_S * USD * 1e6)
        faults.many = 0


@in_moments
async def test_stopped_while_the_control_runs(folder: Path) -> None:
    """Ctrl-C while it is still asked whose fault it was: the trial whose end nobody confirmed costs its worst case."""
    faults = Faults(Step.END, lambda: Unavailable("no answer"), first=2, many=99)
    script, rent = Script(), rent_of(USD, fault=faults)
    site = rented_site(script, rent)
    async with scripted(folder, script, {"value": 1, "do": "break off"}, site=site) as session:

        async def on_open(job: Job) -> None:
            if job.command[0] == "true":
                session.campaign.stop("Ctrl-C")
                await asyncio.sleep(60)

        script.on_open = on_open
        await session.run()
        trial = session.state.trials["1.1-1"]
        assert trial.ending is Ending.INTERRUPTED
        assert trial.spent.microdollars == round(TRIAL_S * USD * 1e6)
        faults.many = 0


@in_moments
async def test_refused_and_not_ended(folder: Path) -> None:
    """A chamber that is not what was asked for, and whose end nobody confirmed, costs its worst case."""

    def fault(step: Step, _: str) -> None:
        met[step] = met.get(step, 0) + 1
        if met[step] > 1 and step is Step.READY:
            raise Refused("the posture is not what was asked for")
        if met[step] > 1 and step is Step.END:
            raise Unavailable("no answer")

    met: dict[Step, int] = {}
    script = Script()
    rent = rent_of(USD, fault=fault)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent)) as session:
        with pytest.raises(Refused):
            await session.run()
        trial = session.state.trials["1.1-1"]
        assert trial.spent.microdollars == round(TRIAL_S * USD * 1e6)
        met.clear()


@in_moments
async def test_cap_holds_with_many_at_once(folder: Path) -> None:
    """Five at a time on rented chambers, with some that fail: used and held never pass the cap."""
    faults = Faults(Step.READY, lambda: Unavailable("lost"), first=4, many=3)
    script, rent = Script(), rent_of(USD, opening_s=0.005, fault=faults)
    points = [{"value": value, "takes": 0.003 * (value % 4)} for value in range(1, 9)]
    site = rented_site(script, rent, ceiling=5)
    cap = 7 * WORST / 1e6
    async with scripted(folder, script, *points, site=site, width=5, usd=cap, attempts=8) as session:
        never_over(session)
        await session.run()
        assert booked(session) <= cap
        assert billed(rent) <= booked(session)
        assert session.charged == 8


async def dies(folder: Path, site: Site, after_s: float = 0.0) -> None:
    """A session that dies while its rented trial runs: nothing more is written, and what it rented lives on."""
    async with scripted(folder, Script(), {"value": 1, "do": "wait"}, site=site, attempts=1) as session:
        running = asyncio.create_task(session.run())
        while "1.1-1" not in session.state.trials:  # noqa: ASYNC110 an event is only told when it is on record
            await asyncio.sleep(0.01)
        await session.bench.book.durable()
        await asyncio.sleep(after_s)
        session.bench.book.fail(RuntimeError("dead"))
        session.campaign.stop("dead")
        with pytest.raises(RuntimeError, match="dead"):
            await running


@pytest.mark.parametrize(
    ("host", "place", "left"), [("another", "here", ()), ("one", "there", ()), ("one", "here", ("chamber",))]
)
@in_moments
async def test_resumed_by_one_who_can_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, place: str, left: tuple[str, ...]
) -> None:
    """What somebody rented on another host, for another user, or what the provider did not let us end, may still live:
    it is booked at its worst case.
    """
    monkeypatch.setattr("socket.gethostname", lambda: "one")
    folder = write_task(tmp_path / "task", limits='[limits]\nwall = "1s"\ngrace = "1s"\n')
    await dies(folder, replace(rented_site(Script(), rent_of(USD)), place="here"))
    monkeypatch.setattr("socket.gethostname", lambda: host)
    site = replace(rented_site(Script(), rent_of(USD)), place=place, unreaped=left)
    async with scripted(folder, None, {"value": 1}, how=How.RESUME, site=site) as session:
        trial = session.state.trials["1.1-1"]
        assert trial.ending is Ending.INTERRUPTED
        assert trial.spent.microdollars == round((TRIAL_S - WALL_S + 1) * USD * 1e6)
        await session.run()


@pytest.mark.parametrize("again", ["same", "other"])
async def test_resumed_on_another_backend_after_a_crash(folder: Path, again: str) -> None:
    """A rented trial that its owner died in is booked at the price of where it ran, wherever the campaign goes on."""
    await dies(folder, rented_site(Script(), Rent(USD)), after_s=1.0)
    elsewhere = make_site(Script()) if again == "other" else rented_site(Script(), Rent(USD))
    async with scripted(folder, Script(), {"value": 1}, how=How.RESUME, site=elsewhere) as session:
        assert session.state.trials["1.1-1"].spent.microdollars >= 0.5 * USD * 1e6


@in_moments
async def test_a_guard_that_was_refused_after_create_is_paid(tmp_path: Path) -> None:
    """Posture and price are compared after create: what the provider charged until then is booked."""
    folder = write_task(tmp_path / "task", GUARD)
    script, rent = Script(), rent_of(USD, opening_s=OPENING_S)
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
    session = await ran(folder, script, {"value": 1}, site=site, attempts=1)
    (guarded,) = session.of(e.GuardEnded)
    assert "posture" in guarded.reason
    assert guarded.spent.microdollars > 0
    assert booked(session) >= billed(rent) * 0.99
