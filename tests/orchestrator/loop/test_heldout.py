"""The held-out split: asked only about whom the rest would keep, answered by the ladder, counted whatever happens."""

import asyncio
import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase, Role
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode
from orchestrator.door import Door, Ran
from orchestrator.ledger import Entry, Full
from orchestrator.loop.judge_modes import JUDGE_MODES
from orchestrator.loop.money import usage, worst_of_attempt
from orchestrator.loop.workbench import BaselineFailed
from orchestrator.wiring.beginning import How
from sandbox import Job
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.books import ledger_of
from tests.orchestrator.loop.script import HELD, Script, failing
from tests.orchestrator.loop.scripted import CPU, GUARD, HELDOUT, TUNE, Point, Scripted, scripted, worst_of, write_task


def task(folder: Path, *more: str, keys: str = "", **changes: float) -> Path:
    """The scripted task with a held-out split; changes, and lines as they stand, are keys of [heldout]."""
    told = keys + "".join(f"{key} = {json.dumps(value)}\n" for key, value in changes.items())
    text = HELDOUT.replace("step = 1\n", "") if "step" in changes else HELDOUT
    return write_task(folder, f"{text}{told}", *more, high=1000)


def answers(session: Scripted) -> list[tuple[str, int, bool, float | None]]:
    return [(it.node, it.query, it.better, it.released) for it in session.of(e.HeldOutAsked)]


async def test_ladder_decides(tmp_path: Path) -> None:
    """Better in development is not enough: kept is who beats the released value by more than a step."""
    points: list[Point] = [
        {"value": 3, "held": 1},
        {"value": 4, "held": 3.4},
        {"value": 9, "held": 4.3},
        {"value": 10, "held": 4.6},
    ]
    async with scripted(task(tmp_path / "task"), None, *points) as session:
        finished = await session.run()
        nodes = session.bench.state.nodes
        assert answers(session) == [
            ("1", 1, False, 0.0),
            ("1.1", 2, False, 0.0),
            ("1.2", 3, True, 3.0),
            ("1.3", 4, True, 4.0),
            ("1.4", 5, False, 4.0),
        ]
        assert [nodes[f"1.{n}"].kept for n in range(1, 5)] == [False, True, True, False]
        assert "not better on the held-out split" in nodes["1.1"].why
        assert finished.champion == nodes["1.3"]
        assert session.bench.state.campaign.asked == 5


async def test_lower_is_better(tmp_path: Path) -> None:
    """For a metric to be brought down, the ladder goes down, and what it releases is the metric's own value."""
    metric = '[[metrics]]\nname = "score"\ngoal = "lower"\n'
    points: list[Point] = [{"value": -3, "held": -2.6}, {"value": -4, "held": -3.2}]
    async with scripted(task(tmp_path / "task", metric), None, *points) as session:
        await session.run()
        assert [it[2:] for it in answers(session)] == [(False, 0.0), (True, -3.0), (False, -3.0)]


async def test_only_on_promotion(tmp_path: Path) -> None:
    """Neither a control, nor who is no better, nor who fails a guard or has no score is run on the held-out split."""
    folder = task(tmp_path / "task", GUARD)
    script = Script(unsound=(7,))
    points: list[Point] = [
        {"value": 5},
        {"value": 4},
        {"value": 7},
        {"value": 9, "judge": "crash"},
        {"value": 9, "do": "failed"},
    ]
    async with scripted(folder, script, *points, control="random") as session:
        await session.run()
        assert [it.node for it in session.of(e.HeldOutIntended)] == ["1", "1.1"]


async def test_candidate_is_told_nothing(tmp_path: Path) -> None:
    """What a candidate sees of a held-out trial is that of a real one: command, variables, names, limits."""
    seen: list[Job] = []

    async def on_open(job: Job) -> None:
        if job.command[0] == "trial":
            seen.append(job)

    folder = task(tmp_path / "task", keys='env = {SPLIT = "held"}\n')
    async with scripted(folder, Script(on_open=on_open), {"value": 5}) as session:
        await session.run()
        judge = session.bench.jobs.judge(Mode.HELDOUT)
        assert judge.env["SPLIT"] == "held"
    usual, held = seen[-2:]
    assert [item.digest for item in held.inputs] == [HELD]
    assert [item.name for item in held.inputs] == [item.name for item in usual.inputs]
    assert held.env == usual.env
    assert held.env["BLASTDOOR_MODE"] == "submit"
    unseen_inside = {"realm": usual.realm}
    assert held.model_copy(update={"inputs": usual.inputs} | unseen_inside) == usual


