"""T91: what candidates leave has a budget of bytes; the oldest discarded outputs are let go first, and nothing else."""

import asyncio
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase
from orchestrator.ledger import Missing
from orchestrator.loop import shelf
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, Point, Scripted, ran, scripted, write_task, written

BIG = 20_000


@pytest.fixture(autouse=True)
def _no_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' trials are younger than a second."""
    monkeypatch.setattr(shelf, "SLACK_S", -60.0)


def point(value: int, size: int = BIG, **more: object) -> Point:
    """A candidate that leaves so many bytes."""
    return {"value": value, "leaves": size, **more}  # type: ignore[dict-item]


def there(session: Scripted, node: str) -> bool:
    """Whether the outputs of a node's first trial can be had."""
    trial = session.state.trials[f"{node}-1"]
    assert trial.outputs
    try:
        session.bench.artifacts.get_files(trial.outputs)
    except Missing:
        assert trial.let_go
        return False
    assert not trial.let_go
    return True


async def test_t91_the_oldest_discarded_outputs_go_first(folder: Path) -> None:
    """The baseline's, the champion's and every kept node's stay, and of the discarded ones the last."""
    values = [6, 1, 2, 7, 3, 4, 5]
    async with scripted(folder, None, *map(point, values), artifacts=5 * BIG) as session:
        await session.run()
        names = ["1", *(f"1.{number}" for number in range(1, 8))]
        assert [name for name in names if session.nodes[name].kept] == ["1", "1.1", "1.4"]
        assert [name for name in names if not there(session, name)] == ["1.2", "1.3", "1.5"]
        assert session.bench.shelf.kept_bytes <= 5 * BIG
        gone = [trial for event in session.of(e.OutputsLetGo) for trial in event.trials]
        assert gone == ["1.2-1", "1.3-1", "1.5-1"]
        assert session.state.campaign.let_go == 3
        assert session.state.campaign.let_go_bytes > 3 * BIG


async def test_t91_five_invalid_attempts(folder: Path) -> None:
    """Those whose outputs nobody will ever judge count like all others."""
    bad = [point(1, judge="no solution", more=number) for number in range(5)]
    async with scripted(folder, None, *bad, artifacts=2 * BIG) as session:
        await session.run()
        stored = session.bench.artifacts.usage().bytes
        assert stored < 3 * BIG
        assert session.charged == 5


class Leaving(Script):
    """Whatever its parameters say, a candidate leaves much, and each something else."""

    async def program(self, guest: Guest) -> int:
        code = await super().program(guest)
        if guest.job.command[0] == "trial":
            guest.out["large"] = (guest.files["params.json"] * BIG)[:BIG]
        return code


async def test_t91_what_minimising_tried(folder: Path) -> None:
    """Of a winner that was taken apart, what is offered keeps its outputs; those of the selections that were tried on
    the way go first.
    """
    params = {"value": 7, **dict.fromkeys(("one", "two", "three", "four"), 1)}
    await ran(folder, Leaving(), written(params), {"value": 3}, attempts=2, minimise=True)
    async with scripted(
        folder, Leaving(), written(params), {"value": 3}, {"value": 2}, how=How.RESUME, attempts=3, artifacts=6 * BIG
    ) as session:
        await session.run()
        state = session.state
        node = state.nodes["1.1.1"]
        assert node.kept
        trials = list(state.trials_of("1.1.1"))
        assert len(trials) > 4
        kept = [it.id for it in trials if not it.let_go]
        assert node.submitted in kept
        outputs = state.trials[node.submitted or ""].outputs
        assert session.bench.artifacts.get_files(outputs or "")
        assert {it.outputs for it in trials if it.id in kept} <= {outputs, state.trials["1.1-1"].outputs}
        assert session.bench.shelf.kept_bytes <= 6 * BIG
        assert there(session, "1.2")  # discarded, and before that


async def test_the_control_keeps_all(folder: Path) -> None:
    """Within the budget, nothing is let go: the default is large."""
    async with scripted(folder, None, *map(point, [3, 1, 2])) as session:
        assert session.options["artifacts"] == 2 << 30
        await session.run()
        assert all(there(session, name) for name in ("1", "1.1", "1.2", "1.3"))
        assert not session.of(e.OutputsLetGo)


async def test_shared_bytes_stay_while_somebody_needs_them(folder: Path) -> None:
    """A discarded candidate that left the champion's bytes, name by name or as a whole, takes nothing with it."""
    same = [point(6, same=True), point(2, same=True), point(1, same=True), point(3)]
    session = await ran(folder, None, *same, artifacts=BIG)
    assert there(session, "1.1")
    assert not there(session, "1.2")
    assert not there(session, "1.3")


