"""T82: what is made to be slow to read, compare or store costs its own attempt, and no one else a turn of the loop."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest

from orchestrator.change import Effort
from orchestrator.change.canonical import compare
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.files import sync
from orchestrator.ledger import artifacts
from orchestrator.loop import attempt
from orchestrator.offload import offload
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from tests.lag import longest_turn
from tests.orchestrator.loop.scripted import Act, ran, scripted, write_task

FILES, LINES = 64, 1_500
# Of the loop's own processor time in one turn. What the loop does for itself takes a tenth of it.
MOST_S = 0.4


def write_wide(folder: Path) -> Path:
    """A task with 64 editable files of 1,500 lines, in a new folder within this one."""
    folder = write_task(Path(mkdtemp(dir=folder)))
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace('"notes.txt"', '"notes.txt", "src/**"'))
    (folder / "workspace/src").mkdir()
    for number in range(FILES):
        (folder / f"workspace/src/f{number:02}.txt").write_text(lines("old"))
    return folder


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    return write_wide(tmp_path)


def lines(word: str, count: int = LINES) -> str:
    return "".join(f"{word}{at * 7 % 997}\n" for at in range(count))


def rewrite(word: str = "new") -> str:
    """All of the files, each with other lines in it: 0.9 MB of text."""
    return "".join(f"src/f{number:02}.txt\n```\n{lines(word)}```\n" for number in range(FILES))


def offering(text: str) -> Act:
    async def act(_: Brief) -> Sequence[Proposal]:
        return [Proposal(operator="hostile", description="slow to compare", text=text)]

    return act


async def test_t82_a_rewrite_of_many_files(tmp_path: Path) -> None:
    """Compared within one budget, off the loop, and charged; so is a person's. An honest sibling is scored."""

    async def scene() -> None:
        acts, folder = (offering(rewrite()), {"value": 3, "takes": 0.2}), write_wide(tmp_path)
        async with scripted(folder, None, *acts, width=2) as session:
            ask(folder, "inject", {"text": rewrite("mine"), "description": "mine"})
            await session.run(240)
        injected = next(node for node in session.nodes.values() if node.injection)
        for ending in (session.nodes["1.1"].ending, injected.ending):
            assert ending
            assert ending.charged
        assert (session.nodes["1.2"].ending, session.charged) == (Ending.SCORED, 3)
        assert not session.of(e.AttemptRequeued) + session.of(e.AttemptQuarantined)

    assert await longest_turn(scene, MOST_S) < MOST_S


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("notes.txt\n```\n" + "\n" * 900_000 + "```\n", "too many lines"),
        ("```\n" * 250_000, "too many lines"),
        ("x" * 1_100_000, "text too long"),
    ],
    ids=["lines", "fences", "bytes"],
)
async def test_t82_past_the_budget(tmp_path: Path, text: str, reason: str) -> None:
    """The change is refused, the agent is told why, and the attempt is charged."""
    told: list[str | None] = []

    async def act(brief: Brief) -> Sequence[Proposal]:
        proposal = Proposal(operator="hostile", description="too much", text=text)
        told.append(await offload(brief.refusal, proposal))
        return [proposal]

    async def scene() -> None:
        session = await ran(write_wide(tmp_path), None, act, {"value": 3})
        assert (session.nodes["1.1"].ending, session.charged) == (Ending.INVALID, 2)
        assert reason in session.nodes["1.1"].why

    assert await longest_turn(scene, MOST_S) < MOST_S
    assert told[0]
    assert told[0].startswith(reason)


async def test_t82_processor_time_is_the_last_bound(wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change whose comparison takes more of the processor than a change may is refused and charged, too."""
    monkeypatch.setattr(attempt, "Effort", lambda: Effort(clock=iter(range(0, 10**9, 30)).__next__))
    session = await ran(wide, None, offering(rewrite()), {"value": 3})
    node = session.nodes["1.1"]
    assert (node.ending, session.charged, node.commit) == (Ending.INVALID, 2, None)
    assert "too costly" in node.why


async def test_t82_stopped_while_a_thread_compares(wide: Path) -> None:
    """An attempt that is interrupted meanwhile is queued again, writes nothing later, and ends well on a resume."""
    async with scripted(wide, None, offering(rewrite()), {"value": 3}) as session:
        session.stop_at(e.Proposed, 2)
        await session.run()
        assert session.nodes["1.1"].ending in (None, Ending.INTERRUPTED)
        count = len(session.events)
        await asyncio.sleep(0)
        assert len(session.events) == count
    async with scripted(wide, None, offering(rewrite()), {"value": 3}, how=How.RESUME) as session:
        await session.run(240)
        ending = session.nodes["1.1"].ending
        assert ending is not None
        assert ending.charged


async def test_t82_many_outputs_are_stored_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop waits for no disk on behalf of a candidate that leaves a thousand files."""
    on_loop: list[Path] = []

    def seen(path: Path) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            sync(path)
        else:
            on_loop.append(path)

    monkeypatch.setattr(artifacts, "sync", seen)

    async def scene() -> None:
        async with scripted(write_task(Path(mkdtemp(dir=tmp_path))), None, {"value": 3, "files": 1_000}) as session:
            on_loop.clear()
            await session.run(120)
            trial = session.state.trials["1.1-1"]
            assert trial.outputs
            assert len(session.bench.artifacts.get_files(trial.outputs)) == 1_001
            assert on_loop == []

    assert await longest_turn(scene, MOST_S) < MOST_S


async def test_size_does_not_depend_on_the_parent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size against the root, which breaks ties, is the same however hard its parent's diff is to find."""

    def whole(value: int, notes: list[str]) -> str:
        return f'params.json\n```\n{{"value": {value}}}\n```\nnotes.txt\n```\n{"".join(notes)}```\n'

    old = [f"line {at}\n" for at in range(200)]
    other = [f"another {at}\n" for at in range(200)]
    new = ["changed\n" if at in (50, 150) else line for at, line in enumerate(old)]
    (folder / "workspace/notes.txt").write_text("".join(old))
    monkeypatch.setattr(attempt, "Effort", lambda: Effort(steps=2_000))
    offers = [offering(whole(6, other)), offering(whole(7, new))]
    async with scripted(folder, None, *offers, branching=True) as session:
        await session.run()
        bench = session.bench
        node = bench.state.nodes["1.1.1"]
        assert node.kept
        assert node.size == compare(bench.root, await bench.tree("1.1.1")).size().lines < 10
