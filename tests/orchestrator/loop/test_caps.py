"""Caps that hold with many attempts at once, and rules that end a campaign."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.control import compare
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.proposers import Brief, Exhausted
from orchestrator.wiring.beginning import How
from sandbox import Job
from sandbox.backends.fake.backend import FakeHold
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import (
    GUARD,
    HELDOUT,
    TUNE,
    WALL_S,
    Point,
    Proposing,
    Scripted,
    make_site,
    ran,
    scripted,
    write_task,
)

# What one attempt sets aside: a trial and two judgings, each with its limit, its grace and the time to spare.
CHAMBER_S = WALL_S + 1 + 100
WORST_S = 3 * CHAMBER_S  # a trial, its judging, and one of the baseline
ATTEMPT_S = 5 * CHAMBER_S  # with its replay
USD_PER_SECOND = 0.01


def watch_caps(session: Scripted) -> list[int]:
    """At every event, nothing is over its cap; how many attempts were open is noted."""
    open_at_once: list[int] = []

    def look(*_: object) -> None:
        accounts = session.accounts
        for account in (Account.ATTEMPTS, Account.TUNES, Account.CONTROL, Account.USD, Account.SECONDS):
            left = accounts.left(account)
            assert left is None or left >= 0, account
        open_at_once.append(sum("/" not in hold for hold in accounts.holds))

    session.bench.book.listeners.append(look)
    return open_at_once


def shuffled(count: int, seed: int) -> list[Point]:
    """Points that take their time, so that attempts overtake each other; some of them fail."""
    chance = random.Random(seed)
    points: list[Point] = []
    for value in range(1, count + 1):
        do = chance.choice(["answer", "answer", "answer", "failed", "out of memory"])
        points.append({"value": value, "takes": chance.uniform(0, 0.03), "do": do})
    return points


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("account", "flags"),
    [
        (Account.ATTEMPTS, {"attempts": 7}),
        (Account.SECONDS, {"seconds": ATTEMPT_S * 2.5, "attempts": 12}),
        (Account.USD, {"usd": ATTEMPT_S * 3.2 * USD_PER_SECOND, "attempts": 12}),
    ],
)
async def test_no_interleaving_overruns_a_cap(
    folder: Path, account: Account, flags: dict[str, Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five at a time: what is used and set aside never passes a cap, and the campaign does not hang below it."""
    monkeypatch.setattr(FakeHold, "usd_per_second", USD_PER_SECOND)
    script = Script()
    site = make_site(script, usd_per_second=USD_PER_SECOND)
    async with scripted(folder, script, *shuffled(20, seed), site=site, width=5, **flags) as session:
        open_at_once = watch_caps(session)
        await session.run()
        accounts = session.accounts
        limit = accounts.limit(account)
        assert limit is not None
        assert accounts.used(account) <= limit
        wide = {Account.ATTEMPTS: 5, Account.SECONDS: 2, Account.USD: 3}[account]
        assert max(open_at_once) == wide
        assert accounts.used(Account.ATTEMPTS) == flags["attempts"]
        assert accounts.used(Account.USD) > 0
        assert not accounts.holds


@pytest.mark.parametrize("tunes", [0, 4])
async def test_tuning_under_tight_caps(tmp_path: Path, tunes: int) -> None:
    """Attempts that want tuning, with little left to set aside, neither wait for each other for ever nor overrun."""
    folder = write_task(tmp_path / "task", TUNE, GUARD)
    drafts: list[list[Point]] = [[{"value": 3 * n + m, "takes": 0.01} for m in (1, 2, 3)] for n in range(6)]
    async with scripted(folder, None, *drafts, width=5, tunes=tunes, seconds=WORST_S * 3) as session:
        watch_caps(session)
        await session.run()
        accounts = session.accounts
        assert accounts.used(Account.TUNES) <= tunes
        assert accounts.used(Account.ATTEMPTS) == 6
        assert not accounts.holds


async def test_reservation_waits(folder: Path) -> None:
    """A reservation that does not fit now waits for what is under way; it does not fail."""
    async with scripted(folder, None, *shuffled(4, 1), width=2, seconds=ATTEMPT_S * 1.5) as session:
        open_at_once = watch_caps(session)
        finished = await session.run()
        assert max(open_at_once) == 1
        assert finished.reason == "all is proposed"


@pytest.mark.parametrize("breaks", [{"judge": "crash"}, {"then": '{"value": 3, "judge": "crash"}'}, {}])
async def test_no_more_chambers_than_were_reserved(tmp_path: Path, breaks: dict[str, Any]) -> None:
    """However an attempt goes, with a judge that breaks at first, on the replay or never, all was set aside."""
    folder = write_task(tmp_path / "task", GUARD, HELDOUT)
    script, longest = Script(), []

    async def on_open(job: Job) -> None:
        longest.append(1000 * (job.limits.wall + job.limits.grace + 100))

    script.on_open = on_open
    async with scripted(folder, script, {"value": 3, **breaks}) as session:
        session.when(e.AttemptOpened, lambda _: longest.clear())
        await session.run()
        (held,) = (event.amounts["seconds"] for event in session.of(e.Reserved) if event.hold == "1.1#1")
        # Two trials with their judgings, and one judging of the baseline, or the guard and the held-out split.
        assert len(longest) == (3 if "judge" in breaks else 5 if breaks else 7)
        assert sum(longest) <= held
        assert session.nodes["1.1"].kept is (not breaks)


