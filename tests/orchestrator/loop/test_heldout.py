"""The held-out split: asked only about whom the rest would keep, answered by the ladder, counted whatever happens."""

import asyncio
import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Phase, Role
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode
from orchestrator.ledger import Entry, Full
from orchestrator.loop.judge_modes import JUDGE_MODES
from orchestrator.loop.money import usage, worst_of_attempt
from orchestrator.loop.workbench import BaselineFailed
from orchestrator.wiring.beginning import How
from sandbox import Job
from sandbox.backends.fake.backend import Guest
from tests.orchestrator.loop.books import ledger_of
from tests.orchestrator.loop.script import HELD, Script, failing
from tests.orchestrator.loop.scripted import (
    CPU,
    GUARD,
    HELDOUT,
    TUNE,
    Point,
    Scripted,
    ran,
    scripted,
    worst_of,
    write_task,
)


def task(folder: Path, *more: str, keys: str = "", **changes: float) -> Path:
    """The scripted task with a held-out split; changes, and lines as they stand, are keys of [heldout]."""
    told = keys + "".join(f"{key} = {json.dumps(value)}\n" for key, value in changes.items())
    text = HELDOUT.replace("step = 1\n", "") if "step" in changes else HELDOUT
    return write_task(folder, f"{text}{told}", *more, high=1000)


def answers(session: Scripted) -> list[tuple[str, int, bool, float | None]]:
    return [(it.node, it.query, it.better, it.released) for it in session.of(e.HeldOutAsked)]


async def test_ladder_decides(tmp_path: Path) -> None:
    """Better in development is not enough: kept is who beats the released value by more than a step."""
    points: list[Point] = [{"value": value, "held": held} for value, held in ((3, 1), (4, 3.4), (9, 4.3), (10, 4.6))]
    session = await ran(task(tmp_path / "task"), None, *points)
    assert answers(session) == [
        ("1", 1, False, 0.0),
        ("1.1", 2, False, 0.0),
        ("1.2", 3, True, 3.0),
        ("1.3", 4, True, 4.0),
        ("1.4", 5, False, 4.0),
    ]
    assert [session.nodes[f"1.{n}"].kept for n in range(1, 5)] == [False, True, True, False]
    assert "not better on the held-out split" in session.nodes["1.1"].why
    assert (session.champion, session.state.campaign.asked) == ("1.3", 5)


async def test_lower_is_better(tmp_path: Path) -> None:
    """For a metric to be brought down, the ladder goes down, and what it releases is the metric's own value."""
    metric = '[[metrics]]\nname = "score"\ngoal = "lower"\n'
    points: list[Point] = [{"value": -3, "held": -2.6}, {"value": -4, "held": -3.2}]
    session = await ran(task(tmp_path / "task", metric), None, *points)
    assert [it[2:] for it in answers(session)] == [(False, 0.0), (True, -3.0), (False, -3.0)]


async def test_only_on_promotion(tmp_path: Path) -> None:
    """Neither a control, nor who is no better, nor who fails a guard or has no score is run on the held-out split."""
    points: list[Point] = [{"value": value} for value in (5, 4, 7)]
    points += [{"value": 9, "judge": "crash"}, {"value": 9, "do": "failed"}]
    session = await ran(task(tmp_path / "task", GUARD), Script(unsound=(7,)), *points, control="random")
    assert [it.node for it in session.of(e.HeldOutIntended)] == ["1", "1.1"]


async def test_candidate_is_told_nothing(tmp_path: Path) -> None:
    """What a candidate sees of a held-out trial is that of a real one: command, variables, names, limits."""
    seen: list[Job] = []

    async def on_open(job: Job) -> None:
        if job.command[0] == "trial":
            seen.append(job)

    folder = task(tmp_path / "task", keys='env = {SPLIT = "held"}\n')
    session = await ran(folder, Script(on_open=on_open), {"value": 5})
    assert session.bench.jobs.judge(Mode.HELDOUT).env["SPLIT"] == "held"
    usual, held = seen[-2:]
    assert [item.digest for item in held.inputs] == [HELD]
    assert [item.name for item in held.inputs] == [item.name for item in usual.inputs]
    assert held.env == usual.env
    assert held.env["BLASTDOOR_MODE"] == "submit"
    unseen_inside = {"realm": usual.realm}
    assert held.model_copy(update={"inputs": usual.inputs} | unseen_inside) == usual


FAULTS: list[Point] = [
    *({"held judge": does} for does in ("crash", "nan", "no metric", "no solution", "break off")),
    *({"held do": does} for does in ("failed", "bad name", "break off")),
    {"held": 0},
    {"held": 2000},  # beyond the ceiling: nobody honest gets that
]


