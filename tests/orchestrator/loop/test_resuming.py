"""Stopping and going on: nothing is lost, nothing is paid twice, and nobody else can work on it meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Phase
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode
from orchestrator.git import GitError
from orchestrator.ledger import Fenced, Full, Held, Ledger, LedgerError
from orchestrator.proposers import Brief
from orchestrator.task import TaskError
from orchestrator.wiring import How, read_campaign
from orchestrator.wiring.opening import CannotOpen
from sandbox import Job, Refused
from tests.orchestrator.loop.scripted import GUARD, TUNE, Point, Script, scripted, write_task

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5, 9)]
DRAFTS: list[list[Point]] = [[{"value": n, "tuned": -n}, {"value": n + 1, "tuned": 1}] for n in range(1, 9, 2)]


def verdicts(state: State) -> dict[str, tuple[object, object, bool]]:
    return {name: (node.params, node.verdict, node.kept) for name, node in state.nodes.items()}


def stop_at(session: Any, kind: type[e.Event], number: int) -> None:
    """End the session at the so-manieth event of a kind."""
    seen = 0

    def act(_: e.Event) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            session.campaign.stop("Ctrl-C")

    session.when(kind, act)


@pytest.mark.parametrize(
    "kind",
    [
        e.AttemptOpened,
        e.Proposed,
        e.Promoted,
        e.TrialIntended,
        e.TrialEnded,
        e.JudgingIntended,
        e.JudgingEnded,
        e.GuardIntended,
        e.GuardEnded,
        e.AttemptEnded,
    ],
)
@pytest.mark.parametrize("width", [1, 3])
async def test_stop_and_resume(tmp_path: Path, kind: type[e.Event], width: int) -> None:
    """Stopped in whichever phase, a resume finishes with the verdicts of a campaign that nobody disturbed."""
    more = (TUNE, GUARD)
    flags: dict[str, Any] = {"width": width, "attempts": 4}
    async with scripted(write_task(tmp_path / "calm", *more), None, *DRAFTS, **flags) as session:
        await session.run()
        expected = verdicts(session.bench.state)
    folder = write_task(tmp_path / "task", *more)
    async with scripted(folder, None, *DRAFTS, **flags) as session:
        stop_at(session, kind, 2)
        finished = await session.run()
        assert finished.reason == "Ctrl-C"
        accounts, state = session.bench.book.accounts, session.bench.state
        assert not accounts.holds
        assert all(node.phase is not Phase.OPEN for node in state.nodes.values())
        charged = [node for name, node in state.nodes.items() if name != "1" and node.phase is Phase.ENDED]
        assert accounts.used(Account.ATTEMPTS) == len(charged)
    async with scripted(folder, None, *DRAFTS, how=How.RESUME) as session:
        await session.run()
        assert verdicts(session.bench.state) == expected if width == 1 else True
        assert {name: it[:2] for name, it in verdicts(session.bench.state).items()} == {
            name: it[:2] for name, it in expected.items()
        }
        assert session.bench.book.accounts.used(Account.ATTEMPTS) == 4
        assert session.bench.book.accounts.used(Account.TUNES) == 8


async def test_interrupted_attempt(folder: Path) -> None:
    """What was under way at the stop is interrupted, refunded, and its time until then is booked as lost."""
    async with scripted(folder, None, {"value": 1, "do": "wait"}) as session:
        stop_at(session, e.TrialIntended, 2)
        await session.run()
        node, trial = session.bench.state.nodes["1.1"], session.bench.state.trials["1.1-1"]
        assert (node.phase, node.ending) == (Phase.QUEUED, Ending.INTERRUPTED)
        assert trial.ending is Ending.INTERRUPTED
        accounts = session.bench.book.accounts
        assert (accounts.used(Account.ATTEMPTS), accounts.losses.endings) == (0, 1)
        assert accounts.losses.seconds == node.spent.milliseconds > 0
        assert session.bench.state.campaign.refunds == {}


async def test_late_resume(folder: Path) -> None:
    """However late a resume comes, a trial that was under way at a crash is booked at its worst case at most."""
    async with scripted(folder, None, {"value": 1}) as session:
        await session.run()
    with Ledger.open(folder / ".blastdoor" / "ledger.sqlite3") as ledger:
        assert ledger.holder()[0] == 1
    async with scripted(folder, None, {"value": 1}, {"value": 2, "do": "wait"}, how=How.RESUME) as session:
        session.when(e.TrialIntended, lambda _: session.clock.skip(10**6))
        stop_at(session, e.TrialIntended, 1)
        await session.run()
        spent = session.bench.state.trials["1.2-1"].spent.milliseconds
        assert spent == session.bench.door.worst(session.bench.jobs.trial(Mode.SUBMIT)).milliseconds


async def test_two_at_once(folder: Path) -> None:
    """A second orchestrator is turned away while one works, and told who it is."""
    async with scripted(folder, None, {"value": 1}) as session:
        with pytest.raises(Held, match="pid"):
            async with scripted(folder, None, {"value": 1}, how=How.RESUME):
                pass
        with read_campaign(folder) as reading:
            assert reading.holder is not None
        await session.run()
    with read_campaign(folder) as reading:
        assert reading.holder is None


async def test_taken_over(folder: Path) -> None:
    """One that was replaced behind its back writes nothing more, and says why it ends."""
    async with scripted(folder, None, *POINTS) as session:

        def seize(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                with Ledger.open(session.bench.book.ledger.path) as other:
                    other.seize("another")

        session.when(e.AttemptEnded, seize)
        with pytest.raises(Fenced):
            await session.run()
    with Ledger.open(folder / ".blastdoor" / "ledger.sqlite3") as ledger:
        assert {record.epoch for record in ledger.read()} == {1}


@pytest.mark.parametrize("after", [3, 12, 20, 28])
async def test_full_disk(folder: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that can not be written ends the session with that reason; a resume goes on where it was."""
    async with scripted(folder, None, *POINTS, attempts=5, width=2) as session:
        append, count = session.bench.book.ledger.append, 0

        def full(*args: Any) -> Any:
            nonlocal count
            count += 1
            if count > after:
                raise Full(folder)
            return append(*args)

        monkeypatch.setattr(session.bench.book.ledger, "append", full)
        with pytest.raises(Full):
            await session.run()
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        finished = await session.run()
        assert finished.champion is not None
        assert finished.champion.params == {"value": 9}
        assert session.bench.book.accounts.used(Account.ATTEMPTS) == 5


