"""A combination stage: its pool is chosen, frozen and delivered, and the same loop runs combinations of it."""

import json
import os
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
from orchestrator.loop.pool import deliver, left_before, refuse_too_few
from orchestrator.loop.workbench import BaselineFailed, PoolFailed
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
from tests.orchestrator.loop.scripted import HELDOUT, Point, Scripted, make_site, ran, scripted, write_task, written

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
    await ran(folder, script, *(points or POINTS), **flags)


async def stage(folder: Path, *points: Point, script: Script | None = None, **flags: Any) -> Scripted:
    """A whole stage of combinations."""
    return await ran(folder, script, *(points or [{"value": 9}]), how=How.COMBINE, **flags)


async def begin(folder: Path, how: How = How.COMBINE, **flags: Any) -> None:
    """Open it, and do nothing."""
    async with scripted(folder, None, {"value": 9}, how=how, **flags):
        pass


def pool(session: Scripted) -> list[str]:
    return [member.node for member in session.state.run.pool]


@pytest.fixture
def both(tmp_path: Path) -> Path:
    return write_both(tmp_path / "task")


@pytest.fixture
def with_heldout(tmp_path: Path) -> Path:
    return write_both(tmp_path / "task", HELDOUT)


async def test_pool_is_frozen_and_combined(both: Path) -> None:
    """A combination is a node of run 2, compared as the bases are; the pool is there again after a resume."""
    await base_stage(both)
    session = await stage(both, {"value": 9}, {"value": 8})
    (frozen,) = session.of(e.PoolFrozen)
    assert [(it.node, it.commit) for it in frozen.members] == [
        (name, session.nodes[name].commit) for name in ("1.3", "1.4", "1.1")
    ]
    assert session.state.run.pool == frozen.members
    assert (session.nodes["2"].ending, session.champion) == (Ending.SCORED, "2.1")
    verdicts = [session.nodes[name].verdict for name in ("2.1", "1.3")]
    assert len({it.cohort for it in verdicts if it}) == 1
    assert (session.accounts.used(Account.ATTEMPTS), session.accounts.used(Account.COMBINATION)) == (4, 2)
    async with scripted(both, None, {"value": 9}, how=How.RESUME) as session:
        assert [it.name for it in session.bench.jobs.trial(Mode.SUBMIT).inputs] == ["pool"]


async def test_what_a_combination_gets(tmp_path: Path) -> None:
    """Its chambers have what the members left, without scores and code; no judge has it."""
    folder, seen = write_both(tmp_path / "task", INPUTS), Delivered()
    await base_stage(folder)
    await stage(folder, script=seen.script, site=seen.site)
    pools = seen.pools("combination", held=False)
    assert len(pools) >= 2
    for each in pools:
        assert json.loads(each["members.json"]) == {"members": ["1.3", "1.4", "1.1"]}
        assert set(each) == {"members.json", "1.3/answer.json", "1.4/answer.json", "1.1/answer.json"}
        assert json.loads(each["1.3/answer.json"]) == {"value": 7}
    assert all("pool" not in got for name, got in seen.given if name == "judge")


async def test_held_out_split_of_a_pool(with_heldout: Path) -> None:
    """Members run there once, for the combination's account; what they left goes to held-out trials alone."""
    seen = Delivered()
    await base_stage(with_heldout, *({**point, "held": int(point["value"]) * 10} for point in POINTS))
    session = await stage(with_heldout, {"value": 9, "held": 99}, script=seen.script, site=seen.site)
    assert session.nodes["2.1"].kept
    ended = session.of(e.MemberEnded)
    assert [(it.node, it.split) for it in ended] == [("1.3", "heldout"), ("1.4", "heldout"), ("1.1", "heldout")]
    assert session.accounts.used(Account.COMBINATION) == 3 + 1
    left = {it.outputs for it in session.state.trials.values() if it.node.startswith("2")}
    assert not {it.outputs for it in ended} & left
    jobs = session.bench.jobs
    assert jobs.pool
    usual, held = (jobs.trial(mode) for mode in (Mode.SUBMIT, Mode.HELDOUT))
    assert [it.name for it in usual.inputs] == [it.name for it in held.inputs] == ["data", "pool"]
    assert usual.env == held.env
    (held_pool, *more), dev = seen.pools("combination", held=True), seen.pools("combination", held=False)
    assert all(each == held_pool for each in more)
    assert all(each["members.json"] == held_pool["members.json"] for each in dev)
    assert {*held_pool} == {*dev[0]}
    assert [name for name, got in seen.given if name == "trial" and got["data"] == HELD] == ["trial"] * 3


