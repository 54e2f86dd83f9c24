"""A combination stage: its pool is chosen, frozen and delivered, and the same loop runs combinations of it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import MemberOutputs, Role
from orchestrator.domain.verdict import Mode
from orchestrator.ledger import Fenced, Ledger
from orchestrator.loop.pool import _left_before, deliver, refuse_too_few
from orchestrator.loop.workbench import PoolFailed
from orchestrator.run_options import Flags
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.reading import ask
from orchestrator.wiring.resuming import CannotOpen, NoRoom
from orchestrator.wiring.site import Site
from sandbox import Input, Job, Refused, Unavailable
from tests.orchestrator.loop.noise import noisy, scripted_scores
from tests.orchestrator.loop.script import HELD, Script, failing
from tests.orchestrator.loop.scripted import HELDOUT, Point, Scripted, make_site, scripted, write_task, written

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5)]
COMBINE = """
[combine]
pool = 3
diversity = 0
editable = ["params.json"]
[combine.trial]
command = ["combination"]
[combine.parameters]
file = "params.json"
[combine.parameters.space]
value = {type = "int", low = 1, high = 20}
"""
BUDGET = "[budget]\ncombination = 6\n"
INPUTS = '[inputs]\ndata = "dev/data.txt"\n'


def write_both(folder: Path, *more: str) -> Path:
    write_task(folder, *more, COMBINE, BUDGET)
    (folder / "combine").mkdir()
    (folder / "combine" / "params.json").write_text('{"value": 2}\n')
    return folder


class Delivered:
    """A site that keeps what was put into its store, and what each chamber was given of it."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, bytes]] = {}
        self.given: list[tuple[str, dict[str, str]]] = []
        self.script = Script(on_open=self._opened)
        usual = make_site(self.script)

        def add_input(name: str, path: Path) -> Input:
            if name != "pool":
                return usual.add_input(name, path)
            files = {it.relative_to(path).as_posix(): it.read_bytes() for it in path.rglob("*") if it.is_file()}
            digest = f"{len(self.stored) + 2:064x}"
            self.stored[digest] = files
            return Input(name=name, digest=digest)

        self.site: Site = replace(usual, add_input=add_input)

    async def _opened(self, job: Job) -> None:
        self.given.append((job.command[0], {item.name: item.digest for item in job.inputs}))

    def pools(self, command: str, *, held: bool) -> list[dict[str, bytes]]:
        """What the chambers of a command got, on the held-out split or the other."""
        of_split = [got for name, got in self.given if name == command and (got.get("data") == HELD) == held]
        return [self.stored[got["pool"]] for got in of_split]


async def base_stage(folder: Path, *points: Point, **flags: Any) -> None:
    script = Script()
    script.gate.set()
    async with scripted(folder, script, *(points or POINTS), **flags) as session:
        await session.run()


async def test_pool_is_frozen_and_combined(tmp_path: Path) -> None:
    """The best of run 1 are frozen, and a combination is a node of run 2, judged and compared as the bases are, with
    an account of its own.
    """
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, {"value": 8}, how=How.COMBINE) as stage:
        finished = await stage.run()
        state, accounts = stage.bench.state, stage.bench.book.accounts
        (frozen,) = stage.of(e.PoolFrozen)
        assert [member.node for member in frozen.members] == ["1.3", "1.4", "1.1"]
        assert state.run.pool == frozen.members
        assert [member.commit for member in frozen.members] == [state.nodes[it].commit for it in ("1.3", "1.4", "1.1")]
        assert state.nodes["2"].ending is Ending.SCORED
        assert finished.champion == state.nodes["2.1"]
        cohorts = {state.nodes[name].verdict.cohort for name in ("2.1", "1.3") if state.nodes[name].verdict}  # type: ignore[union-attr]
        assert len(cohorts) == 1
        assert (accounts.used(Account.ATTEMPTS), accounts.used(Account.COMBINATION)) == (4, 2)


async def test_what_a_combination_gets(tmp_path: Path) -> None:
    """Every chamber of a combination has what the members left, by their names; no judge has it, and no scores and no
    code of theirs are in it.
    """
    folder, seen = write_both(tmp_path / "task", INPUTS), Delivered()
    await base_stage(folder)
    async with scripted(folder, seen.script, {"value": 9}, how=How.COMBINE, site=seen.site) as stage:
        await stage.run()
    pools = seen.pools("combination", held=False)
    assert len(pools) >= 2
    for pool in pools:
        assert json.loads(pool["members.json"]) == {"members": ["1.3", "1.4", "1.1"]}
        assert set(pool) == {"members.json", "1.3/answer.json", "1.4/answer.json", "1.1/answer.json"}
        assert json.loads(pool["1.3/answer.json"]) == {"value": 7}
    assert all("pool" not in got for name, got in seen.given if name == "judge")