async def test_t91_outputs_that_are_the_judges_traces(folder: Path) -> None:
    """A candidate that leaves the very bytes that its judge writes as a trace is one list: it is counted once, let go
    once, and neither this session nor a resume ends over it.
    """
    traced: list[Point] = [{"value": value, "traced": BIG} for value in (6, 1, 2, 3)]
    async with scripted(folder, None, *traced, artifacts=3 * BIG) as session:
        await session.run()
        trial = session.state.trials["1.2-1"]
        assert trial.outputs == trial.traces
        assert not there(session, "1.2")
        assert session.bench.shelf.kept_bytes < 3 * BIG
    session = await ran(folder, None, *traced, point(4), how=How.RESUME)
    assert session.nodes["1.5"].ending is Ending.SCORED


@pytest.mark.parametrize("was_let_go", [False, True])
@pytest.mark.parametrize("cut", ["judge", "guard"])
async def test_what_a_person_cancelled_can_be_run_again(tmp_path: Path, cut: str, was_let_go: bool) -> None:
    """What ended free keeps its outputs, and goes on from there; where a ledger let them go, it is run once more."""
    folder, script = write_task(tmp_path / "task", GUARD), Script()
    points = [point(9), *map(point, (6, 1, 2))]

    async def on_open(job: Job) -> None:
        if job.command[0] == cut and "1.1" in session.nodes and not script.gate.is_set():
            ask(folder, "cancel", {"node": "1.1"})
            script.gate.set()
            await asyncio.sleep(60)

    script.on_open = on_open
    async with scripted(folder, script, *points, artifacts=2 * BIG) as session:
        await session.run()
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        assert there(session, "1.1")
        assert not there(session, "1.3")
        if was_let_go:
            session.bench.book.record(e.OutputsLetGo(trials=("1.1-1",), bytes=BIG))
    ask(folder, "requeue", {"node": "1.1"})
    session = await ran(folder, script, *points, how=How.RESUME)
    node = session.nodes["1.1"]
    assert (node.ending, node.kept) == (Ending.SCORED, True)
    assert (node.submitted == "1.1-1") is not was_let_go


async def test_a_damaged_list_ends_no_campaign(folder: Path) -> None:
    """While a kept list cannot be read, what was let go stays on the disk and the campaign goes on, over a resume too;
    with the list back, it is removed.
    """
    points = [*map(point, [6, 1, 2, 3])]
    path, text = Path(), b""

    def restore() -> None:
        path.write_bytes(text)

    def damage(event: e.AttemptEnded) -> None:
        nonlocal path, text
        if event.node == "1":
            digest = str(session.state.trials["1-1"].outputs)
            path = folder / ".blastdoor/artifacts" / digest[:2] / digest[2:]
            text = path.read_bytes()
            path.write_bytes(text[:-1] + b"?")

    async with scripted(folder, None, *points, artifacts=2 * BIG) as session:
        session.when(e.AttemptEnded, damage)
        with capture_logs() as logs:
            await session.run()
        assert {it["event"] for it in logs if it["log_level"] == "warning"} == {
            "outputs that were let go could not be removed"
        }
        assert session.charged == 4
        trial = session.state.trials["1.2-1"]
        assert trial.let_go
        assert trial.outputs
        assert session.bench.artifacts.get_files(trial.outputs)
    async with scripted(folder, None, *points, point(4), how=How.RESUME) as session:
        await session.run()
        assert session.nodes["1.5"].ending is Ending.SCORED
        assert session.bench.artifacts.get_files(trial.outputs)
    restore()
    async with scripted(folder, None, *points, point(4), how=How.RESUME) as session:
        assert not there(session, "1.2")
        await session.run()


async def test_no_more_is_let_go_than_has_to_be(folder: Path) -> None:
    """Outputs of two that are the same as a whole are free when both have gone; nobody else's go for them. Those that
    a node which stays has too free nothing, and stay in reach.
    """
    alike = [point(value, says='{"value": 1}', same=True) for value in (1, 2)]
    like_baseline: Point = {"value": 3, "says": '{"value": 0}'}
    async with scripted(folder, None, point(6), like_baseline, *alike, point(4), point(5)) as session:
        await session.run()
        state, chosen = session.state, session.bench.shelf.oldest
        assert state.trials["1.3-1"].outputs == state.trials["1.4-1"].outputs
        assert state.trials["1.2-1"].outputs == state.trials["1-1"].outputs
        assert 4 * BIG < session.bench.shelf.kept_bytes < 4.5 * BIG
        assert [it.id for it in chosen(4 * BIG)] == ["1.3-1", "1.4-1"]
        assert [it.id for it in chosen(0)] == ["1.3-1", "1.4-1", "1.5-1", "1.6-1"]
        state.set_node("1.4", phase=Phase.OPEN)
        state.touched.clear()
        assert [it.id for it in chosen(0)] == ["1.5-1", "1.6-1"]
        session.bench.shelf.cap = 0
        session.bench.shelf.turn()
        await session.bench.book.durable()
        state.set_node("1.4", phase=Phase.ENDED)
        state.touched.clear()
        assert [it.id for it in chosen(0)] == ["1.3-1", "1.4-1"]
        await session.bench.shelf.close()
        assert [name for name in ("1.1", "1.2", "1.3", "1.4", "1.5", "1.6") if not there(session, name)] == [
            "1.5",
            "1.6",
        ]


