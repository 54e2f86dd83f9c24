"""Noisy scores: a candidate is kept when repeats prove it better than the champion, at a level fixed beforehand."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.certify import turns
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job
from tests.orchestrator.loop.noise import gaussian, noisy, scripted_scores
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import CPU, WALL_S, Point, Scripted, scripted, write_task

CHAMPION = 4
REPEATS = 12
WORST_S = 3 * (WALL_S + 1 + 100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", noisy(REPEATS, CHAMPION))


def repeats(session: Scripted, node: str) -> int:
    return sum(trial.purpose is Purpose.REPEAT for trial in session.state.trials_of(node))


def references(session: Scripted, node: str) -> int:
    """How often the champion was run for a node."""
    return sum(trial.purpose is Purpose.REFERENCE for trial in session.state.trials_of(node))


def in_turn(session: Scripted, node: str) -> bool:
    """Whether the runs that a node's last test counts were run in the order that the coin decided."""
    state = session.state
    test = state.nodes[node].certification
    assert test is not None
    runs = [it for it in state.trials_of(node) if it.verdict and it.verdict.cohort == test.cohort]
    told = [it.purpose is Purpose.REPEAT for it in runs if int(it.id.split("-")[1]) > test.since]
    due = [mine for block in range(test.blocks) for mine in turns(f"{state.run.seed}/{test.number}", block)]
    return bool(told) and told == due[: len(told)]


async def measured(folder: Path, *points: Point, script: Script | None = None, **flags: Any) -> Scripted:
    """A whole session whose scores are noisy."""
    async with scripted(folder, script, *points, **flags) as session:
        session.script.noise = gaussian(session.state, 0.5)
        await session.run()
    return session


async def test_proven(folder: Path) -> None:
    """Far better than the noise: kept after a few repeats, and the level was on record before the first of them."""
    session = await measured(folder, {"value": 9})
    node = session.nodes["1.1"]
    assert session.champion == node.id
    assert node.why.startswith("proven better than the champion: evidence ")
    assert repeats(session, "1") == 0
    assert repeats(session, "1.1") == 6
    assert references(session, "1.1") == CHAMPION + 6
    assert in_turn(session, "1.1")
    kinds = [event for event in session.events if getattr(event, "node", "") == "1.1"]
    (opened,) = session.of(e.CertificationOpened)
    first = next(it for it in kinds if isinstance(it, e.TrialIntended) and it.purpose is Purpose.REPEAT)
    assert kinds.index(opened) < kinds.index(first)
    assert opened.level == pytest.approx(0.05 / 4)
    assert session.charged == 1
    assert not session.accounts.holds


async def test_lucky_once(folder: Path) -> None:
    """A first score that was luck opens a test, and is no part of it: the repeats do not prove anything."""
    script = Script()
    async with scripted(folder, script, {"value": 1}) as session:
        noise = gaussian(session.state, 0.5)
        lucky = scripted_scores(session.state, {"1.1": (50.0, -2.0)})
        script.noise = lambda node: noise(node) + lucky(node)
        await session.run()
        node = session.nodes["1.1"]
        assert (node.ending, node.kept) == (Ending.SCORED, False)
        assert node.why.startswith("not proven better than the champion: evidence ")
        assert 0 < repeats(session, "1.1") <= REPEATS


async def test_below_the_median(folder: Path) -> None:
    """What is no better than the champion's median costs no test and no repeat."""
    session = await measured(folder, {"value": -9}, {"value": 9})
    (opened,) = session.of(e.CertificationOpened)
    assert (opened.node, opened.number, opened.against) == ("1.2", 1, 1)
    assert repeats(session, "1.1") == 0
    assert references(session, "1.1") == CHAMPION
    assert "at the median" in session.nodes["1.1"].why


async def test_levels(folder: Path) -> None:
    """Every test has a level of its own; a new champion is another reference, screened by its own repeats at first."""
    points: list[Point] = [{"value": 0.2}, {"value": 9}, {"value": 9.1}, {"value": 30}]
    script = Script()
    async with scripted(folder, script, *points) as session:
        lucky = scripted_scores(session.state, {"1.1": (5.0, -2.0), "1.3": (5.0, -2.0)})
        noise = gaussian(session.state, 0.5)
        script.noise = lambda node: noise(node) + lucky(node)
        finished = await session.run()
        opened = session.of(e.CertificationOpened)
        assert [(it.node, it.number, it.reference, it.against) for it in opened] == [
            ("1.1", 1, 1, 1),
            ("1.2", 2, 1, 2),
            ("1.3", 3, 2, 1),
            ("1.4", 4, 2, 2),
        ]
        assert [it.level for it in opened] == pytest.approx([0.05 / 4, 0.05 / 12, 0.05 / 12, 0.05 / 36])
        assert finished.champion == session.nodes["1.4"]
        assert all(in_turn(session, it.node) for it in opened)
        assert [it.blocks for it in opened] == [REPEATS / 2] * 4