@pytest.mark.parametrize(
    "fault",
    [
        {"held judge": "crash"},
        {"held judge": "nan"},
        {"held judge": "no metric"},
        {"held judge": "no solution"},
        {"held judge": "break off"},
        {"held do": "failed"},
        {"held do": "bad name"},
        {"held do": "break off"},
        {"held": 0},
    ],
    ids=str,
)
async def test_no_score_reads_like_no_better(tmp_path: Path, fault: dict[str, Any]) -> None:
    """A candidate cannot choose between answers: failing, breaking the judge and losing are told alike."""
    async with scripted(task(tmp_path / "task"), None, {"value": 5, **fault}) as session:
        await session.run()
        node, asked = session.bench.state.nodes["1.1"], session.of(e.HeldOutAsked)[-1]
        assert (node.ending, node.kept) == (Ending.SCORED, False)
        assert node.why == "better than the champion, but not better on the held-out split"
        assert asked.model_copy(update={"spent": session.of(e.HeldOutAsked)[0].spent}) == e.HeldOutAsked(
            node="1.1",
            query=2,
            cohort=session.of(e.HeldOutAsked)[0].cohort,
            released=0.0,
            step=1.0,
            spent=session.of(e.HeldOutAsked)[0].spent,
        )


async def test_beyond_the_ceiling(tmp_path: Path) -> None:
    """A held-out score that nobody honest gets is no score."""
    metric = '[[metrics]]\nname = "score"\nceiling = 10\n'
    async with scripted(task(tmp_path / "task", metric), None, {"value": 5, "held": 11}) as session:
        await session.run()
        assert answers(session)[-1] == ("1.1", 2, False, 0.0)


async def test_baseline_without_a_score(tmp_path: Path) -> None:
    """A task whose held-out split does not work ends at its baseline, with the fixed code, before anything is spent."""
    folder = task(tmp_path / "task")
    (folder / "workspace/params.json").write_text('{"value": 0, "held judge": "no metric"}')
    async with scripted(folder, None, {"value": 5}) as session:
        with pytest.raises(BaselineFailed, match=r"no score on the held-out split: .*correct \[heldout\]"):
            await session.run()
        assert session.charged == 0


async def test_without_a_gate(tmp_path: Path) -> None:
    """With gate = false the answer is on record, and the candidate is kept all the same."""
    async with scripted(task(tmp_path / "task", gate=False), None, {"value": 5, "held": 0}) as session:
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert (node.kept, node.why) == (True, "better than the champion, though not better on the held-out split")
        assert answers(session)[-1] == ("1.1", 2, False, 0.0)


@pytest.mark.parametrize("gate", [True, False])
async def test_queries_are_used_up(tmp_path: Path, gate: bool) -> None:
    """After so many queries the split is not touched again. Where it is a gate nothing more can be kept, so that the
    search stops and says so; where it is none, it goes on without.
    """
    points = [{"value": value} for value in (2, 4, 6, 8)]
    async with scripted(task(tmp_path / "task", queries=3, gate=gate), None, *points) as session:
        finished = await session.run()
        state = session.bench.state
        assert [it.query for it in session.of(e.HeldOutIntended)] == [1, 2, 3]
        kept = [node.kept for name, node in state.nodes.items() if name != "1"]
        assert kept == ([True, True] if gate else [True] * 4)
        assert ("asked 3 times, all that heldout.queries allows" in finished.reason) == gate


