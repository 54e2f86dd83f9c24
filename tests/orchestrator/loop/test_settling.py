"""What was booked at its worst is settled once the provider can say how long it lived."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Purpose, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.loop import settling
from orchestrator.loop.again import set_aside
from orchestrator.loop.settling import Settling
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from sandbox import Bundle, Unavailable
from sandbox.backends.fake.rent import Rent, Step
from tests.orchestrator.loop.books import check_books
from tests.orchestrator.loop.rented import CONTROL_S, TRIAL_S, USD, RentedBackend, billed, booked, rented_site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import (
    GUARD,
    HELDOUT,
    TUNE,
    WALL_S,
    Point,
    Scripted,
    proposal,
    ran,
    scripted,
    write_task,
)
from tests.orchestrator.loop.test_combining import base_stage, write_both
from tests.orchestrator.loop.test_minimising import WINNER, apart, searched

# Each chamber is rounded up by itself.
ROUNDING = 1e-4
WORST_USD = TRIAL_S * USD


class Away:
    """A provider that is away from the so-manieth chamber's greeting on, for so many failures. What it was asked to
    end meanwhile it ends, and it says so later.
    """

    def __init__(self, script: Script, first: int = 2, many: int = 1) -> None:
        self.script, self.first, self.many = script, first, many
        self.made = 0
        self.unended: list[str] = []

    def __call__(self, step: Step, name: str) -> None:
        if step is Step.CREATE:
            self.made += 1
        fails = self.first <= self.made < self.first + self.many
        if fails and step is Step.READY:
            raise Unavailable("nobody answers")
        if fails and step is Step.ENDED and name not in self.unended:
            self.unended.append(name)
            raise Unavailable("nobody answers")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "SOON_S", 0.0)
    monkeypatch.setattr(settling, "LATER_S", 0.0)


def never_below(session: Scripted, rent: Rent) -> None:
    """At no event is less booked and held than is billed."""

    def look(*_: object) -> None:
        accounts = session.accounts
        covered = accounts.used(Account.USD) + accounts.held(Account.USD)
        assert covered >= billed(rent) * 1e6 - 1
        left = accounts.left(Account.USD)
        assert left is None or left >= 0

    session.bench.book.listeners.append(look)


async def test_settled_before_the_end(folder: Path) -> None:
    """A free ending that was booked at its worst costs what the provider charged, in every figure."""
    script = Script()
    rent = Rent(USD, fault=(away := Away(script)))
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), usd=100.0) as session:
        never_below(session, rent)
        await session.run()
        state, accounts = session.state, session.accounts
        (ended,) = [it for it in session.of(e.TrialEnded) if it.ending is Ending.INFRASTRUCTURE]
        assert ended.spent.microdollars == round(WORST_USD * 1e6), "booked at its worst at first"
        (settled,) = session.of(e.DoubtSettled)
        assert (settled.chamber, settled.lost) == (away.unended[0], True)
        assert not state.doubts
        assert billed(rent) <= booked(session) <= billed(rent) * 1.2 + ROUNDING
        assert booked(session) == sum(node.spent.microdollars for node in state.nodes.values()) / 1e6
        assert all(node.spent == node.booked for node in state.nodes.values())
        assert state.trials[ended.trial].spent.microdollars == accounts.losses.usd
        assert (accounts.losses.endings, accounts.losses.usd < 0.05 * WORST_USD * 1e6) == (1, True)
        check_books(session.bench.book.ledger)


async def test_its_money_is_there_again(folder: Path) -> None:
    """A cap that the worst case filled lets the search go on once that is settled: it waits for that."""
    script = Script()
    rent = Rent(USD, fault=Away(script))
    # What an attempt reserves, and less than what is booked for the one that failed.
    cap = (2 * TRIAL_S + CONTROL_S) * USD + WORST_USD / 2
    points = [{"value": 1}, {"value": 2}]
    async with scripted(folder, script, *points, site=rented_site(script, rent), usd=cap) as session:
        never_below(session, rent)
        await session.run()
        assert session.charged == 2


async def test_a_later_session_settles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the provider could not tell before the campaign's end is told to whoever resumes it, once. What is not in a
    list that somebody else keeps did not cost nothing for that: it stays at its worst.
    """
    script = Script()
    rent = Rent(USD, fault=Away(script, first=3))
    site = rented_site(script, rent)
    async with scripted(folder, script, {"value": 1}, site=site, attempts=1, usd=100.0) as session:
        session.when(e.AttemptRequeued, lambda _: session.campaign.stop("Ctrl-C"))
        session.when(e.AttemptRequeued, lambda _: setattr(script.world, "answers", False))
        await session.run()
        assert len(session.state.doubts) == 1
        assert booked(session) > WORST_USD
        script.world.answers = True
    with monkeypatch.context() as patched:
        patched.setattr(RentedBackend, "registry", "another")
        async with scripted(folder, None, how=How.RESUME, site=rented_site(script, Rent(USD))) as session:
            session.campaign.stop("Ctrl-C")
            await session.run()
            assert len(session.state.doubts) == 1
    for _ in range(2):
        script.world.live_owners.clear()
        async with scripted(folder, script, {"value": 1}, how=How.RESUME, site=rented_site(script, rent)) as session:
            await session.run()
            assert not session.state.doubts
            assert billed(rent) <= booked(session) <= billed(rent) * 1.2 + ROUNDING
            check_books(session.bench.book.ledger)
    assert len([it for it in session.bench.book.ledger.read() if it.kind == "doubt settled"]) == 1