async def test_held_out_split_of_a_pool(tmp_path: Path) -> None:
    """Members are run once on the held-out data, for the combination's account; what they left there goes to
    held-out trials alone, whose chamber differs in nothing else from one that counts.
    """
    folder, seen = write_both(tmp_path / "task", HELDOUT), Delivered()
    points = [{**point, "held": int(point["value"]) * 10} for point in POINTS]
    await base_stage(folder, *points)
    async with scripted(folder, seen.script, {"value": 9, "held": 99}, how=How.COMBINE, site=seen.site) as stage:
        await stage.run()
        assert stage.bench.state.nodes["2.1"].kept
        ended = stage.of(e.MemberEnded)
        assert [(it.node, it.split) for it in ended] == [("1.3", "heldout"), ("1.4", "heldout"), ("1.1", "heldout")]
        assert stage.bench.book.accounts.used(Account.COMBINATION) == 3 + 1
        stored = {it.outputs for it in ended}
        trials = stage.bench.state.trials.values()
        assert not stored & {it.outputs for it in trials if it.node.startswith("2")}
        jobs = stage.bench.jobs
        assert jobs.pool
        usual, held = (jobs.trial(mode) for mode in (Mode.SUBMIT, Mode.HELDOUT))
        assert [it.name for it in usual.inputs] == [it.name for it in held.inputs] == ["data", "pool"]
        assert usual.env == held.env
    (held_pool, *more), dev = seen.pools("combination", held=True), seen.pools("combination", held=False)
    assert all(pool == held_pool for pool in more)
    assert all(pool["members.json"] == held_pool["members.json"] for pool in dev)
    assert {*held_pool} == {*dev[0]}
    assert [name for name, got in seen.given if name == "trial" and got["data"] == HELD] == ["trial"] * 3


async def test_member_that_fails_elsewhere(tmp_path: Path) -> None:
    """One that leaves nothing on the held-out data is no member; the next one takes its place."""
    folder = write_both(tmp_path / "task", HELDOUT)
    await base_stage(folder, {"value": 3}, {"value": 1}, {"value": 7, "held do": "failed"}, {"value": 5})
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
        # 1.3 was refused on the held-out split already, where it failed.
        assert [member.node for member in stage.bench.state.run.pool] == ["1.4", "1.1", "1.2"]


async def test_what_minimising_left_is_no_member(tmp_path: Path) -> None:
    """It is a member's own solution once more, whatever it leaves: the pool has the champion itself, which is what
    combinations are compared with.
    """
    folder = write_both(tmp_path / "task")
    acts = [written({"value": 7, "idle": 4}), written({"value": 3}), written({"value": 5})]
    async with scripted(folder, None, *acts, attempts=3, minimise=True) as session:
        await session.run()
        assert session.bench.state.nodes["1.1.1"].kept
        assert session.bench.state.nodes["1.1.1"].role is Role.MINIMISED
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
        assert [member.node for member in stage.bench.state.run.pool] == ["1.1", "1.3", "1.2"]


async def test_merit_where_scores_are_noisy(tmp_path: Path) -> None:
    """By the repeats, as everywhere: a node whose first run alone was lucky does not come first."""
    folder, script = write_both(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(folder, script, {"value": 3}, {"value": 7}, {"value": 4}, attempts=3) as session:
        script.noise = scripted_scores(session.bench.state, {"1.3": (8.0, 0.0)})
        await session.run()
        state = session.bench.state
        assert state.nodes["1.3"].verdict
        assert state.nodes["1.3"].verdict.metrics["score"] > 7
        assert not state.nodes["1.3"].kept
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE, attempts=1) as stage:
        await stage.run()
        assert [member.node for member in stage.bench.state.run.pool] == ["1.2", "1.3", "1.1"]


