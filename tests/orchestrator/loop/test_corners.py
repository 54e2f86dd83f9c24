"""Corners: what happens when two rare things meet."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.folding import fold
from orchestrator.domain.records import Guard, Role
from orchestrator.domain.state import State
from orchestrator.git import Candidate, Candidates
from orchestrator.ledger import Fenced, Ledger
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, TUNE, WALL_S, Point, ran, scripted, write_task

AT = "2026-01-01T00:00:00.000000+00:00"
CHAMBER_S = WALL_S + 1 + 100
ATTEMPT_S = 5 * CHAMBER_S  # with its replay


@pytest.mark.usefixtures("on_disk")
async def test_promoted_before_the_tunes_were_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that was stored, but not on record, at a crash is the node's candidate, whatever changed since."""
    folder = write_task(tmp_path / "task", TUNE)
    drafts: list[Point] = [{"value": 1, "tuned": 1}, {"value": 2, "tuned": 9}]
    submit = Candidates.submit
    async with scripted(folder, None, drafts, tunes=0) as session:

        def cut_off(self: Candidates, candidate: Candidate) -> Future[str]:
            done = submit(self, candidate)
            if candidate.node == "1.1":
                done.result()
                with Ledger.open(session.bench.book.ledger.where) as other:
                    other.seize("another")
            return done

        monkeypatch.setattr(Candidates, "submit", cut_off)
        with pytest.raises(Fenced):
            await session.run()
    monkeypatch.undo()
    session = await ran(folder, None, drafts, how=How.RESUME, tunes=10)
    node = session.nodes["1.1"]
    assert node.ending is Ending.SCORED
    assert node.promoted == 1


async def test_control_that_the_task_no_longer_wants(tmp_path: Path) -> None:
    """A run keeps its control when the task's own wish is taken out: the comparison was begun with it."""
    search = '[search]\ncontrol = "random"\n'
    folder = write_task(tmp_path / "task", search)
    await ran(folder, None, {"value": 1}, {"value": 2}, attempts=1)
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace(search, ""))
    session = await ran(folder, None, {"value": 1}, {"value": 2}, how=How.RESUME, attempts=2)
    assert (session.state.count(Role.SEARCH), session.state.count(Role.CONTROL)) == (2, 2)


async def test_guard_that_came_later_is_paid_for(folder: Path) -> None:
    """A guard that is hung while an attempt runs does not break the cap that the attempt was opened under."""
    guard = Guard(name="late", command=("guard",), limits={"wall": 5})
    async with scripted(folder, None, {"value": 3, "takes": 0.1}, seconds=ATTEMPT_S + 5) as session:

        def hang(event: e.TrialIntended) -> None:
            if event.node == "1.1":
                ask(folder, "guard", {"node": "1", "guard": guard.model_dump(mode="json")})

        session.when(e.TrialIntended, hang)
        await session.run()
        accounts = session.accounts
        assert accounts.used(Account.SECONDS) <= (ATTEMPT_S + 5) * 1000
        assert session.nodes["1.1"].guarded == {"late": True}


async def test_width_of_a_resume(folder: Path) -> None:
    """A resume that is told another width works at that width."""
    points: list[Point] = [{"value": value, "takes": 0.05} for value in range(1, 9)]
    await ran(folder, None, *points, attempts=2, width=1)
    async with scripted(folder, None, *points, how=How.RESUME, attempts=8, width=3) as session:
        holds: list[int] = []
        session.when(e.AttemptOpened, lambda _: holds.append(len(session.accounts.holds)))
        await session.run()
        assert session.shape.width == max(holds) == 3


@pytest.mark.parametrize("who", ["baseline", "candidate"])
async def test_provider_goes_down_while_it_judges(folder: Path, who: str) -> None:
    """Such a judging is free, as a control job proves: also the baseline's, and where it is back at once."""
    script = Script()

    async def on_open(job: Any) -> None:
        # Down for the control job alone.
        script.world.answers = job.command[0] != "true"

    point: dict[str, Any] = {"value": 3}
    if who == "candidate":
        point["judge"], script.on_open = "cut", on_open
    else:
        (folder / "workspace" / "params.json").write_text('{"value": 0, "judge": "cut"}')
    async with scripted(folder, script, point) as session:

        def back(event: e.AttemptRequeued) -> None:
            script.world.answers = True
            session.campaign.stop("enough")

        session.when(e.AttemptRequeued, back)
        assert ((await session.run()).reason, session.charged) == ("enough", 0)


def test_finished_branch_stays_finished() -> None:
    """Something new about a node of a finished branch does not open the branch again."""
    state = State()

    def go(*events: e.Event) -> None:
        for event in events:
            fold(state, event, AT)

    nothing: dict[str, Any] = {"task": "", "digests": {}, "why": "", "options": "{}", "lower_tier": False, "before": {}}
    started = e.RunStarted(run=1, seed=0, proposer="random", control=None, width=1, depth=2, **nothing)
    go(e.CampaignOpened(campaign="c", name="n", version="1"), e.SessionStarted(epoch=1, holder="h"), started)
    for name, parent, step in (("1", None, 0), ("1.1", "1", 1), ("1.1.1", "1.1", 2)):
        role = Role.SEARCH if step else Role.BASELINE
        go(e.AttemptOpened(node=name, parent=parent, role=role, number=step, branch=int(step > 0), step=step))
        go(e.AttemptEnded(node=name, ending=Ending.SCORED))
    assert state.branches == {}
    go(e.GuardAdded(node="1.1", guard=Guard(name="g", command=("true",))))
    assert state.branches == {}


async def test_guard_beside_the_judge(tmp_path: Path) -> None:
    """A guard in the judge's chamber sees the judge's files, the candidate and its outputs."""
    folder = write_task(tmp_path / "task", GUARD.replace('name = "sound"', 'name = "sound"\nin = "judge"'))
    script = Script()
    seen, program = list[set[str]](), script.program

    async def spy(guest: Any) -> int:
        if guest.job.command[0] == "guard":
            seen.append(set(guest.files))
            return 0
        return await program(guest)

    script.program = spy  # type: ignore[method-assign]
    assert (await ran(folder, script, {"value": 3})).nodes["1.1"].kept
    assert {"judge/judge.txt", "candidate/params.json", "outputs/answer.json"} <= seen[0]