@pytest.mark.parametrize("word", [-0.001, math.nan, 1e307])
async def test_no_time_is_no_word(folder: Path, monkeypatch: pytest.MonkeyPatch, word: float) -> None:
    """What nothing can have lived frees nothing, and ends no session."""
    script = Script()
    rent = Rent(USD, fault=Away(script))
    monkeypatch.setattr(rent.register, "lived", lambda _: word)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), usd=100.0) as session:
        session.when(e.AttemptRequeued, lambda _: session.clock.skip(settling.HOPE_S))
        await session.run()
        assert session.charged == 1
        assert len(session.state.doubts) == 1
        assert booked(session) > WORST_USD
        check_books(session.bench.book.ledger)


async def test_a_clock_that_was_set_back_keeps_no_session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was booked in the future is not waited for until then."""
    script = Script()
    rent = Rent(USD, fault=Away(script))
    monkeypatch.setattr(rent.register, "lived", lambda _: None)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), attempts=1) as session:
        session.when(e.AttemptEnded, lambda event: session.clock.skip(-86_400 if event.node == "1.1" else 0))
        await session.run(40)
        assert len(session.state.doubts) == 1


async def test_each_chamber_by_its_own_word(tmp_path: Path) -> None:
    """What an attempt left in doubt before says nothing of what it ran later, and was seen to end."""
    folder = write_task(tmp_path / "task", limits='[limits]\nwall = "1s"\ngrace = "1s"\n')
    script, left, cut = Script(), list[str](), asyncio.timeout(None)

    def fault(step: Step, name: str) -> None:
        if step is Step.CREATE and "1.1" in session.nodes and not left:
            left.append(name)
        if step is Step.READY and name in left:
            cut.reschedule(asyncio.get_running_loop().time())
        if step is Step.READY and "1.1-1" in session.state.trials:
            session.campaign.stop("Ctrl-C")
        if step is Step.ENDED and name in left:
            raise Unavailable("nobody answers")

    async def act(_: Brief) -> Sequence[Proposal]:
        nonlocal cut
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as cut:
                await session.bench.door.run(session.bench.jobs.trial(Mode.SUBMIT), Bundle({}))
        return [proposal(point)]

    rent = Rent(USD, fault=fault)
    point: Point = {"value": 1, "do": "wait"}
    site = rented_site(script, rent)
    async with scripted(folder, script, act, words=[point], site=site, attempts=1, usd=100.0) as session:
        await session.run()
        assert [*session.bench.door.unsure] == left
        assert session.state.trials["1.1-1"].ending is Ending.INTERRUPTED
        assert not session.of(e.DoubtSettled)


async def test_each_kind_of_paid_run(tmp_path: Path) -> None:
    """Whatever was run in the chamber, of any number in the row, it is settled, and books and figures agree."""
    doubted = set()
    for first in range(2, 10):
        script = Script()
        rent = Rent(USD, fault=Away(script, first=first))
        place = write_task(tmp_path / f"task{first}", TUNE, GUARD, HELDOUT)
        async with scripted(place, script, {"value": 1}, site=rented_site(script, rent), usd=100.0) as session:
            await whole(session, rent)
            for it in session.events:
                if isinstance(spent := getattr(it, "spent", None), Spent) and spent.doubts:
                    doubted.add(session.state.trials[it.trial].purpose if isinstance(it, e.TrialEnded) else type(it))
    assert doubted >= {Purpose.TUNE, Purpose.SUBMIT, Purpose.REPLAY, e.GuardEnded}, doubted


async def whole(session: Scripted, rent: Rent) -> None:
    """It runs to its end; then nothing is in doubt, and the books say what is billed."""
    never_below(session, rent)
    await session.run()
    assert not session.state.doubts
    assert billed(rent) <= booked(session) <= billed(rent) * 1.3 + ROUNDING
    check_books(session.bench.book.ledger)


async def test_members_and_combinations(tmp_path: Path) -> None:
    """A member that is run for a pool belongs to no node: the campaign's own sum is settled. So is a combination's."""
    members = combinations = 0
    for first in range(1, 6):
        folder, script = write_both(tmp_path / f"task{first}", HELDOUT), Script()
        rent = Rent(USD)
        await base_stage(folder, site=rented_site(Script(), rent), usd=1000.0)
        rent.fault = Away(script, first=first)
        async with scripted(folder, script, {"value": 9}, how=How.COMBINE, site=rented_site(script, rent)) as stage:
            with suppress(Unavailable):  # without a member there is no pool; a resume goes on
                await stage.run()
            told = [it for it in stage.of(e.MemberEnded) if it.spent.doubts]
            members, combinations = members + bool(told), combinations + (not told)
        async with scripted(folder, script, {"value": 9}, how=How.RESUME, site=rented_site(script, rent)) as stage:
            await whole(stage, rent)
            assert stage.bench.book.accounts.used(Account.COMBINATION) == 4
    assert members
    assert combinations


async def test_what_takes_a_winner_apart(tmp_path: Path) -> None:
    folder, script = write_task(tmp_path / "task"), Script()
    rent = Rent(USD)
    await searched(folder, WINNER, site=rented_site(Script(), rent), usd=1000.0)
    rent.fault = Away(script, first=2)
    async with apart(folder, script, site=rented_site(script, rent)) as session:
        await whole(session, rent)
        assert session.of(e.DoubtSettled)


async def test_what_was_ended_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while nobody confirms an end: the worst case at first, and the provider's word for whoever resumes."""
    folder = write_task(tmp_path / "task", limits='[limits]\nwall = "1s"\ngrace = "1s"\n')
    script, gone = Script(), False

    def fault(step: Step, _: str) -> None:
        if "1.1-1" not in session.state.trials or gone:
            return
        if step is Step.READY:
            session.campaign.stop("Ctrl-C")
        if step is Step.ENDED:
            raise Unavailable("nobody answers")

    rent = Rent(USD, fault=fault)
    point: Point = {"value": 1, "do": "wait"}
    with monkeypatch.context() as patched:
        patched.setattr(rent.register, "lived", lambda _: None)
        async with scripted(folder, script, point, site=rented_site(script, rent), attempts=1) as session:
            await session.run()
            trial, worst = session.state.trials["1.1-1"], WORST_USD - (WALL_S - 1) * USD
            assert (trial.ending, trial.spent.microdollars) == (Ending.INTERRUPTED, round(worst * 1e6))
            assert [it.node for it in session.state.doubts.values()] == ["1.1"]
    gone = True
    async with scripted(folder, script, point, how=How.RESUME, site=rented_site(script, rent)) as session:
        await whole(session, rent)
        assert [it.lost for it in session.of(e.DoubtSettled)] == [False]