async def test_more_is_needed_than_the_budget_allows(folder: Path) -> None:
    """It is said once, the campaign goes on, and what is discarded goes as it ends."""
    session = await ran(folder, None, *map(point, [3, 4, 5, 1, 2]), artifacts=BIG)
    assert all(there(session, name) for name in ("1", "1.1", "1.2", "1.3"))
    assert not there(session, "1.4")
    assert len(session.of(e.ArtifactsOverBudget)) == 1
    assert session.nodes["1.5"].ending is Ending.SCORED


async def test_nothing_is_removed_before_the_ledger_says_so(folder: Path) -> None:
    """A session that dies after it has said so leaves the bytes, and the next one removes them."""

    def dies(*_: object) -> set[str]:
        raise asyncio.CancelledError

    async with scripted(folder, None, *map(point, [6, 1, 2]), artifacts=2 * BIG) as session:
        session.bench.artifacts.let_go = dies  # type: ignore[method-assign, assignment]
        with pytest.raises(asyncio.CancelledError):
            await session.run()
        trial = session.state.trials["1.2-1"]
        assert trial.let_go
        assert session.bench.artifacts.get_files(str(trial.outputs))
    async with scripted(folder, None, *map(point, [6, 1, 2]), how=How.RESUME) as session:
        assert not there(session, "1.2")
        await session.run()


async def test_what_is_being_stored_is_not_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that were put since an attempt began to store its own, and that no event names yet, stay until it is done;
    what is older goes.
    """
    monkeypatch.setattr(shelf, "SLACK_S", 1.0)
    async with scripted(folder, None, *map(point, [6, 1, 2])) as session:
        await session.run()
        bench, artifacts = session.bench, session.bench.artifacts
        old, young = session.state.trials["1.2-1"], session.state.trials["1.3-1"]
        for path in (folder / ".blastdoor/artifacts").rglob("*"):
            os.utime(path, (1000.0, 1000.0))
        bench.shelf.cap = 1
        with bench.shelf.storing():
            artifacts.keep_files(artifacts.get_files(str(young.outputs)))
            bench.shelf.turn()
            while artifacts.those_there([str(old.outputs)]):  # noqa: ASYNC110 a thread removes it
                await asyncio.sleep(0.01)
            assert not there(session, "1.2")
            assert session.state.trials[young.id].let_go
            assert artifacts.get_files(str(young.outputs))
        await bench.shelf.close()
        assert not there(session, "1.3"), "nothing is under way any more"


async def test_a_removal_that_fails_leaves_no_machine_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with what is let go, all that is rented is given back first, and all is settled."""
    done: list[str] = []

    async def stand_down() -> None:
        done.append("given back")

    async def close(_: shelf.Shelf) -> None:
        done.append("removed")
        raise OSError(5, "Input/output error")

    async with scripted(folder, None, point(6), point(1, do="wait")) as session:
        object.__setattr__(session.bench, "stand_down", stand_down)
        monkeypatch.setattr(shelf.Shelf, "close", close)
        session.when(e.TrialIntended, lambda event: session.campaign.stop("Ctrl-C") if event.node == "1.2" else None)
        with pytest.raises(OSError, match="Input/output"):
            await session.run()
        assert done[:2] == ["given back", "removed"]
        assert not session.accounts.holds


async def test_an_older_ledger(folder: Path) -> None:
    """One that does not say how large outputs are is counted by what is stored."""
    async with scripted(folder, None, *map(point, [6, 1, 2])) as session:
        await session.run()
        bench = session.bench
        for name in list(bench.state.trials):
            bench.state.set_trial(name, outputs_bytes=0, traces_bytes=0)
        bench.state.touched.clear()
        counted = shelf.Shelf(bench.book, bench.artifacts, None)
        await counted.open()
        assert counted.kept_bytes == bench.shelf.kept_bytes > 3 * BIG


async def test_outputs_at_hand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that comes next is given what was stored, without a read; the oldest are read again where it was too
    much or were too many, since a guard may let none of them pass, and so is what was taken before.
    """
    async with scripted(folder, None, point(3), point(4)) as session:
        bench, read = session.bench, []
        real = bench.artifacts.get_files

        def seen(digest: str) -> dict[str, bytes]:
            read.append(digest)
            return real(digest)

        monkeypatch.setattr(bench.artifacts, "get_files", seen)
        await session.run()
        assert read == []
        first, second = (bench.state.trials[f"1.{number}-1"] for number in (1, 2))
        stored = await bench.shelf.take(first)
        assert read == [first.outputs]
        monkeypatch.setattr(shelf, "AT_HAND_BYTES", 3)
        bench.shelf.hand_on(first.id, {"a": b"a"}, 2)
        bench.shelf.hand_on(second.id, {"b": b"b"}, 2)
        assert await bench.shelf.take(second) == {"b": b"b"}
        assert await bench.shelf.take(first) == stored
        bench.shelf.hand_on(first.id, {"a": b""}, 0)
        for number in range(100):
            bench.shelf.hand_on(f"none judges {number}", {"empty": b""}, 0)
        assert await bench.shelf.take(first) == stored