async def test_no_score_reads_like_no_better(tmp_path: Path) -> None:
    """A candidate cannot choose between answers: failing, breaking the judge and losing are told alike."""
    metric = '[[metrics]]\nname = "score"\nceiling = 1000\n'
    points: list[Point] = [{"value": 5 + at, **fault} for at, fault in enumerate(FAULTS)]
    session = await ran(task(tmp_path / "task", metric), None, *points)
    baseline, *asked = session.of(e.HeldOutAsked)
    assert len(asked) == len(FAULTS)
    for query, it in enumerate(asked, 2):
        node, known = session.nodes[it.node], {"cohort": baseline.cohort, "spent": it.spent}
        assert (node.ending, node.kept) == (Ending.SCORED, False)
        assert node.why == "better than the champion, but not better on the held-out split"
        assert it == e.HeldOutAsked(node=it.node, query=query, released=0.0, step=1.0, **known)


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
    session = await ran(task(tmp_path / "task", gate=False), None, {"value": 5, "held": 0})
    node = session.nodes["1.1"]
    assert (node.kept, node.why) == (True, "better than the champion, though not better on the held-out split")
    assert answers(session)[-1] == ("1.1", 2, False, 0.0)


@pytest.mark.parametrize("gate", [True, False])
async def test_queries_are_used_up(tmp_path: Path, gate: bool) -> None:
    """Then the split is not touched again; where it is a gate nothing more can be kept, so the search ends."""
    points = [{"value": value} for value in (2, 4, 6, 8)]
    session = await ran(task(tmp_path / "task", queries=3, gate=gate), None, *points)
    assert [it.query for it in session.of(e.HeldOutIntended)] == [1, 2, 3]
    kept = [node.kept for name, node in session.nodes.items() if name != "1"]
    assert kept == ([True, True] if gate else [True] * 4)
    assert ("asked 3 times, all that heldout.queries allows" in session.reason) == gate


async def test_what_is_under_way_at_the_last_query(tmp_path: Path) -> None:
    """Attempts that were open when the last query was asked come to their end, undecided; no other is opened."""
    points: list[Point] = [{"value": 2}, {"value": 4, "judge": "wait"}, {"value": 6}, {"value": 8}]
    async with scripted(task(tmp_path / "task", queries=2), None, *points, width=2) as session:

        def go(event: e.HeldOutIntended) -> None:
            if event.node == "1.1":
                session.script.gate.set()

        session.when(e.HeldOutIntended, go)
        await session.run()
        nodes = session.nodes
        assert set(nodes) == {"1", "1.1", "1.2"}
        (undecided,) = (node for name, node in nodes.items() if name != "1" and not node.kept)
        assert "asked 2 times, all that heldout.queries allows: nothing more" in undecided.why


async def test_count_goes_on(tmp_path: Path) -> None:
    """A new run starts a new ladder, but what was asked stays asked."""
    folder = task(tmp_path / "task", queries=4)
    await ran(folder, None, {"value": 2})
    session = await ran(folder, None, {"value": 2}, {"value": 4}, how=How.NEW_RUN)
    assert answers(session) == [("2", 3, False, 0.0), ("2.1", 4, True, 2.0)]
    assert "2.2" not in session.nodes
    session = await ran(folder, None, {"value": 2}, how=How.NEW_RUN)
    assert answers(session) == []
    assert session.nodes["3"].kept
    assert "3.1" not in session.nodes


async def test_stop_and_resume(tmp_path: Path) -> None:
    """A resume keeps what an undisturbed campaign keeps; with several at a time, the champion is the same."""
    points = [{"value": value, "held": value + value % 2} for value in (3, 5, 7, 4)]

    def found(session: Scripted) -> Any:
        return {name: (node.verdict, node.kept) for name, node in session.nodes.items()}

    expected = found(await ran(task(tmp_path / "calm", TUNE, GUARD), None, *points))
    for kind, width in (
        (e.HeldOutIntended, 1),
        (e.HeldOutAsked, 1),
        (e.JudgingEnded, 1),
        (e.GuardEnded, 1),
        (e.HeldOutIntended, 3),
        (e.HeldOutAsked, 3),
    ):
        folder = task(tmp_path / f"{kind.__name__}{width}", TUNE, GUARD)
        async with scripted(folder, None, *points, width=width) as session:
            session.stop_at(kind, 2)
            await session.run()
        first = len(session.of(e.HeldOutIntended))
        assert all(node.asking is None and node.phase is not Phase.OPEN for node in session.nodes.values())
        assert not session.accounts.holds
        session = await ran(folder, None, *points, how=How.RESUME, width=1)
        assert session.state.campaign.asked == first + len(session.of(e.HeldOutIntended))
        assert session.nodes[session.champion].params == {"value": 7, "held": 8}
        if width == 1:
            assert found(session) == expected


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
    session = await ran(folder, None, {"value": 3}, {"value": 9}, how=How.RESUME)
    assert session.nodes["1.1"].heldout.keys() == session.nodes["1"].heldout.keys()
    assert answers(session) == [("1.1", 3, True, 3.0)]
    assert (session.state.campaign.asked, session.nodes["1.1"].kept, "1.2" in session.nodes) == (3, True, False)


