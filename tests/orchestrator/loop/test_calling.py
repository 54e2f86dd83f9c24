"""Combinations that call their members, each in a chamber of its own, on the fake backend."""

import asyncio
import itertools
import json
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.judge.guest.blastdoor_values import decode, encode
from orchestrator.loop.calling import CallingDoor
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from sandbox import Job, Unavailable
from sandbox.backends.fake.backend import Died, Guest
from tests.orchestrator.loop.script import HELD, Script, params_of
from tests.orchestrator.loop.scripted import HELDOUT, Point, Scripted, Virtual, ran, scripted, write_task, written
from tests.orchestrator.loop.test_combining import BUDGET, COMBINE, base_stage
from tests.orchestrator.loop.test_standing_still import sleeps

Known = Mapping[str, Any]
CODE = COMBINE.replace("diversity = 0\n", 'diversity = 0\nmembers = "code"\nserve = ["serve"]\n')
LIMITS = '[limits]\nwall = "4s"\ngrace = "1s"\n'


def write_both(folder: Path, *more: str, combine: str = CODE) -> Path:
    write_task(folder, *more, combine, BUDGET, limits=LIMITS)
    (folder / "combine").mkdir()
    (folder / "combine" / "params.json").write_text('{"value": 1}\n')
    return folder


@dataclass
class Calling(Script):
    """A combination calls the members that `calls` names, and adds to its own value what they answer, which is theirs
    from `serve`; `hands` is what it hands over instead, `then` how it ends. A member does as its own `served` says.
    """

    opened: list[Job] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    begun: list[Any] = field(default_factory=list)
    when_asleep: Callable[[], None] | None = None
    slept: bool = False

    async def program(self, guest: Guest) -> int:
        if guest.job.command[0] == "serve":
            self.opened.append(guest.job)
            return await self._serve(guest)
        if guest.job.command[0] == "combination":
            self.commands.append("combination")
            return await self._combine(guest)
        return await super().program(guest)

    async def _serve(self, guest: Guest) -> int:
        params = params_of(guest)
        does = params.get("served", "answers")
        while request := await guest.request():
            nonce, payload = request
            if payload[:1] == b"L":
                guest.reply(nonce, b"E" + encode(["raised", "no"]) if does == "does not load" else b"L" + encode(["f"]))
                continue
            if does == "dies":
                raise Died(1)
            if does == "sleeps" and await self._sleeps():
                await asyncio.sleep(60)
            if does == "cut":
                self.world.cut()
                await asyncio.sleep(60)
            assert decode(payload[1:])[0] == "f"
            guest.reply(nonce, b"\xff\xff" if does == "babbles" else b"V" + encode(params["value"]))
        return 0

    async def _sleeps(self) -> bool:
        """Whether it is late; with us, where we fall asleep, and only then."""
        if self.when_asleep is None:
            return not self.slept
        self.when_asleep()
        self.when_asleep, self.slept = None, True
        return True

    async def _combine(self, guest: Guest) -> int:
        params = params_of(guest)
        request = await guest.request()
        assert request
        nonce, begin = request
        self.begun.append(decode(begin[1:]))
        if params.get("then") == "dies":
            raise Died(3)
        if params.get("then") == "sleeps" and await self._sleeps():
            await asyncio.sleep(60)
        total = params["value"]
        for name in params.get("calls", ["1.3"]):
            guest.reply(nonce, b"C" + len(name).to_bytes(2, "big") + name.encode() + encode(["f", 1]))
            request = await guest.request()
            if request is None:
                return 0
            nonce, answer = request
            self.answers.append(decode(answer[1:]) if answer[:1] in b"VE" else answer)
            total += decode(answer[1:]) if answer[:1] == b"V" else 0
        if params.get("then") == "babbles":
            guest.reply(nonce, b"?")
        else:
            files = params.get("hands", {"answer.json": json.dumps({"value": total})})
            left = {name: data.encode() for name, data in files.items()} if isinstance(files, dict) else files
            guest.reply(nonce, b"F" + encode(left))
        await guest.request()
        return 0


async def stage(folder: Path, point: Known, script: Script | None = None) -> Scripted:
    """A whole stage of one combination."""
    session = await ran(folder, script or Calling(), written(point), how=How.COMBINE)
    assert session.accounts.used(Account.COMBINATION) == 1
    assert not session.accounts.holds
    return session


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """Its base stage is over."""
    folder = write_both(tmp_path)
    await base_stage(folder)
    return folder