@pytest.mark.parametrize("phase", ["propose", "trial", "judge", "guard"])
async def test_our_own_failure(tmp_path: Path, phase: str) -> None:
    """A fault of ours ends the session with its own error; nothing stays reserved, and a resume goes on."""
    folder = write_task(tmp_path / "task", GUARD)
    script = Script()

    async def broken(_: Brief) -> Any:
        raise RuntimeError("a fault of the proposer")

    async def on_open(job: Job) -> None:
        if job.command[0] == phase and len(script.commands) >= 2:
            raise Refused("a fault of the job")

    script.on_open = on_open
    first: Any = broken if phase == "propose" else {"value": 3}
    async with scripted(folder, script, first, {"value": 1}, width=2) as session:
        with pytest.raises(RuntimeError if phase == "propose" else Refused, match="a fault of"):
            await session.run()
        assert not session.bench.book.accounts.holds
    async with scripted(folder, None, {"value": 3}, {"value": 1}, how=How.RESUME) as session:
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.1"]
        assert session.bench.book.accounts.used(Account.ATTEMPTS) == 2


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda text: text.replace('command = ["judge"]', 'command = ["judge", "-v"]'), "judge.command"),
        (lambda text: text.replace("high = 12", "high = 13"), "parameters.space.value.high"),
        (lambda text: text.replace('wall = "5s"', 'wall = "6s"', 1), "wall"),
    ],
)
async def test_changed_task(folder: Path, change: Callable[[str], str], key: str) -> None:
    """A task that changed is not resumed: the key that differs is named, and what helps."""
    async with scripted(folder, None, {"value": 1}) as session:
        await session.run()
    path = folder / "blastdoor.toml"
    path.write_text(change(path.read_text()))
    with pytest.raises(CannotOpen, match=rf"{key}.*--new-run"):
        async with scripted(folder, None, {"value": 1}, how=How.RESUME):
            pass