async def test_reservation_that_can_never_fit(folder: Path) -> None:
    """What cannot fit even with nothing under way ends the campaign, with the account and what helps."""
    session = await ran(folder, None, {"value": 1}, seconds=WORST_S + 0.001)
    assert session.reason.startswith("seconds: ")
    assert "raise the cap" in session.reason
    assert session.nodes["1"].ending is Ending.SCORED


def rising(*values: int) -> list[Point]:
    return [{"value": value} for value in values]


TARGET = '[[metrics]]\nname = "score"\ntarget = 4.0\n'
# One that fails is no improvement; one that ends free does not count.
NO_BETTER: list[Point] = [{"value": 5}, {"value": 1}, {"value": 9, "do": "failed"}, {"value": 2}, {"value": 9}]


@pytest.mark.parametrize(
    ("more", "points", "flags", "reason", "attempts"),
    [
        ("", shuffled(9, 2), {"attempts": 3}, "3 of 3 attempts are used", 3),
        (TARGET, rising(1, 2, 3, 4, 5, 6), {}, "the target is reached", 4),
        ("", NO_BETTER, {"patience": 3}, "3 attempts without improvement", 4),
        ("", [], {"proposer": "grid", "width": 2}, "all 3 points of the grid are tried", 3),
    ],
    ids=["attempts", "target", "patience", "grid"],
)
async def test_why_it_ends(
    tmp_path: Path, more: str, points: list[Point], flags: dict[str, Any], reason: str, attempts: int
) -> None:
    """The baseline is not counted."""
    high = 3 if "proposer" in flags else 12
    session = await ran(write_task(tmp_path / "task", more, high=high), None, *points, **flags)
    assert (session.reason, session.charged, len(session.nodes)) == (reason, attempts, attempts + 1)


async def test_wall_clock(folder: Path) -> None:
    """At the deadline what is under way is ended and refunded; nothing is lost for a resume."""
    async with scripted(folder, None, {"value": 1}, {"value": 2, "do": "wait"}, wall=3600) as session:

        def late(event: e.TrialIntended) -> None:
            if event.node == "1.2":
                session.clock.skip(3601)

        session.when(e.TrialIntended, late)
        finished = await session.run()
        assert "have passed" in finished.reason
        assert session.nodes["1.2"].ending is Ending.INTERRUPTED
        assert session.charged == 1


async def test_exhausted_when_asked(folder: Path) -> None:
    """That attempt is not charged, no more are opened, and others that are under way are still finished."""

    async def no_more(_: Brief) -> Sequence[Proposal]:
        raise Exhausted("that was all")

    session = await ran(folder, None, {"value": 5, "takes": 0.3}, *[no_more] * 50, width=2)
    assert (session.reason, session.charged, session.nodes["1.1"].ending) == ("that was all", 1, Ending.SCORED)
    assert [node.ending for node in session.nodes.values()].count(Ending.CANCELLED) == 1


async def test_control_grows(folder: Path) -> None:
    """One attempt for each of the search's, under the same limits; never champion and never replayed."""
    async with scripted(folder, None, *rising(2, 3, 4), control="random", attempts=3) as session:
        session.bench.proposers[Role.CONTROL] = Proposing(*[{"value": 10 + number} for number in range(3)])
        await session.run()
    roles = [node.role for node in session.nodes.values()]
    assert (roles.count(Role.SEARCH), roles.count(Role.CONTROL)) == (3, 3)
    assert (session.accounts.used(Account.CONTROL), session.accounts.used(Account.ATTEMPTS)) == (3, 3)
    assert session.nodes[session.champion].role is Role.SEARCH
    assert compare(session.state, session.bench.ranking).control is not None
    held = {event.hold: event.amounts for event in session.of(e.Reserved)}
    both = [next(it for it in session.nodes.values() if it.role is role) for role in (Role.SEARCH, Role.CONTROL)]
    prints = [session.state.trials[node.submitted or ""].fingerprint["limits"] for node in both]
    assert prints[0] == prints[1]
    # Trial and judging, for the search its replay, too, and one judging of the baseline where a judge breaks.
    assert [held[f"{node.id}#1"]["seconds"] / 1000 / CHAMBER_S for node in both] == [5, 3]


async def test_control_catches_up(folder: Path) -> None:
    """Whatever rule stops the search, the control has as many attempts as it: also after a resume with raised caps."""
    counts = []
    for how, flags in ((How.START, {"control": "random", "attempts": 3, "width": 3}), (How.RESUME, {"attempts": 7})):
        session = await ran(folder, None, *rising(9, 3, 4, 5, 6, 7, 8), how=how, **flags)
        counts.append((session.state.count(Role.SEARCH), session.state.count(Role.CONTROL)))
        assert "attempts are used" in session.reason
        assert compare(session.state, session.bench.ranking).attempts == counts[-1][0]
    assert counts == [(3, 3), (7, 7)]