async def test_T86_a_database_that_goes_away_before_a_member_is_called(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member is on record with its combination, whose clock runs: its chamber waits for nothing."""
    script, back = Calling(), threading.Event()

    async def on_open(job: Job) -> None:
        if job.command[0] == "combination" and not back.is_set():
            monkeypatch.setattr(session.bench.book.ledger, "append", away)
            session.bench.book.record(e.PauseSet(paused=False))
        if job.command[0] == "serve":
            back.set()

    def away(*args: Any) -> Any:
        assert back.wait(60), "the member's chamber waited for the database"
        return real(*args)

    async with scripted(folder, script, written({"value": 2}), how=How.COMBINE) as session:
        real = session.bench.book.ledger.append
        script.on_open = on_open
        await session.run()
        assert back.is_set()
        assert session.nodes["2.1"].ending is Ending.SCORED


async def test_members_are_called(tmp_path: Path) -> None:
    """In chambers of their own, without the pool, opened once each; the seconds are the combination's."""
    folder, script = write_both(tmp_path, '[inputs]\ndata = "dev/data.txt"\n'), Calling()
    await base_stage(folder)
    session = await stage(folder, {"value": 2, "calls": ["1.3", "1.4", "1.3"]}, script)
    assert session.score("2.1") == 2 + 7 + 5 + 7
    assert [it.node for it in session.state.run.pool] == script.begun[0]["members"] == ["1.3", "1.4", "1.1"]
    assert len(script.opened) == 1 + 2 + 2  # the root's, then twice since a strict score is replayed
    assert all([it.name for it in job.inputs] == ["data"] for job in script.opened)
    assert all("BLASTDOOR_MEMBERS" not in job.env for job in script.opened)


async def test_member_that_is_not_in_the_pool(folder: Path) -> None:
    """The call fails, with a line that says why; the combination may go on."""
    script = Calling()
    session = await stage(folder, {"value": 9, "calls": ["1.2", "", "1", "../1.3", "x" * 999]}, script)
    said = [it[1] for it in script.answers[1:] if isinstance(it, list)]
    assert said[:5] == ["it is not in the pool"] * 5
    assert session.nodes["2.1"].ending is Ending.SCORED


@pytest.mark.touching("members")
@pytest.mark.parametrize(
    ("served", "told"),
    [
        ("dies", "its chamber has ended"),
        ("does not load", "it does not load"),
        ("sleeps", "loading and all calls together took more than 4 s"),
    ],
)
def test_member_that_fails(tmp_path: Path, virtual: Virtual, served: str, told: str) -> None:
    """It fails its calls, and no more: others still answer, and the trial is scored."""
    folder, script = write_both(tmp_path), Calling()
    points = [written({"value": 7, "served": served}), written({"value": 5}), written({"value": 3})]
    virtual.run(ran(folder, None, *points))
    session = virtual.run(stage(folder, {"value": 2, "calls": ["1.1", "1.2", "1.1"]}, script))
    assert session.score("2.1") == 2 + 5
    said = [it[1] for it in script.answers if isinstance(it, list)]
    assert said
    assert all(told in it for it in said)


@pytest.mark.parametrize(
    ("point", "ending", "why"),
    [
        ({"value": 1, "then": "dies"}, Ending.FAILED, ""),
        ({"value": 1, "then": "sleeps"}, Ending.TIMED_OUT, "its own turns"),
        ({"value": 1, "then": "babbles"}, Ending.FAILED, "a request that nobody knows"),
        ({"value": 1, "hands": 7}, Ending.FAILED, "no set of files"),
        ({"value": 1, "hands": {"../../etc/x": "x"}}, Ending.FAILED, "a name that none may have"),
        ({"value": 1, "hands": {"/abs": "x"}}, Ending.FAILED, "a name that none may have"),
        ({"value": 1, "hands": {"a/../b": "x"}}, Ending.FAILED, "a name that none may have"),
        ({"value": 1, "hands": {}}, Ending.INVALID, "it left no output"),
    ],
)
def test_hostile_combination(tmp_path: Path, virtual: Virtual, point: Known, ending: Ending, why: str) -> None:
    """It pays for its attempt, and nothing of it reaches anybody."""
    folder = write_both(tmp_path)
    virtual.run(base_stage(folder, {"value": 3}, {"value": 7}))
    node = virtual.run(stage(folder, point)).nodes["2.1"]
    assert node.ending is ending
    assert why in node.why


@pytest.mark.parametrize("who", ["combination", "member"])
def test_t88_time_that_passed_in_our_sleep(tmp_path: Path, virtual: Virtual, who: str) -> None:
    """Nobody saw whether a combination, or a member, took too long: nobody pays, and the trial is run again."""
    folder, script = write_both(tmp_path), Calling()
    asleep: Point = {"value": 7, "served": "sleeps"} if who == "member" else {"value": 7}
    virtual.run(ran(folder, Script(), written(asleep), written({"value": 5}), written({"value": 3})))
    point: Any = {"value": 2, "calls": ["1.1"]} if who == "member" else {"value": 2, "then": "sleeps", "calls": ["1.1"]}

    async def sleepy() -> Scripted:
        async with scripted(folder, script, written(point), how=How.COMBINE) as session:
            script.when_asleep = lambda: sleeps(session, 100)
            await session.run()
        return session

    session = virtual.run(sleepy())
    (requeued,) = session.of(e.AttemptRequeued)
    assert requeued.ending is Ending.INTERRUPTED
    assert "stood still for 100 s" in requeued.why
    assert session.score("2.1") == 2 + 7
    assert session.accounts.used(Account.COMBINATION) == 1
    assert not session.accounts.holds


async def test_fault_of_ours_beside_a_member(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for the member's end: it comes out, as everywhere, and no chamber is left."""

    async def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(CallingDoor, "run_member", fail)
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        await stage(folder, {"value": 2})


async def test_no_chamber_for_a_member(folder: Path) -> None:
    """A provider's failure is nobody's fault: the attempt is refunded and goes on."""
    script, failed = Calling(), 0

    async def fail(job: Job) -> None:
        nonlocal failed
        if job.command[0] == "serve" and script.commands.count("combination") == 2 and not failed:
            failed += 1
            raise Unavailable("no room")

    script.on_open = fail
    session = await stage(folder, {"value": 2}, script)
    assert failed == 1
    assert session.nodes["2.1"].ending is Ending.SCORED
    assert [it.ending for it in session.of(e.AttemptRequeued)] == [Ending.INFRASTRUCTURE]


async def test_members_on_the_held_out_split(tmp_path: Path) -> None:
    """They get the held-out inputs there, in that split's own realm, and nowhere else."""
    folder, script = write_both(tmp_path, HELDOUT), Calling()
    await base_stage(folder)
    await ran(folder, script, written({"value": 9}), how=How.COMBINE)
    held = [any(it.digest == HELD for it in job.inputs) for job in script.opened]
    assert {True, False} == set(held)
    assert all((job.realm == "heldout") == is_held for job, is_held in zip(script.opened, held, strict=True))


@pytest.mark.usefixtures("on_disk")
async def test_killed_while_members_work(tmp_path: Path) -> None:
    """What is on disk then, as after kill -9, comes to the same end, and the slot is not lost."""
    folder, copy, intents = write_both(tmp_path / "task"), tmp_path / "copy", itertools.count(1)
    await base_stage(folder)
    async with scripted(folder, Calling(), written({"value": 2}), how=How.COMBINE) as session:
        session.when(
            e.TrialIntended, lambda _: shutil.copytree(folder, copy) if next(intents) == 2 else None, on_disk=True
        )
        await session.run()
    resumed = await ran(copy, Calling(), written({"value": 2}), how=How.RESUME)
    assert resumed.nodes["2.1"].verdict == session.nodes["2.1"].verdict
    assert resumed.accounts.used(Account.COMBINATION) == 1
    assert not resumed.accounts.holds


@pytest.mark.parametrize(
    ("combine", "told"),
    [
        (CODE.replace('serve = ["serve"]\n', ""), "combine.serve: is how a member is called"),
        (COMBINE.replace("diversity = 0\n", 'serve = ["serve"]\n'), "combine.serve: is for members that are called"),
        (CODE.replace('"code"', '"codes"'), "combine.members"),
    ],
)
async def test_bad_keys(tmp_path: Path, combine: str, told: str) -> None:
    """One line, before anything runs."""
    with pytest.raises(TaskError, match=told):
        await base_stage(write_both(tmp_path, combine=combine))


async def test_serve_that_changed(folder: Path) -> None:
    """What combinations may do is fixed when their stage begins."""
    await stage(folder, {"value": 2})
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace('["serve"]', '["another"]'))
    with pytest.raises(TaskError, match="put it back"):
        await ran(folder, Calling(), how=How.RESUME)