async def test_what_is_under_way_at_the_last_query(tmp_path: Path) -> None:
    """Attempts that were open when the last query was asked come to their end, undecided; no other is opened."""
    points: list[Point] = [{"value": 2}, {"value": 4, "judge": "wait"}, {"value": 6}, {"value": 8}]
    async with scripted(task(tmp_path / "task", queries=2), None, *points, width=2) as session:

        def go(event: e.HeldOutIntended) -> None:
            if event.node == "1.1":
                session.script.gate.set()

        session.when(e.HeldOutIntended, go)
        await session.run()
        nodes = session.bench.state.nodes
        assert set(nodes) == {"1", "1.1", "1.2"}
        (undecided,) = (node for name, node in nodes.items() if name != "1" and not node.kept)
        assert "asked 2 times, all that heldout.queries allows: nothing more" in undecided.why


async def test_count_goes_on(tmp_path: Path) -> None:
    """A new run starts a new ladder, but what was asked stays asked."""
    folder = task(tmp_path / "task", queries=4)
    async with scripted(folder, None, {"value": 2}) as session:
        await session.run()
    async with scripted(folder, None, {"value": 2}, {"value": 4}, how=How.NEW_RUN) as session:
        await session.run()
        assert answers(session) == [("2", 3, False, 0.0), ("2.1", 4, True, 2.0)]
        assert "2.2" not in session.bench.state.nodes
    async with scripted(folder, None, {"value": 2}, how=How.NEW_RUN) as session:
        await session.run()
        assert answers(session) == []
        assert session.bench.state.nodes["3"].kept
        assert "3.1" not in session.bench.state.nodes


@pytest.mark.parametrize("kind", [e.HeldOutIntended, e.HeldOutAsked, e.JudgingEnded, e.GuardEnded])
@pytest.mark.parametrize("width", [1, 3])
async def test_stop_and_resume(tmp_path: Path, kind: type[e.Event], width: int) -> None:
    """Stopped in whichever phase, a resume keeps what an undisturbed campaign keeps; what was intended is counted."""
    points = [{"value": value, "held": value + value % 2} for value in (3, 5, 7, 4)]
    more = (TUNE, GUARD)
    async with scripted(task(tmp_path / "calm", *more), None, *points) as session:
        await session.run()
        expected = {name: (node.verdict, node.kept) for name, node in session.bench.state.nodes.items()}
    folder = task(tmp_path / "task", *more)
    async with scripted(folder, None, *points, width=width) as session:
        session.stop_at(kind, 2)
        await session.run()
        first = len(session.of(e.HeldOutIntended))
        state = session.bench.state
        assert all(node.asking is None for node in state.nodes.values())
        assert all(node.phase is not Phase.OPEN for node in state.nodes.values())
        assert not session.bench.book.accounts.holds
    async with scripted(folder, None, *points, how=How.RESUME, width=1) as session:
        await session.run()
        state = session.bench.state
        assert state.campaign.asked == first + len(session.of(e.HeldOutIntended))
        if width == 1:
            assert {name: (node.verdict, node.kept) for name, node in state.nodes.items()} == expected
        champion = state.champion()
        assert champion is not None
        assert champion.params == {"value": 7, "held": 8}