async def test_member_that_fails_elsewhere(with_heldout: Path) -> None:
    """One that leaves nothing on the held-out data is no member; the next one takes its place."""
    await base_stage(with_heldout, {"value": 3}, {"value": 1}, {"value": 7, "held do": "failed"}, {"value": 5})
    # 1.3 was refused on the held-out split already, where it failed.
    assert pool(await stage(with_heldout)) == ["1.4", "1.1", "1.2"]


async def test_what_minimising_left_is_no_member(both: Path) -> None:
    """It is a member's own solution once more: the pool has the champion itself."""
    acts = [written({"value": 7, "idle": 4}), written({"value": 3}), written({"value": 5})]
    base = await ran(both, None, *acts, attempts=3, minimise=True)
    assert (base.nodes["1.1.1"].kept, base.nodes["1.1.1"].role) == (True, Role.MINIMISED)
    assert pool(await stage(both)) == ["1.1", "1.3", "1.2"]


async def test_merit_where_scores_are_noisy(tmp_path: Path) -> None:
    """By the repeats, as everywhere: a node whose first run alone was lucky does not come first."""
    folder, script = write_both(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(folder, script, {"value": 3}, {"value": 7}, {"value": 4}, attempts=3) as base:
        script.noise = scripted_scores(base.state, {"1.3": (8.0, 0.0)})
        await base.run()
    assert base.score("1.3") > 7
    assert not base.nodes["1.3"].kept
    assert pool(await stage(folder, attempts=1)) == ["1.2", "1.3", "1.1"]


async def test_another_stage_over_the_same_base(with_heldout: Path) -> None:
    """What members left on the same held-out data is not paid for again; on other data it is no help."""
    await base_stage(with_heldout)
    first = await stage(with_heldout)
    assert len(first.of(e.MemberEnded)) == 3
    async with scripted(with_heldout, None, {"value": 8}, how=How.COMBINE) as second:
        state, used = second.state, second.accounts.used(Account.COMBINATION)
        assert left_before(state, "1.3", "heldout").outputs
        other = state.copy()
        other.set_run(2, digests={**state.runs["2"].digests, "heldout_inputs": "other data"})
        assert left_before(other, "1.3", "heldout") == left_before(state, "1.3", "tune") == MemberOutputs()
        await second.run()
    assert (second.of(e.MemberEnded), second.nodes["3.1"].ending) == ([], Ending.SCORED)
    assert second.state.run.pool == first.state.runs["2"].pool
    assert second.accounts.used(Account.COMBINATION) == used + 1


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
    await ran(folder, Script(unsound=(9,)), *bad, {"value": 3}, {"value": 4})
    assert pool(await stage(folder)) == ["1.7", "1.6", "1"]


@pytest.mark.parametrize("point", [{"value": 8, "do": "failed"}, {"value": 0}], ids=str)
async def test_too_few_members(both: Path, point: Point) -> None:
    """A pool of one is refused before anything is written; what leaves the same as another is no second one."""
    head = (await ran(both, None, point)).bench.book.ledger.head()
    with pytest.raises(CannotOpen, match=r"a pool needs 2 members, and run 1 has one valid member.*resume --attempts"):
        await begin(both)
    async with scripted(both, None, {"value": 3}, how=How.RESUME, attempts=2) as session:
        assert session.bench.book.ledger.read(after=head.seq)
        await session.run()


async def test_no_valid_member(both: Path) -> None:
    """Where no node is a solution there is nothing to combine."""
    (both / "workspace" / "params.json").write_text('{"value": 0, "judge": "no solution"}\n')
    with pytest.raises(BaselineFailed, match="baseline"):
        await base_stage(both)
    with pytest.raises(CannotOpen, match="run 1 has no valid member"):
        await begin(both)


async def test_members_of_other_cohorts(tmp_path: Path) -> None:
    """Only what was measured in the run's present cohort is compared, and so combined; the line tells of the others."""
    folder = write_both(tmp_path / "task", '[[metrics]]\nname = "score"\nbinds = ["cpu"]\n')
    script = Script()
    async with scripted(folder, script, *POINTS) as base:
        base.when(e.AttemptEnded, lambda it: setattr(script, "cpu", "new") if it.node == "1.2" else None)
        await base.run()
    measured = [it.id for it in base.nodes.values() if base.state.run.cohort in it.verdicts]
    assert "1.2" not in measured
    others = len(base.nodes) - len(measured)
    told = rf"has one valid member; {others} more were measured in other cohorts, .*; try more .*resume --attempts\)$"
    with pytest.raises(PoolFailed, match=told):
        refuse_too_few(base.state, base.state.run, 1)
    assert set(pool(await stage(folder, script=Script(cpu="new")))) <= set(measured)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[combine]\n", '[inputs]\npool = "dev"\n[combine]\n', r"inputs\.pool: is where combinations find their pool"),
        ("[combine]\n", '[combine]\nworkspace = "none"\n', r"combine\.workspace: .* is not a folder"),
        ('["judge"]', '["judge"]\nmode = "relay"', r'combine: .*judge\.mode = "relay" the judge gets no outputs'),
        ('["judge"]', '["judge"]\nmode = "shared"', r'combine: .*judge\.mode = "shared" the judge gets no outputs'),
    ],
)
async def test_task_that_cannot_combine(both: Path, old: str, new: str, told: str) -> None:
    """What [combine] lacks is said with its key when the task is read."""
    change(both, old, new)
    with pytest.raises(TaskError, match=told):
        await begin(both, How.START)