async def test_settled_while_it_is_run_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a second run of a node cost is told apart from what is freed of its first one meanwhile."""
    script, told = Script(), False
    rent = Rent(USD, fault=Away(script))
    lived = rent.register.lived
    site = rented_site(script, rent)
    async with scripted(folder, script, {"value": 1}, site=site, attempts=1, usd=100.0) as session:
        bench = session.bench
        monkeypatch.setattr(rent.register, "lived", lambda name: lived(name) if told else None)
        session.stop_at(e.AttemptEnded, 2)
        await session.run()
        assert len(bench.state.doubts) == 1
        before, used = bench.state.nodes["1.1"].spent, bench.book.accounts.used(Account.USD)
        async with set_aside(bench, "1.1", "1.1#again", 1, "one more"):
            told = True
            await Settling(bench.book, bench.door).close()
            assert not bench.state.doubts
            more = e.GuardEnded(node="1.1", guard="one", passed=False, interrupted=True, spent=Spent(microdollars=7))
            bench.book.record(more)
        node = bench.state.nodes["1.1"]
        assert node.spent == node.booked
        freed = before.microdollars + 7 - node.spent.microdollars
        assert bench.book.accounts.used(Account.USD) == used - freed + 7


async def test_what_stood_is_settled(folder: Path) -> None:
    """What stood ready, and could not be ended, costs what its provider says in the end, in the campaign's own sum."""
    script, gone = Script(), False

    def fault(step: Step, _: str) -> None:
        if step is Step.ENDED and not gone:
            raise Unavailable("nobody answers")

    rent = Rent(USD, fault=fault)
    site = rented_site(script, rent)
    async with scripted(folder, script, {"value": 1}, site=site, usd=100.0) as session:
        assert isinstance(session.bench.door.backend, RentedBackend)
        for _ in range(5):
            assert await session.bench.door.backend.rented.stand()
        await session.run()
        gone = True
        state = session.state
        ended = [it for it in session.of(e.StandingEnded) if it.interrupted]
        assert {it.spent.microdollars for it in ended} == {round(USD * rent.standing_s * 1e6)}
        assert {it.name for it in ended} <= {it.chamber for it in session.of(e.DoubtSettled)}
        assert not state.doubts
        spent = sum(node.spent.microdollars for node in state.nodes.values()) + state.campaign.standing.microdollars
        assert session.accounts.used(Account.USD) == spent
        # What waited for a trial before it was taken is booked to both: never less than is charged.
        assert billed(rent) <= booked(session) <= billed(rent) * 2 + ROUNDING
        check_books(session.bench.book.ledger)