async def test_killed_while_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that its orchestrator did not live to finish counts as asked, tells nothing, and is asked again."""
    folder = task(tmp_path / "task", queries=3)
    async with scripted(folder, None, {"value": 3}) as session:
        ledger, append = session.bench.book.ledger, session.bench.book.ledger.append

        written: list[str] = []

        def until_second_query(entries: Sequence[Entry], *args: Any) -> Any:
            """What kill -9 leaves: the intent, and nothing after it."""
            if written.count("held-out intended") == 2:
                raise Full(folder)
            written.extend(entry.kind for entry in entries)
            return append(entries, *args)

        monkeypatch.setattr(ledger, "append", until_second_query)
        with pytest.raises(Full):
            await session.run()
    with ledger_of(folder) as ledger:
        assert list(ledger.read())[-1].kind == "held-out intended"
    async with scripted(folder, None, {"value": 3}, {"value": 9}, how=How.RESUME) as session:
        await session.run()
        state, told = session.bench.state, answers(session)
        assert state.nodes["1.1"].heldout.keys() == state.nodes["1"].heldout.keys()
        assert told == [("1.1", 3, True, 3.0)]
        assert (state.campaign.asked, state.nodes["1.1"].kept, "1.2" in state.nodes) == (3, True, False)


@pytest.mark.parametrize("lost", ["trial", "judge"])
async def test_provider_fails(tmp_path: Path, lost: str) -> None:
    """Where no chamber was to be had the attempt is free and tried again; the query is used up none the less."""
    script = failing(1, lost, after=4)
    async with scripted(task(tmp_path / "task"), script, {"value": 5}) as session:
        await session.run()
        assert [(it.query, it.interrupted, it.better) for it in session.of(e.HeldOutAsked)] == [
            (1, False, False),
            (2, True, False),
            (3, False, True),
        ]
        assert session.charged == 1
        assert session.bench.state.nodes["1.1"].kept


@pytest.mark.parametrize("fault", [{"held do": "cut"}, {"held judge": "cut"}], ids=str)
async def test_engine_is_cut(tmp_path: Path, fault: Point) -> None:
    """A chamber that is lost with its engine is nobody's fault: the attempt is refunded, with what it spent on it."""
    script = Script()
    async with scripted(task(tmp_path / "task"), script, {"value": 5, **fault}) as session:
        session.stop_at(e.AttemptRequeued, 1)
        await session.run()
        node = session.bench.state.nodes["1.1"]
        assert (node.phase, node.ending) == (Phase.QUEUED, Ending.INFRASTRUCTURE)
        assert session.of(e.HeldOutAsked)[-1].interrupted
        assert session.bench.state.campaign.asked == 2
        script.world.answers = True


async def test_worst_case_covers_it(tmp_path: Path) -> None:
    """What an attempt sets aside has room for the trial on the held-out split and its judging."""
    async with scripted(write_task(tmp_path / "without"), None, {"value": 5}) as session:
        without, control = (worst_of_attempt(session.bench, role, []) for role in (Role.SEARCH, Role.CONTROL))
    async with scripted(task(tmp_path / "task"), None, {"value": 5}) as session:
        bench = session.bench
        more = usage(worst_of(bench.door, bench.jobs.trial(Mode.HELDOUT)))
        more += usage(worst_of(bench.home, bench.jobs.judge(Mode.HELDOUT)))
        assert worst_of_attempt(bench, Role.SEARCH, []) == without + more
        assert worst_of_attempt(bench, Role.CONTROL, []) == control