@pytest.mark.parametrize(
    ("name", "part"), [("workspace/notes.txt", "workspace"), ("judge/judge.txt", "judge"), ("judge/gold/a", "gold")]
)
async def test_changed_files(tmp_path: Path, name: str, part: str) -> None:
    """Files that changed behind the task's back are found by their digest."""
    folder = write_task(tmp_path / "task")
    (folder / "judge" / "gold").mkdir()
    (folder / "judge" / "gold" / "a").write_text("gold")
    async with scripted(folder, None, {"value": 1}) as session:
        await session.run()
    (folder / name).write_text("something else")
    with pytest.raises(CannotOpen, match=f"the files of {part}"):
        async with scripted(folder, None, {"value": 1}, how=How.RESUME):
            pass


async def test_changed_budget(folder: Path) -> None:
    """How much and how fast may change while a run goes on."""
    async with scripted(folder, None, *POINTS, attempts=2) as session:
        await session.run()
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text() + "\n[budget]\npatience = 30\n\n[stall]\nafter = 7\n")
    async with scripted(folder, None, *POINTS, how=How.RESUME, attempts=4) as session:
        await session.run()
        assert session.bench.book.accounts.used(Account.ATTEMPTS) == 4


async def test_cap_below_what_is_used(folder: Path) -> None:
    """A resume with less than was used already opens nothing, says so, and breaks nothing."""
    async with scripted(folder, None, *POINTS, attempts=3) as session:
        await session.run()
    async with scripted(folder, None, *POINTS, how=How.RESUME, attempts=2) as session:
        finished = await session.run()
        assert finished.reason == "3 of 2 attempts are used"
    async with scripted(folder, None, *POINTS, how=How.RESUME, attempts=4) as session:
        finished = await session.run()
        assert finished.reason == "4 of 4 attempts are used"


async def test_cap_that_a_resume_raised(folder: Path) -> None:
    """After a resume that raised a cap, the next one without a flag does not fall over the old value."""
    async with scripted(folder, None, *POINTS, attempts=2) as session:
        await session.run()
    async with scripted(folder, None, *POINTS, how=How.RESUME, attempts=4) as session:
        await session.run()
    async with scripted(folder, None, *POINTS, how=How.RESUME) as session:
        finished = await session.run()
        assert "attempts are used" in finished.reason
        assert session.bench.book.accounts.used(Account.ATTEMPTS) == 4


async def test_new_run(folder: Path) -> None:
    """A new run starts from the workspace with attempts of its own; what the old one left is cancelled."""
    async with scripted(folder, None, {"value": 3}, {"value": 1, "do": "wait"}) as session:
        stop_at(session, e.TrialIntended, 3)
        await session.run()
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace("high = 12", "high = 20"))
    async with scripted(folder, None, {"value": 15}, attempts=1, how=How.NEW_RUN) as session:
        finished = await session.run()
        state = session.bench.state
        assert [name for name in state.nodes if run_of(name) == 2] == ["2", "2.1"]
        assert state.nodes["1.2"].ending is Ending.CANCELLED
        assert finished.champion == state.nodes["2.1"]
        assert finished.reason == "1 of 1 attempt is used" or "attempt" in finished.reason
        assert session.bench.book.accounts.used(Account.ATTEMPTS) == 2
        champion = state.champion(state.runs["1"])
        assert champion is not None
        assert champion.id == "1.1"


async def test_new_run_from_a_node(folder: Path) -> None:
    """A new run can begin with an earlier node's files; a resume of it does, too."""
    async with scripted(folder, None, {"value": 3}) as session:
        await session.run()
    async with scripted(folder, None, {"value": 5, "do": "wait"}, how=How.NEW_RUN, start="1.1") as session:
        stop_at(session, e.TrialIntended, 2)
        await session.run()
        verdict = session.bench.state.nodes["2"].verdict
        assert verdict is not None
        assert verdict.metrics == {"score": 3.0}
    script = Script()
    script.gate.set()
    async with scripted(folder, script, {"value": 5}, how=How.RESUME) as session:
        await session.run()
        assert session.bench.state.nodes["2.1"].kept


async def test_new_run_after_a_crash(folder: Path) -> None:
    """A new run right after a session that never ended closes what that one had open."""
    await die_at_trial(folder, "1.1")
    async with scripted(folder, None, {"value": 4}, how=How.NEW_RUN) as session:
        await session.run()
        assert session.bench.state.nodes["1.1"].ending is Ending.CANCELLED
        assert not session.bench.book.accounts.holds