@pytest.mark.parametrize("lost", ["trial", "judge"])
async def test_provider_fails(tmp_path: Path, lost: str) -> None:
    """Where no chamber was to be had the attempt is free and tried again; the query is used up none the less."""
    session = await ran(task(tmp_path / "task"), failing(1, lost, after=4), {"value": 5})
    told = [(it.query, it.interrupted, it.better) for it in session.of(e.HeldOutAsked)]
    assert told == [(1, False, False), (2, True, False), (3, False, True)]
    assert (session.charged, session.nodes["1.1"].kept) == (1, True)


@pytest.mark.parametrize("fault", [{"held do": "cut"}, {"held judge": "cut"}], ids=str)
async def test_engine_is_cut(tmp_path: Path, fault: Point) -> None:
    """A chamber that is lost with its engine is nobody's fault: the attempt is refunded, with what it spent on it."""
    script = Script()
    session = await ran(task(tmp_path / "task"), script, {"value": 5, **fault}, stop=(e.AttemptRequeued, 1))
    node = session.nodes["1.1"]
    assert (node.phase, node.ending) == (Phase.QUEUED, Ending.INFRASTRUCTURE)
    assert session.of(e.HeldOutAsked)[-1].interrupted
    assert session.state.campaign.asked == 2
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
        assert len(session.state.run.ladders) == 2
        assert not session.accounts.holds


class Telling(Script):
    """A candidate that prints its held-out input and hands it on, and a judge that tells all it knows of its score."""

    scores = (0.2718281828, 3.1415926535, 5.7721566490, 5.9166079783, 9.8696044010)

    async def trial(self, guest: Guest) -> int:
        if any(item.digest == HELD for item in guest.job.inputs):
            guest.log(b"CANARY of the log\n")
            guest.out["seen.txt"] = b"CANARY of the outputs"
        return await super().trial(guest)

    async def judge(self, guest: Guest) -> int:
        if "--heldout" not in guest.job.command:
            return await super().judge(guest)
        value = json.loads(guest.files["outputs/answer.json"])["value"]
        score = self.scores[value // 2]
        guest.log(f"CANARY of the judge {score}\n".encode())
        guest.out["traces/task_1.json"] = json.dumps({"CANARY": score}).encode()
        guest.out["metrics.csv"] = f"iteration,score (higher is better)\n1,{score}\n".encode()
        result = {"score": score, "notes": f"CANARY {score}", "metrics": {"CANARY": score}, "tasks": {"CANARY": score}}
        guest.out["result.json"] = json.dumps(result).encode()
        return 1 if value == 8 else 0


async def test_exact_score_is_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """No row, file or print has a held-out score, what a candidate left there, or what the judge said of it."""
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


@dataclass
class Together(Script):
    """Which candidates had a chamber beside each other, by their realms. `points` wait until two have met."""

    running: list[str] = field(default_factory=list)
    seen: list[list[str]] = field(default_factory=list)
    met: asyncio.Event = field(default_factory=asyncio.Event)

    async def trial(self, guest: Guest) -> int:
        self.running.append(guest.job.realm)
        self.seen.append(list(self.running))
        try:
            if self.running == ["", ""]:
                self.met.set()
            if not guest.job.realm and len(self.seen) > 2:  # the baseline has nobody beside it
                await self.met.wait()
            return await super().trial(guest)
        finally:
            self.running.remove(guest.job.realm)


async def test_t83_held_out_runs_alone(tmp_path: Path) -> None:
    """Of two attempts at a time, none has a candidate's chamber while another's is on the held-out split."""
    script = Together()
    points: list[Point] = [{"value": 3 * n, "held": 3 * n} for n in range(1, 9)]
    session = await ran(task(tmp_path / "task"), script, *points, width=2)
    # Of two at a time the better one may be kept first, and the other is not asked about then.
    asked = len(answers(session))
    assert asked > len(points) // 2
    assert ["", ""] in script.seen, "two at a time"
    assert [names for names in script.seen if "heldout" in names] == [["heldout"]] * asked