async def test_other_hardware(tmp_path: Path) -> None:
    """Where hardware binds, the baseline is asked again on the candidate's machine: another cohort, another ladder."""
    folder = task(tmp_path / "task", CPU)
    script = Script()
    async with scripted(folder, script, {"value": 3}, {"value": 5}, {"value": 6.5}) as session:

        def move(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                script.cpu = "another"

        session.when(e.AttemptEnded, move)
        await session.run()
        assert answers(session) == [
            ("1", 1, False, 0.0),
            ("1.1", 2, True, 3.0),
            ("1", 4, False, 0.0),
            ("1.2", 3, True, 5.0),
            ("1.3", 5, True, 6.0),
        ]
        assert len(session.bench.state.run.ladders) == 2
        assert not session.bench.book.accounts.holds


class Telling(Script):
    """A candidate that prints its held-out input and hands it on, and a judge that tells all it knows of its score."""

    scores = (0.2718281828, 3.1415926535, 5.7721566490, 5.9166079783, 9.8696044010)

    async def _trial(self, guest: Guest) -> int:
        if any(item.digest == HELD for item in guest.job.inputs):
            guest.log(b"CANARY of the log\n")
            guest.out["seen.txt"] = b"CANARY of the outputs"
        return await super()._trial(guest)

    async def _judge(self, guest: Guest) -> int:
        if "--heldout" not in guest.job.command:
            return await super()._judge(guest)
        value = json.loads(guest.files["outputs/answer.json"])["value"]
        score = self.scores[value // 2]
        guest.log(f"CANARY of the judge {score}\n".encode())
        guest.out["traces/task_1.json"] = json.dumps({"CANARY": score}).encode()
        guest.out["metrics.csv"] = f"iteration,score (higher is better)\n1,{score}\n".encode()
        result = {"score": score, "notes": f"CANARY {score}", "metrics": {"CANARY": score}, "tasks": {"CANARY": score}}
        guest.out["result.json"] = json.dumps(result).encode()
        return 1 if value == 8 else 0


async def test_exact_score_is_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No row of the ledger and no file of the campaign, while it runs or after, has a held-out score, what a candidate
    printed or left there, or what the judge said about it; nor has anything that is printed.
    """
    folder = task(tmp_path / "task", step=0.5)
    found: list[bytes] = []
    async with scripted(folder, Telling(), *({"value": value} for value in (2, 4, 6, 8))) as session:
        for kind in (e.HeldOutIntended, e.HeldOutAsked):
            session.when(kind, lambda _: found.extend(_contents(folder / ".blastdoor")))
        await session.run()
        assert [it[2:] for it in answers(session)] == [
            (False, 0.5),
            (True, 3.0),
            (True, 6.0),
            (False, 6.0),
            (False, 6.0),
        ]
        with ledger_of(folder) as ledger:
            found += [body.encode() for body in (*(it.body for it in ledger.read()), *ledger.rows().values())]
    found += [*_contents(folder / ".blastdoor"), *(text.encode() for text in capfd.readouterr())]
    assert any(b"value 2" in content for content in found), "the search sees logs of real trials"
    # Long enough that no measured second begins like that by chance.
    secrets = [b"CANARY", *(str(score)[:9].encode() for score in Telling.scores)]
    assert [secret for secret in secrets if any(secret in content for content in found)] == []


def _contents(folder: Path) -> Iterator[bytes]:
    """Every file, and what is in it where it is packed."""
    for path in folder.rglob("*"):
        if path.is_file():
            try:
                content = path.read_bytes()
            except FileNotFoundError:  # of a writer at work: it has its lasting name by now, or is gone
                continue
            yield content
            with contextlib.suppress(zlib.error):
                yield zlib.decompress(content)


@pytest.mark.parametrize(("hidden", "trial"), [("", ""), ('hidden = ["secret.txt"]\n', "trial")])
async def test_t83_held_out_and_hidden_files_have_a_realm(tmp_path: Path, hidden: str, trial: str) -> None:
    """Held-out inputs never share a file with development, nor trials that hold hidden files with agents and judges."""
    folder = task(tmp_path / "task")
    file = folder / "blastdoor.toml"
    (folder / "workspace/secret.txt").write_text("x")
    file.write_text(hidden + file.read_text())
    async with scripted(folder, None) as session:
        jobs = session.bench.jobs
        realms = {mode: jobs.trial(mode).realm for mode in Mode}
        assert realms == {Mode.TUNE: trial, Mode.SUBMIT: trial, Mode.HELDOUT: "heldout"}
        assert {jobs.judge(mode).realm for mode in Mode} == {""}
        assert JUDGE_MODES[Tier.SHARED].trial_job(jobs, Mode.SUBMIT, "1").realm == trial
        assert jobs.realms() == {(jobs.image.name, trial), (jobs.image.name, "heldout")}


async def test_t83_held_out_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two attempts at a time, none has a candidate's chamber while another's is on the held-out split."""
    running: list[str] = []
    together: list[list[str]] = []
    original = Door._run

    async def noted(door: Door, job: Job, *rest: Any) -> Ran:
        if job.command[0] != "trial":
            return await original(door, job, *rest)
        running.append(job.realm)
        together.append(list(running))
        try:
            # Those of the search wait for one beside them, until two have met; the baseline has nobody.
            while not job.realm and len(together) > 2 and ["", ""] not in together:  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.01)
            return await original(door, job, *rest)
        finally:
            running.remove(job.realm)

    monkeypatch.setattr(Door, "_run", noted)
    points: list[Point] = [{"value": 3 * n, "held": 3 * n} for n in range(1, 9)]
    async with scripted(task(tmp_path / "task"), None, *points, width=2) as session:
        await session.run()
        # Of two at a time the better one may be kept first, and the other is not asked about then.
        asked = len(answers(session))
    assert ["", ""] in together, "two at a time"
    assert asked > len(points) // 2
    assert [names for names in together if "heldout" in names] == [["heldout"]] * asked