async def test_T87_free_endings_still_end_the_campaign(tmp_path: Path) -> None:
    """Settled or not, free endings without end are so many in a row; their dollars count as the provider charges."""
    folder = write_task(tmp_path / "task", "[stall]\nin_a_row = 4\nrefunds = 9\nin_a_row_usd = 5.0\n")
    script = Script()
    rent = Rent(USD, fault=Away(script, first=2, many=99))
    session = await ran(folder, script, {"value": 1}, site=rented_site(script, rent), usd=1000.0)
    finished = session.ends[-1]
    assert finished.gave_up
    assert session.state.campaign.free == 4
    assert session.state.campaign.free_usd <= (billed(rent) * 1.2 + ROUNDING) * 1e6


async def test_T87_dollars_that_are_never_settled_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no provider tells, the worst case counts, and the campaign ends by its dollars."""
    folder = write_task(tmp_path / "task", "[stall]\nin_a_row = 99\nrefunds = 99\nin_a_row_usd = 5.0\n")
    script = Script()
    rent = Rent(USD, fault=Away(script, first=2, many=99))
    monkeypatch.setattr(rent.register, "lived", lambda _: None)
    async with scripted(folder, script, {"value": 1}, site=rented_site(script, rent), usd=1000.0) as session:
        session.when(e.AttemptRequeued, lambda _: session.clock.skip(settling.HOPE_S))
        finished = await session.run()
        assert finished.gave_up
        assert 5.0 <= session.state.campaign.free_usd / 1e6 < 5.0 + 2 * WORST_USD


async def test_killed_between_word_and_record(folder: Path) -> None:
    """A session that dies with the answer in hand leaves the doubt; the next one settles it once."""
    script = Script()
    rent = Rent(USD, fault=Away(script))
    site = rented_site(script, rent)
    assert isinstance(site.backend, RentedBackend)
    ask = site.backend.lifetimes

    async def told(given_up: Mapping[str, float]) -> dict[str, float]:
        lived = await ask(given_up)
        session.bench.book.fail(RuntimeError("dead"))
        return lived

    site.backend.lifetimes = told  # type: ignore[method-assign]
    async with scripted(folder, script, {"value": 1}, site=site, usd=100.0) as session:
        with pytest.raises(RuntimeError, match="dead"):
            await session.run()
    script.world.live_owners.clear()
    async with scripted(folder, script, {"value": 1}, how=How.RESUME, site=rented_site(script, rent)) as session:
        await session.run()
        assert len(session.of(e.DoubtSettled)) == 1
        assert session.charged == 1
        assert billed(rent) <= booked(session)
        check_books(session.bench.book.ledger)