async def test_another_stage_over_the_same_base(tmp_path: Path) -> None:
    """What members left on the same held-out data for an earlier stage is there: they are not run, nor paid for, once
    more. What they left on other data is no help.
    """
    folder = write_both(tmp_path / "task", HELDOUT)
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as first:
        await first.run()
        assert len(first.of(e.MemberEnded)) == 3
        pool = first.bench.state.run.pool
    async with scripted(folder, None, {"value": 8}, how=How.COMBINE) as second:
        state = second.bench.state
        assert _left_before(state, "1.3", "heldout").outputs
        other = state.copy()
        other.set_run(2, digests={**state.runs["2"].digests, "heldout_inputs": "other data"})
        assert _left_before(other, "1.3", "heldout") == _left_before(state, "1.3", "tune") == MemberOutputs()
        used = second.bench.book.accounts.used(Account.COMBINATION)
        await second.run()
        assert second.of(e.MemberEnded) == []
        assert second.bench.state.run.pool == pool
        assert second.bench.book.accounts.used(Account.COMBINATION) == used + 1
        assert second.bench.state.nodes["3.1"].ending is Ending.SCORED


async def test_never_in_a_pool(tmp_path: Path) -> None:
    """What tampered, failed, is no solution, is too good to be believed or was refused by a guard is no member."""
    guard = '[[guards]]\nname = "sound"\ncommand = ["guard"]\n'
    metric = '[[metrics]]\nname = "score"\nceiling = 10\n'
    folder = write_both(tmp_path / "task", metric, guard)
    bad: list[Point] = [
        {"value": 8, "do": "tampered"},
        {"value": 8, "do": "failed"},
        {"value": 8, "judge": "no solution"},
        {"value": 12},
        {"value": 9},
    ]
    script = Script(unsound=(9,))
    async with scripted(folder, script, *bad, {"value": 3}, {"value": 4}) as session:
        await session.run()
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
        assert [member.node for member in stage.bench.state.run.pool] == ["1.7", "1.6", "1"]


@pytest.mark.parametrize(
    ("points", "told"),
    [
        ([{"value": 8, "do": "failed"}], "has one valid member"),
        ([{"value": 0}], "has one valid member"),
    ],
)
async def test_too_few_members(tmp_path: Path, points: list[Point], told: str) -> None:
    """A pool of one is refused with a line, before anything is written; what is there stays as it was. What leaves the
    very same as another is no second one.
    """
    folder = write_both(tmp_path / "task")
    async with scripted(folder, None, *points) as session:
        await session.run()
        head = session.bench.book.ledger.head()
    with pytest.raises(CannotOpen, match=rf"a pool needs 2 members, and run 1 {told}.*resume --attempts"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE):
            pass
    async with scripted(folder, None, {"value": 3}, how=How.RESUME, attempts=2) as session:
        assert session.bench.book.ledger.read(after=head.seq)
        await session.run()


async def test_no_valid_member(tmp_path: Path) -> None:
    """Where no node is a solution there is nothing to combine."""
    folder = write_both(tmp_path / "task")
    (folder / "workspace" / "params.json").write_text('{"value": 0, "judge": "no solution"}\n')
    with pytest.raises(Exception, match="baseline"):
        await base_stage(folder)
    with pytest.raises(CannotOpen, match="run 1 has no valid member"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE):
            pass


async def test_members_of_other_cohorts(tmp_path: Path) -> None:
    """Only what was measured in the run's present cohort is compared, and so combined; the line tells of the others."""
    folder = write_both(tmp_path / "task", '[[metrics]]\nname = "score"\nbinds = ["cpu"]\n')
    script = Script()
    async with scripted(folder, script, *POINTS) as session:
        session.when(e.AttemptEnded, lambda it: setattr(script, "cpu", "new") if it.node == "1.2" else None)
        await session.run()
        measured = [it.id for it in session.bench.state.nodes.values() if session.bench.state.run.cohort in it.verdicts]
        assert "1.2" not in measured
        others = len(session.bench.state.nodes) - len(measured)
        told = (
            rf"has one valid member; {others} more were measured in other cohorts, .*; try more .*resume --attempts\)$"
        )
        with pytest.raises(PoolFailed, match=told):
            refuse_too_few(session.bench.state, session.bench.state.run, 1)
    async with scripted(folder, Script(cpu="new"), {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
        assert {member.node for member in stage.bench.state.run.pool} <= set(measured)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('[inputs]\npool = "dev"\n', r"inputs\.pool: is where combinations find their pool"),
        ("", r"combine\.workspace: .* is not a folder"),
    ],
)
async def test_task_that_cannot_combine(tmp_path: Path, more: str, told: str) -> None:
    """What [combine] lacks is said with its key when the task is read."""
    folder = write_task(tmp_path / "task", more, COMBINE)
    with pytest.raises(TaskError, match=told):
        await base_stage(folder)