async def test_new_run_that_did_not_begin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a new run is on record, the old one can be resumed with all that it had."""
    await die_at_trial(folder, "1.1")
    append = Ledger.append

    def full(ledger: Ledger, entries: Any, *args: Any) -> Any:
        if any(entry.kind == "run started" for entry in entries):
            raise Full(folder)
        return append(ledger, entries, *args)

    monkeypatch.setattr(Ledger, "append", full)
    with pytest.raises(Full):
        async with scripted(folder, None, {"value": 4}, how=How.NEW_RUN):
            pass
    monkeypatch.undo()
    script = Script()
    script.gate.set()
    async with scripted(folder, script, {"value": 3}, how=How.RESUME) as session:
        finished = await session.run()
        assert finished.champion == session.bench.state.nodes["1.1"]


async def test_lower_cap_for_a_new_run(folder: Path) -> None:
    """Money is the campaign's: a new run with less than was spent opens nothing, and says why."""
    async with scripted(folder, None, {"value": 3, "takes": 0.05}) as session:
        await session.run()
    async with scripted(folder, None, {"value": 4}, how=How.NEW_RUN, seconds=0.01) as session:
        finished = await session.run()
        assert "seconds" in finished.reason


async def die_at_trial(folder: Path, node: str) -> None:
    """A session that is cut off from its ledger while a trial runs, and so leaves it open there."""
    async with scripted(folder, None, {"value": 3, "do": "wait"}) as session:

        def die(event: e.TrialIntended) -> None:
            if event.node == node:
                with Ledger.open(session.bench.book.ledger.path) as other:
                    other.seize("another")
                session.campaign.stop("over")

        session.when(e.TrialIntended, die)
        with pytest.raises(Fenced):
            await session.run()


@pytest.mark.parametrize(
    ("how", "start", "error"),
    [
        (How.START, None, CannotOpen),
        (How.NEW_RUN, "1.9", CannotOpen),
        (How.NEW_RUN, "1.2", GitError),
    ],
)
async def test_can_not_be_opened(folder: Path, how: How, start: str | None, error: type[Exception]) -> None:
    """What can not be opened as asked is refused before anything is written."""
    async with scripted(folder, None, {"value": 3}, {"value": 0}) as session:
        await session.run()
        head = session.bench.book.ledger.head()
    with pytest.raises(error):
        async with scripted(folder, None, {"value": 4}, how=how, start=start):
            pass
    with read_campaign(folder) as reading:
        assert reading.head == head


@pytest.mark.parametrize("how", [How.RESUME, How.NEW_RUN])
async def test_nothing_to_resume(folder: Path, how: How) -> None:
    """Where there is no campaign, only `run` starts one."""
    with pytest.raises(CannotOpen, match="no campaign"):
        async with scripted(folder, None, {"value": 1}, how=how):
            pass
    async with scripted(folder, None, {"value": 1}) as session:
        await session.run()


async def test_task_that_is_wrong(folder: Path) -> None:
    """A task file that can not be read stops the command before anything is made."""
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text() + "\n[nonsense]\n")
    with pytest.raises(TaskError):
        async with scripted(folder, None, {"value": 1}):
            pass
    assert not (folder / ".blastdoor").exists()


async def test_damaged_ledger(folder: Path) -> None:
    """A ledger that is no ledger is refused with a line of its own."""
    (folder / ".blastdoor").mkdir()
    path = folder / ".blastdoor" / "ledger.sqlite3"
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    with pytest.raises(LedgerError):
        async with scripted(folder, None, {"value": 1}):
            pass
    path.unlink()


async def test_live_logs_of_the_dead(folder: Path) -> None:
    """What a killed session left of its live logs is gone when the next one opens."""
    async with scripted(folder, None, {"value": 1}) as session:
        await session.run()
    stale = folder / ".blastdoor" / "live" / "1.1-1.log"
    stale.parent.mkdir(exist_ok=True)
    stale.write_text("half a line")
    async with scripted(folder, None, {"value": 1}, how=How.RESUME) as session:
        assert not stale.exists()
        await session.run()