def change(folder: Path, old: str, new: str) -> None:
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace(old, new))


async def test_no_attempts_for_it(both: Path) -> None:
    """Without budget.combination and --attempts there is nothing that the stage could do; neither is the base's."""
    change(both, "combination = 6", "attempts = 4")
    await base_stage(both)
    for how, flags in ((How.COMBINE, {}), (How.NEW_RUN, {"combine": True})):
        with pytest.raises(TaskError, match=r"budget\.combination is 0"):
            await begin(both, how, **flags)
    assert (await stage(both, attempts=1)).reason == "1 of 1 attempt is used"


async def test_what_of_the_base_stage_holds(both: Path) -> None:
    """Caps, place, width, seed and whether a person is asked are the campaign's, also where the stage is begun by
    another command, or by a resume. Attempts, patience and the way to search are the stage's own, and a flag of its own
    wins.
    """
    said = {"usd": 5.0, "wall": 3600.0, "seconds": 900.0, "tokens": 7, "tunes": 3, "minimisation": 9, "minimise": True}
    await base_stage(both, **said, seed=4, width=2, ask=False, patience=30, attempts=9, meta="gradient", depth=3)
    async with open_campaign(both, make_site(Script()), how=How.COMBINE, flags=Flags(usd=6.0)) as opened:
        options = opened.options
        assert {name: options[name] for name in said} == {**said, "usd": 6.0}
        assert (options["seed"], options["width"], options["ask"]) == (4, 2, False)
        assert {options.sources[name] for name in (*said, "seed", "width", "ask")} == {"campaign", "flag"}
        assert (options["attempts"], options.sources["attempts"]) == (6, "task")
        assert (options["patience"], options["meta"], options["depth"]) == (None, "off", None)


async def test_no_room_for_members(with_heldout: Path) -> None:
    """Where less is left than the members need on the held-out data, a line names the cap, and a resume goes on."""
    await base_stage(with_heldout)
    with pytest.raises(PoolFailed, match=r"no room to run 1\.1 for the pool.*0 combination attempts left; raise"):
        await stage(with_heldout, attempts=2)
    session = await ran(with_heldout, None, {"value": 9}, how=How.RESUME, attempts=4)
    assert (len(session.of(e.MemberEnded)), session.nodes["2.1"].ending) == (1, Ending.SCORED)