@pytest.mark.parametrize("value", [19, 5])
async def test_champion_changes_in_the_middle(folder: Path, value: int) -> None:
    """Another champion to beat is another test: screened, with a level of its own, and measured from the first on."""
    script = Script()
    waiting: Point = {"value": value, "then": '{"judge": "wait"}'}
    async with scripted(folder, script, waiting, {"value": 9}, width=2) as session:
        state = session.state
        script.noise = gaussian(state, 0.5)
        session.when(e.AttemptEnded, lambda event: script.gate.set() if event.node == "1.2" else None)
        await session.run()
        node, tests = state.nodes["1.1"], [it for it in session.of(e.CertificationOpened) if it.node == "1.1"]
        assert state.nodes["1.2"].kept
        assert tests[0].champion == "1"
        if value < 9:
            assert (node.kept, len(tests)) == (False, 1)
            assert node.why == "no better than what 1.2 has at the median"
            return
        assert node.kept
        assert [(it.champion, it.reference, it.against) for it in tests[1:]] == [("1.2", 2, 1)]
        assert in_turn(session, "1.1")


@pytest.mark.parametrize(
    ("again", "why"), [('{"do": "failed"}', "failed"), ('{"judge": "no solution"}', "no solution")]
)
async def test_repeat_that_ends_badly(folder: Path, again: str, why: str) -> None:
    """A candidate that does not run every time is not kept."""
    session = await measured(folder, {"value": 9, "then": again})
    node = session.nodes["1.1"]
    assert (node.ending, node.kept, repeats(session, "1.1")) == (Ending.SCORED, False, 1)
    assert references(session, "1.1") <= CHAMPION + 2
    assert not session.accounts.holds
    assert node.why.startswith("it did not run again: ")
    assert why in node.why


async def test_champion_that_fails_now_and_then(tmp_path: Path) -> None:
    """Its runs that come to nothing are missing data, and so are a candidate's on other hardware: they come again."""
    folder = write_task(tmp_path / "task", noisy(REPEATS, CHAMPION), CPU)
    ran = 0

    async def on_open(job: Job) -> None:
        nonlocal ran
        ran += job.command[0] == "trial"
        script.cpu = "another" if ran in (3, 6, 7, 11, 13) else "pretended"

    script = Script(on_open=on_open)
    session = await measured(folder, {"value": 9}, script=script)
    assert repeats(session, "1.1") + references(session, "1.1") == CHAMPION + 12 + 5
    assert in_turn(session, "1.1")
    assert session.champion == "1.1"


@pytest.mark.parametrize("after", [0, 6])
async def test_champion_that_can_not_be_measured(tmp_path: Path, after: int) -> None:
    """After a few tries the attempt ends as scored and not kept; the next attempt tries again."""
    folder = write_task(tmp_path / "task", noisy(REPEATS, CHAMPION), CPU)

    async def on_open(job: Job) -> None:
        state = session.state
        mine = list(state.trials_of("1.1")) if "1.1" in state.nodes else []
        fails = bool(mine and mine[-1].subject and not mine[-1].ended and len(mine) > after)
        script.cpu = "another" if fails and job.command[0] == "trial" else "same"

    script = Script(on_open=on_open)
    async with scripted(folder, script, {"value": 9}, {"value": 10}) as session:
        script.noise = gaussian(session.state, 0.5)
        await session.run()
        nodes = session.nodes
        assert (nodes["1.1"].ending, nodes["1.1"].kept) == (Ending.SCORED, False)
        assert "the champion 1 could not be measured again" in nodes["1.1"].why
        assert nodes["1.2"].kept
        assert session.charged == 2


async def test_caps_leave_no_room(tmp_path: Path) -> None:
    """A block is paid for before it begins; where a cap leaves no room, the attempt ends as scored and says so."""
    folder = write_task(tmp_path / "task", noisy(REPEATS, CHAMPION))
    session = await measured(folder, {"value": 9}, seconds=WORST_S * 4.5)
    node, accounts = session.nodes["1.1"], session.accounts
    assert (node.ending, node.kept) == (Ending.SCORED, False)
    assert "the caps leave no room for a block of 4 more runs of 1.1 and 1 " in node.why
    assert not accounts.holds
    assert accounts.used(Account.SECONDS) == sum(it.spent.milliseconds for it in session.nodes.values())


