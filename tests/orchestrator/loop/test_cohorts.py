"""A fleet that changes: scores are compared within a cohort only, and a new cohort gets its own baseline."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from orchestrator.domain.verdict import NotComparable, better
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job, Unavailable
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import CPU, Point, Scripted, ran, scripted, write_task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", CPU)


def change_after(session: Scripted, node: str, cpu: str = "another") -> None:
    """From the end of a node on, chambers run on other hardware."""

    def change(event: e.AttemptEnded) -> None:
        if event.node == node:
            session.script.cpu = cpu

    session.when(e.AttemptEnded, change)


async def moved(folder: Path, *values: int, script: Script | None = None) -> Scripted:
    """A campaign whose hardware changes after its first attempt, over."""
    async with scripted(folder, script, *({"value": value} for value in values)) as session:
        change_after(session, "1.1")
        await session.run()
        assert not session.accounts.holds
    return session


def reruns(session: Scripted) -> list[str]:
    return [trial.node for trial in session.state.trials.values() if trial.purpose is Purpose.RERUN]


async def test_new_cohort(folder: Path) -> None:
    """Baseline and champion are measured again there, and verdicts of two cohorts are never compared."""
    session = await moved(folder, 5, 4, 6)
    (opened,) = session.of(e.CohortOpened)
    assert (opened.why, session.state.run.cohort) == ("cpu", opened.cohort)
    assert reruns(session) == ["1", "1.1"]
    assert [session.nodes[f"1.{number}"].kept for number in (1, 2, 3)] == [True, False, True]
    assert (len(session.state.run.champions), session.champion) == (2, "1.3")
    old, new = (session.nodes[name].verdict for name in ("1.1", "1.2"))
    assert old
    assert new
    with pytest.raises(NotComparable, match="cohort"):
        better(new, old, session.bench.ranking)


async def test_back_again(folder: Path) -> None:
    """A fleet that changes back finds its old champion as it was left."""
    async with scripted(folder, None, {"value": 5}, {"value": 6}, {"value": 4}) as session:
        change_after(session, "1.1")
        change_after(session, "1.2", "pretended")
        await session.run()
        assert len(session.of(e.CohortOpened)) == 1
        assert session.nodes["1.3"].kept is False


async def test_no_baseline_in_the_new_cohort(folder: Path) -> None:
    """Where the baseline cannot be measured, nothing is kept; the champion of the old cohort is still there."""
    flip = iter(range(1000))

    async def on_open(job: Job) -> None:
        if script.cpu != "pretended" and job.command[0] == "trial":
            script.cpu = f"number {next(flip)}"

    script = Script(on_open=on_open)
    session = await moved(folder, 5, 6, script=script)
    node = session.nodes["1.2"]
    assert (node.ending, node.kept, session.champion) == (Ending.SCORED, False, "1.1")
    assert "could not be measured" in node.why


async def test_provider_fails_while_a_cohort_opens(folder: Path) -> None:
    """A cohort that could not be opened at once is opened later, with the old champion measured in it all the same."""
    failed = 0

    async def on_open(job: Job) -> None:
        nonlocal failed
        if script.cpu != "pretended" and job.command[0] == "trial" and script.commands.count("trial") == 3:
            failed += 1
            if failed == 1:
                raise Unavailable("no chamber")

    script = Script(on_open=on_open)
    session = await moved(folder, 5, 4, script=script)
    assert failed > 1
    assert (session.champion, session.nodes["1.2"].kept) == ("1.1", False)


async def test_stopped_while_a_cohort_opens(folder: Path) -> None:
    """After a stop in the middle of it, a resume opens the cohort as if nothing had happened."""
    async with scripted(folder, None, {"value": 5}, {"value": 4}) as session:
        change_after(session, "1.1")

        def end(event: e.TrialIntended) -> None:
            if event.purpose is Purpose.RERUN:
                session.campaign.stop("enough")

        session.when(e.TrialIntended, end)
        await session.run()
        assert not session.accounts.holds
    session = await ran(folder, Script(cpu="another"), {"value": 5}, {"value": 4}, how=How.RESUME)
    assert (session.champion, session.nodes["1.2"].kept) == ("1.1", False)
    assert set(session.state.run.champions.values()) == {"1.1"}


async def test_several_arrive_at_once(folder: Path) -> None:
    """Attempts that reach a new cohort together open it once."""
    script, opened = Script(), list[str]()
    points: list[Point] = [{"value": 5}, *({"value": value, "takes": 0.05} for value in range(6, 11))]
    async with scripted(folder, script, *points, width=5) as session:

        def change(event: e.AttemptOpened) -> None:
            opened.append(event.node)
            script.cpu = "another" if len(opened) > 2 else "pretended"

        session.when(e.AttemptOpened, change)
        await session.run()
    assert len(session.of(e.CohortOpened)) == 1
    assert sorted(reruns(session)) == sorted(set(reruns(session)))


async def test_cancelled_while_a_cohort_opens(folder: Path) -> None:
    """Cancelling the attempt that opens a cohort frees at once what was set aside for it."""
    async with scripted(folder, None, {"value": 5}, {"value": 4}, {"value": 6}) as session:
        change_after(session, "1.1")
        cancelled: list[str] = []
        holds: list[list[str]] = []
        over = asyncio.Event()

        async def until_over(_: Job) -> None:
            await over.wait()

        def cancel(event: e.TrialIntended) -> None:
            if event.purpose is Purpose.RERUN and not cancelled:
                cancelled.append("1.2")
                session.script.on_open = until_over
                ask(folder, "cancel", {"node": "1.2"})

        session.when(e.TrialIntended, cancel)
        session.when(e.AttemptEnded, lambda ended: over.set() if ended.node == "1.2" else None)
        session.when(e.AttemptOpened, lambda _: holds.append(list(session.accounts.holds)))
        await session.run()
        assert session.nodes["1.2"].ending is Ending.CANCELLED
        assert holds[-1] == ["1.3#1"]
        assert session.champion == "1.3"