async def test_no_room_for_a_stage(tmp_path: Path) -> None:
    """Where the shared caps leave nothing it is not begun, and the base stage stays what is worked on."""
    folder = write_both(tmp_path / "task", HELDOUT.replace("step = 1", "step = 1\nqueries = 5"))
    points: list[Point] = [{"value": value, "held": value * 10} for value in (3, 1, 7, 9, 5)]
    session = await ran(folder, None, *points, stop=(e.AttemptOpened, 6))
    (queued,) = session.state.unfinished
    for caps, told in (
        ({"wall": "1ms"}, r"\d+s of 0s have passed"),
        ({"seconds": 1}, r"seconds: .* needed, .* left; raise the cap to go on"),
        ({}, r"asked 4 of 5 times \(heldout.queries\), and a stage asks for its baseline and for what it keeps"),
    ):
        with pytest.raises(NoRoom, match=f"combinations are not begun: .*{told}"):
            await begin(folder, **caps)
    async with scripted(folder, None, *points, how=How.RESUME) as session:
        assert (session.state.campaign.run, list(session.state.unfinished), session.champion) == (1, [queued], "1.4")


async def test_a_candidate_that_waits_for_a_person(both: Path) -> None:
    """A stage would cancel what was found better and waits for a word, so it is not begun before that is said."""
    await base_stage(both)
    points: list[Point] = [*POINTS, {"value": 50}]
    session = await ran(both, None, *points, how=How.RESUME, ask=True, attempts=len(points), stop=(e.PromotionAsked, 1))
    (waiting,) = session.state.unfinished
    told = rf"combinations are not begun: {waiting} waits for your word; `accept {waiting}` or `decline {waiting}`"
    with pytest.raises(NoRoom, match=told):
        await begin(both)
    ask(both, "accept", {"node": waiting})
    assert (await ran(both, None, *points, how=How.RESUME)).champion == waiting
    assert waiting in pool(await stage(both, ask=False))


async def test_provider_that_fails(with_heldout: Path) -> None:
    """A chamber that cannot be had for a member costs no slot; the stage ends, and a resume goes on with it."""
    await base_stage(with_heldout)
    with pytest.raises(Unavailable, match="resume goes on"):
        await stage(with_heldout, script=failing(1))
    async with scripted(with_heldout, None, {"value": 9}, how=How.RESUME) as session:
        assert session.accounts.used(Account.COMBINATION) == 0
        await session.run()
        assert len(pool(session)) == 3


def _said(session: Scripted) -> tuple[Any, ...]:
    outputs = [(it.node, sorted(it.outputs.items())) for it in session.state.run.pool]
    used = (session.accounts.used(Account.ATTEMPTS), session.accounts.used(Account.COMBINATION))
    return outputs, session.champion, used, sorted(session.nodes), dict(session.accounts.holds)


@pytest.mark.usefixtures("on_disk")
async def test_killed_at_each_kind_of_event(tmp_path: Path) -> None:
    """Its ledger taken from it, a stage comes to the same pool, champion and accounts once it is resumed."""
    base, calm = write_both(tmp_path / "base", HELDOUT), tmp_path / "calm"
    await base_stage(base)
    shutil.copytree(base, calm)
    points: list[Point] = [{"value": 9}, {"value": 8}]
    whole = await stage(calm, *points)
    expected, numbers = _said(whole), {it.kind: at for at, it in enumerate(whole.events, 1)}
    for kind in ("member intended", "member ended", "pool frozen", "trial ended"):
        number = numbers[kind]
        folder = shutil.copytree(base, tmp_path / str(number))
        async with scripted(folder, None, *points, how=How.COMBINE) as session:
            left = number

            def die(_: e.Event, __: str, session: Scripted = session) -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    with Ledger.open(session.bench.book.ledger.where) as other:
                        other.seize("another")

            session.bench.book.observers.append(die)
            with pytest.raises(Fenced):
                await session.run()
        assert _said(await ran(folder, None, *points, how=How.RESUME)) == expected, kind


async def test_stopped_while_a_member_runs(with_heldout: Path) -> None:
    """Ctrl-C ends a member's chamber, takes no slot for it, and a resume runs it again."""
    await base_stage(with_heldout, *({**point, "held do": "wait"} for point in POINTS))
    async with scripted(with_heldout, None, {"value": 9}, how=How.COMBINE) as session:
        session.stop_at(e.MemberIntended, 1)
        assert (await session.run()).reason == "Ctrl-C"
        (ended,) = session.of(e.MemberEnded)
        assert ended.interrupted
        assert (session.accounts.used(Account.COMBINATION), dict(session.accounts.holds)) == (0, {})