@pytest.mark.parametrize("mode", ["relay", "shared"])
async def test_judges_without_outputs(tmp_path: Path, mode: str) -> None:
    """A judge that gets no outputs of candidates leaves nothing to combine, and that is said in one line."""
    folder = write_both(tmp_path / "task")
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace('command = ["judge"]', f'command = ["judge"]\nmode = "{mode}"'))
    with pytest.raises(TaskError, match=rf'combine: .*judge\.mode = "{mode}" the judge gets no outputs'):
        await base_stage(folder)


async def test_no_attempts_for_it(tmp_path: Path) -> None:
    """Without budget.combination and --attempts there is nothing that the stage could do; neither is the base's."""
    folder = write_both(tmp_path / "task")
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace("combination = 6", "attempts = 4"))
    await base_stage(folder)
    with pytest.raises(TaskError, match=r"budget\.combination is 0"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE):
            pass
    with pytest.raises(TaskError, match=r"budget\.combination is 0"):
        async with scripted(folder, None, {"value": 9}, how=How.NEW_RUN, combine=True):
            pass
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE, attempts=1) as stage:
        assert (await stage.run()).reason == "1 of 1 attempt is used"


async def test_what_of_the_base_stage_holds(tmp_path: Path) -> None:
    """Caps, place, width, seed and whether a person is asked are the campaign's, also where the stage is begun by
    another command, or by a resume. Attempts, patience and the way to search are the stage's own, and a flag of its own
    wins.
    """
    folder = write_both(tmp_path / "task")
    said = {"usd": 5.0, "wall": 3600.0, "seconds": 900.0, "tokens": 7, "tunes": 3, "minimisation": 9, "minimise": True}
    await base_stage(folder, **said, seed=4, width=2, ask=False, patience=30, attempts=9, meta="gradient", depth=3)
    async with open_campaign(folder, make_site(Script()), how=How.COMBINE, flags=Flags(usd=6.0)) as stage:
        options = stage.options
        assert {name: options[name] for name in said} == {**said, "usd": 6.0}
        assert (options["seed"], options["width"], options["ask"]) == (4, 2, False)
        assert {options.sources[name] for name in (*said, "seed", "width", "ask")} == {"campaign", "flag"}
        assert (options["attempts"], options.sources["attempts"]) == (6, "task")
        assert (options["patience"], options["meta"], options["depth"]) == (None, "off", None)


async def test_no_room_for_members(tmp_path: Path) -> None:
    """Where less is left than the members need on the held-out data, a line names the cap, and a resume goes on."""
    folder = write_both(tmp_path / "task", HELDOUT)
    await base_stage(folder)
    with pytest.raises(PoolFailed, match=r"no room to run 1\.1 for the pool.*0 combination attempts left; raise"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE, attempts=2) as stage:
            await stage.run()
    async with scripted(folder, None, {"value": 9}, how=How.RESUME, attempts=4) as stage:
        await stage.run()
        assert len(stage.of(e.MemberEnded)) == 1
        assert stage.bench.state.nodes["2.1"].ending is Ending.SCORED


@pytest.mark.parametrize(
    ("queries", "caps", "told"),
    [
        (100, {"wall": "1ms"}, r"\d+s of 0s have passed"),
        (100, {"seconds": 1}, r"seconds: .* needed, .* left; raise the cap to go on"),
        (5, {}, r"asked 4 of 5 times \(heldout.queries\), and a stage asks for its baseline and for what it keeps"),
    ],
)
async def test_no_room_for_a_stage(tmp_path: Path, queries: int, caps: dict[str, Any], told: str) -> None:
    """Where the caps that both stages share leave nothing, the stage is not begun: the base stage stays what is worked
    on, with its champion and what is open in it.
    """
    heldout = HELDOUT.replace("step = 1", f"step = 1\nqueries = {queries}")
    folder = write_both(tmp_path / "task", heldout)
    points: list[Point] = [{"value": value, "held": value * 10} for value in (3, 1, 7, 9, 5)]
    async with scripted(folder, None, *points) as session:
        session.stop_at(e.AttemptOpened, 6)
        await session.run()
        (queued,) = session.bench.state.unfinished
    with pytest.raises(NoRoom, match=f"combinations are not begun: .*{told}"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE, **caps):
            pass
    async with scripted(folder, None, *points, how=How.RESUME) as session:
        state = session.bench.state
        assert (state.campaign.run, list(state.unfinished)) == (1, [queued])
        assert state.champion() == state.nodes["1.4"]