async def test_five_at_a_time_under_a_cap(folder: Path) -> None:
    """What is used and set aside never passes a cap; the champion is measured once for all that want to screen."""
    script = Script()
    points: list[Point] = [{"value": value / 10, "takes": 0.001} for value in range(1, 9)]
    async with scripted(folder, script, *points, width=5, seconds=WORST_S * 12) as session:
        script.noise = gaussian(session.state, 0.5)

        def look(*_: object) -> None:
            left = session.accounts.left(Account.SECONDS)
            assert left is not None
            assert left >= 0

        session.bench.book.listeners.append(look)
        await session.run()
        before = {it.node: it for it in session.of(e.CertificationOpened)}
        screened = [
            it
            for node in session.nodes.values()
            for it in session.state.trials_of(node.id)
            if it.subject and (node.certification is None or int(it.id.split("-")[1]) <= node.certification.since)
        ]
        assert len(screened) == CHAMPION
        assert before
        assert all(node.ending is Ending.SCORED for node in session.nodes.values())
        assert not session.accounts.holds


@pytest.mark.parametrize(("kind", "at"), [(e.TrialIntended, 4), (e.TrialIntended, 13), (e.JudgingIntended, 11)])
async def test_stopped_and_resumed(folder: Path, kind: type[e.Event], at: int) -> None:
    """A stop while the champion is screened by, or anywhere in a block: the resume goes on with what was measured, in
    the order that was due.
    """
    script = Script()
    async with scripted(folder, script, {"value": 9}) as session:
        script.noise = gaussian(session.state, 0.5)
        session.stop_at(kind, at)
        await session.run()
        assert not session.accounts.holds
    session = await measured(folder, {"value": 9}, how=How.RESUME)
    assert session.champion == "1.1"
    assert session.charged == 1
    state = session.state
    lost = sum(trial.ending is Ending.INTERRUPTED for trial in state.trials_of("1.1"))
    assert lost <= 1
    assert repeats(session, "1.1") + references(session, "1.1") - lost == CHAMPION + 12
    assert in_turn(session, "1.1")
    assert not session.accounts.holds


async def test_provider_fails_at_a_repeat(folder: Path) -> None:
    """No chamber for a repeat, the champion's or the candidate's: free, queued again, and it goes on."""
    for after in (4, 16):
        session = await measured(folder, {"value": 9}, how=How.START, script=failing(1, after=after))
        assert session.champion == "1.1"
        assert len(session.of(e.AttemptRequeued)) == 1
        assert session.charged == 1
        assert in_turn(session, "1.1")
        folder = write_task(folder.parent / f"task-{after}", noisy(REPEATS, CHAMPION))


async def test_cancelled_at_a_repeat_of_the_champion(folder: Path) -> None:
    """What was set aside for the champion's repeat is free at once, and the next attempt goes on measuring."""
    async with scripted(folder, None, {"value": 9}, {"value": 10}) as session:
        session.script.noise = gaussian(session.state, 0.5)
        cancelled: list[str] = []

        def cancel(event: e.TrialIntended) -> None:
            if event.subject == "1" and not cancelled:
                cancelled.append("1.1")
                ask(folder, "cancel", {"node": "1.1"})

        session.when(e.TrialIntended, cancel)
        finished = await session.run()
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        assert finished.champion == session.nodes["1.2"]
        assert not session.accounts.holds


@pytest.mark.parametrize(("seed", "width"), [(1, 1), (2, 3)])
async def test_null_campaign(folder: Path, seed: int, width: int) -> None:
    """A whole campaign of no-op candidates, one or three at a time: some get past the screening, none is kept.

    The error is 5 % a campaign. Noise is drawn from seed, node and number alone, so that of one at a time is the same
    anywhere; of three at a time, who gets past the screening depends on who ends first.
    """
    script = Script()
    points: list[Point] = [{"value": 0, "a": number} for number in range(1, 21)]
    async with scripted(folder, script, *points, width=width, attempts=20) as session:
        script.noise = gaussian(session.state, 1.0, seed)
        finished = await session.run()
        opened = session.of(e.CertificationOpened)
        assert len(opened) > (3 if width == 1 else 0), len(opened)
        assert [it.against for it in opened] == list(range(1, len(opened) + 1))
        assert finished.champion == session.nodes["1"]
        assert session.charged == 20


async def test_one_lucky_run_reaches_no_target(tmp_path: Path) -> None:
    """A baseline whose single run is past the target does not end the campaign; repeats that are past it do."""
    folder = write_task(tmp_path / "task", '[[metrics]]\nname = "score"\ntarget = 4.0\n', noisy(REPEATS, CHAMPION))
    script = Script()
    points: list[Point] = [{"value": 1}, {"value": 9}, {"value": 2}]
    async with scripted(folder, script, *points) as session:
        script.noise = scripted_scores(session.state, {"1": (100.0,)})
        finished = await session.run()
        assert finished.reason == "the target is reached"
        assert finished.champion is not None
        assert finished.champion.id == "1.2"