async def test_pool_is_never_let_go(both: Path) -> None:
    """What members left stays, whatever the budget for outputs says; that of others goes."""
    await base_stage(both, *({**point, "leaves": 3000} for point in POINTS))
    wide = [{"value": value, "leaves": 3000} for value in (3, 4, 5)]
    async with scripted(both, None, *wide, how=How.COMBINE, artifacts=9_000) as session:
        await session.run()
        assert session.of(e.OutputsLetGo)
        for member in session.state.run.pool:
            assert session.bench.artifacts.get_files(member.outputs["submit"])


async def test_outputs_that_were_let_go(both: Path) -> None:
    """A member whose outputs were let go is run again on the development data, for one slot."""
    await base_stage(both, *({**point, "leaves": 3000} for point in POINTS), artifacts=9_000)
    async with scripted(both, None, {"value": 9}, how=How.COMBINE) as session:
        assert any(it.let_go for it in session.state.trials.values())
        await session.run()
        again = session.of(e.MemberEnded)
        assert [it.split for it in again] == ["submit"] * len(again) != []
        assert session.accounts.used(Account.COMBINATION) == len(again) + 1


async def test_hostile_names(both: Path) -> None:
    """A name that leaves its folder is refused again when it becomes an input, though no harvest lets it in."""
    await base_stage(both)
    async with scripted(both, None, {"value": 9}, how=How.COMBINE) as session:
        await session.run()
        bench = session.bench
        for name in ("../../escape", "/escape", "a/../../escape"):
            evil = bench.artifacts.keep_files({name: b"x"}).digest
            members = (bench.state.run.pool[0].model_copy(update={"outputs": {"submit": evil}}),)
            with pytest.raises(Refused, match="unsafe"):
                deliver(bench.artifacts, members, bench.jobs, both, lambda *_: Input(name="pool", digest="0" * 64))
        assert not [name for _, _, names in os.walk(both) for name in names if name == "escape"]


async def test_stage_after_a_changed_judge(tmp_path: Path) -> None:
    """A pool is not combined under another judge than it was chosen by; [combine] itself may come later."""
    folder = write_task(tmp_path / "task")
    await base_stage(folder)
    with pytest.raises(TaskError, match="add \\[combine\\]"):
        await begin(folder)
    write_both(folder)
    (folder / "judge" / "judge.txt").write_text("another\n")
    with pytest.raises(CannotOpen, match="the files of judge"):
        await begin(folder)
    (folder / "judge" / "judge.txt").write_text("one that is scripted\n")
    assert (await stage(folder)).nodes["2.1"].kept


async def test_what_changed_since_a_stage_began(both: Path) -> None:
    """Each line names what to put back: a key as the task file has it, or a workspace, for instance after `apply`. A
    new run would be one of the base stage, so the line names `combine`. Nor does one begin with a combination, whose
    files are of another workspace.
    """
    await base_stage(both)
    await stage(both)
    for old, new, told in (
        ("pool = 3", "pool = 2", r"\(statement or combine\.pool\)"),
        ('["combination"]', '["other"]', r"\(combine\.trial\.command\)"),
    ):
        change(both, old, new)
        with pytest.raises(CannotOpen, match=f"the task changed since run 2 began {told}"):
            await begin(both, How.RESUME)
        change(both, new, old)
    (both / "combine" / "params.json").write_text('{"value": 9}\n')
    with pytest.raises(CannotOpen, match=r"run 2 began .*put it back (.*), or use `combine`"):
        await begin(both, How.RESUME)
    for start in ("best", "2"):
        with pytest.raises(CannotOpen, match=r"is a combination, .* begin with a base, like 1\.3, the best of run 1"):
            await begin(both, How.NEW_RUN, start=start)
    for number, (how, begins) in enumerate(((How.COMBINE, None), (How.NEW_RUN, "1.3")), 3):
        async with scripted(both, None, {"value": 8}, how=how, start=begins) as session:
            assert session.state.campaign.run == number