async def test_a_candidate_that_waits_for_a_person(tmp_path: Path) -> None:
    """A stage would cancel what was found better and waits for a word, so it is not begun before that is said."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    points: list[Point] = [*POINTS, {"value": 50}]
    async with scripted(folder, None, *points, how=How.RESUME, ask=True, attempts=len(points)) as session:
        session.stop_at(e.PromotionAsked, 1)
        await session.run()
        (waiting,) = session.bench.state.unfinished
    told = rf"combinations are not begun: {waiting} waits for your word; `accept {waiting}` or `decline {waiting}`"
    with pytest.raises(NoRoom, match=told):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE):
            pass
    ask(folder, "accept", {"node": waiting})
    async with scripted(folder, None, *points, how=How.RESUME) as session:
        await session.run()
        assert session.bench.state.champion() == session.bench.state.nodes[waiting]
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE, ask=False) as stage:
        await stage.run()
        assert waiting in [member.node for member in stage.bench.state.run.pool]


async def test_provider_that_fails(tmp_path: Path) -> None:
    """A chamber that cannot be had for a member costs no slot; the stage ends, and a resume goes on with it."""
    folder = write_both(tmp_path / "task", HELDOUT)
    await base_stage(folder)
    with pytest.raises(Unavailable, match="resume goes on"):
        async with scripted(folder, failing(1), {"value": 9}, how=How.COMBINE) as stage:
            await stage.run()
    async with scripted(folder, None, {"value": 9}, how=How.RESUME) as stage:
        assert stage.bench.book.accounts.used(Account.COMBINATION) == 0
        await stage.run()
        assert len(stage.bench.state.run.pool) == 3


def _said(session: Scripted) -> tuple[Any, ...]:
    state, accounts = session.bench.state, session.bench.book.accounts
    pool = [(it.node, sorted(it.outputs.items())) for it in state.run.pool]
    champion = state.champion()
    used = (accounts.used(Account.ATTEMPTS), accounts.used(Account.COMBINATION))
    return pool, champion.id if champion else None, used, sorted(state.nodes), dict(accounts.holds)


@pytest.mark.usefixtures("on_disk")
async def test_killed_at_each_kind_of_event(tmp_path: Path) -> None:
    """A stage that dies after an event of each kind, its ledger taken from it, comes to the same pool, champion and
    accounts once it is resumed.
    """
    base, calm = write_both(tmp_path / "base", HELDOUT), tmp_path / "calm"
    await base_stage(base)
    shutil.copytree(base, calm)
    points: list[Point] = [{"value": 9}, {"value": 8}]
    async with scripted(calm, None, *points, how=How.COMBINE) as stage:
        await stage.run()
        expected, numbers = _said(stage), {it.kind: at for at, it in enumerate(stage.events, 1)}
    for kind in ("member intended", "member ended", "pool frozen", "trial ended"):
        number = numbers[kind]
        folder = shutil.copytree(base, tmp_path / str(number))
        async with scripted(folder, None, *points, how=How.COMBINE) as stage:
            left = number

            def die(_: e.Event, __: str, stage: Scripted = stage) -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    with Ledger.open(stage.bench.book.ledger.where) as other:
                        other.seize("another")

            stage.bench.book.observers.append(die)
            with pytest.raises(Fenced):
                await stage.run()
        async with scripted(folder, None, *points, how=How.RESUME) as stage:
            await stage.run()
            assert _said(stage) == expected, kind


async def test_stopped_while_a_member_runs(tmp_path: Path) -> None:
    """Ctrl-C ends a member's chamber, takes no slot for it, and a resume runs it again."""
    folder = write_both(tmp_path / "task", HELDOUT)
    await base_stage(folder, *(({**point, "held do": "wait"}) for point in POINTS))
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        stage.stop_at(e.MemberIntended, 1)
        assert (await stage.run()).reason == "Ctrl-C"
        (ended,) = stage.of(e.MemberEnded)
        assert ended.interrupted
        assert not stage.bench.book.accounts.holds
        assert stage.bench.book.accounts.used(Account.COMBINATION) == 0


async def test_pool_is_never_let_go(tmp_path: Path) -> None:
    """What members left stays, whatever the budget for outputs says; that of others goes."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder, *({**point, "leaves": 3000} for point in POINTS))
    wide = [{"value": value, "leaves": 3000} for value in (3, 4, 5)]
    async with scripted(folder, None, *wide, how=How.COMBINE, artifacts=9_000) as stage:
        await stage.run()
        assert stage.of(e.OutputsLetGo)
        for member in stage.bench.state.run.pool:
            assert stage.bench.artifacts.get_files(member.outputs["submit"])


async def test_outputs_that_were_let_go(tmp_path: Path) -> None:
    """A member whose outputs were let go is run again on the development data, for one slot."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder, *({**point, "leaves": 3000} for point in POINTS), artifacts=9_000)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        assert any(it.let_go for it in stage.bench.state.trials.values())
        await stage.run()
        again = stage.of(e.MemberEnded)
        assert [it.split for it in again] == ["submit"] * len(again) != []
        assert stage.bench.book.accounts.used(Account.COMBINATION) == len(again) + 1


async def test_hostile_names(tmp_path: Path) -> None:
    """A name that leaves its folder is refused again when it becomes an input, though no harvest lets it in."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
        bench, run = stage.bench, stage.bench.state.run
        for name in ("../../escape", "/escape", "a/../../escape"):
            evil = bench.artifacts.keep_files({name: b"x"}).digest
            members = (run.pool[0].model_copy(update={"outputs": {"submit": evil}}),)
            with pytest.raises(Refused, match="unsafe"):
                deliver(bench.artifacts, members, bench.jobs, folder, lambda *_: Input(name="pool", digest="0" * 64))
        assert not list(folder.rglob("escape"))


async def test_stage_after_a_changed_judge(tmp_path: Path) -> None:
    """A pool is not combined under another judge than it was chosen by; [combine] itself may come later."""
    folder = write_task(tmp_path / "task")
    await base_stage(folder)
    file = folder / "blastdoor.toml"
    with pytest.raises(TaskError, match="add \\[combine\\]"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE):
            pass
    file.write_text(file.read_text() + COMBINE + BUDGET)
    (folder / "combine").mkdir()
    (folder / "combine" / "params.json").write_text('{"value": 2}\n')
    (folder / "judge" / "judge.txt").write_text("another\n")
    with pytest.raises(CannotOpen, match="the files of judge"):
        async with scripted(folder, None, {"value": 9}, how=How.COMBINE):
            pass
    (folder / "judge" / "judge.txt").write_text("one that is scripted\n")
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
        assert stage.bench.state.nodes["2.1"].kept


async def test_a_run_that_would_begin_with_a_combination(tmp_path: Path) -> None:
    """Its files are of another workspace: a line names a node of the base stage, and nothing is begun."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
    for start in ("best", "2"):
        with pytest.raises(CannotOpen, match=r"is a combination, .* begin with a base, like 1\.3, the best of run 1"):
            async with scripted(folder, None, {"value": 9}, how=How.NEW_RUN, start=start):
                pass
    async with scripted(folder, None, {"value": 9}, how=How.NEW_RUN, start="1.3") as session:
        assert session.bench.state.campaign.run == 3


async def test_a_stage_whose_workspace_changed(tmp_path: Path) -> None:
    """For instance by `apply`. A new run would be one of the base stage, so the line names `combine`."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
    (folder / "combine" / "params.json").write_text('{"value": 9}\n')
    with pytest.raises(CannotOpen, match=r"run 2 began .*put it back (.*), or use `combine`"):
        async with scripted(folder, None, {"value": 9}, how=How.RESUME):
            pass
    async with scripted(folder, None, {"value": 8}, how=How.COMBINE) as stage:
        assert stage.bench.state.campaign.run == 3


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("pool = 3", "pool = 2", r"\(statement or combine\.pool\)"),
        ('command = ["combination"]', 'command = ["other"]', r"\(combine\.trial\.command\)"),
    ],
)
async def test_a_stage_whose_section_changed(tmp_path: Path, old: str, new: str, told: str) -> None:
    """The line names the keys as the task file has them."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(CannotOpen, match=f"the task changed since run 2 began {told}"):
        async with scripted(folder, None, {"value": 9}, how=How.RESUME):
            pass


async def test_winner_is_taken_apart_with_its_pool(tmp_path: Path) -> None:
    """A frozen pool is there as soon as the campaign is opened, also for those that open it without a search."""
    folder = write_both(tmp_path / "task")
    await base_stage(folder)
    async with scripted(folder, None, {"value": 9}, how=How.COMBINE) as stage:
        await stage.run()
    async with scripted(folder, None, {"value": 9}, how=How.RESUME) as stage:
        assert [it.name for it in stage.bench.jobs.trial(Mode.SUBMIT).inputs] == ["pool"]
