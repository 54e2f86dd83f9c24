"""Scripted campaigns to be killed, in several kinds, and what of a finished one must not depend on any kill."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.budget import Account, Accounts
from orchestrator.change import Tree
from orchestrator.domain import events as e
from orchestrator.domain.events import read_event
from orchestrator.domain.folding import fold
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.node import run_of
from orchestrator.domain.proposal import Drawn
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts, Missing
from orchestrator.loop import campaign
from orchestrator.loop.history import History
from orchestrator.loop.proposing import seed_of
from orchestrator.loop.selection import SLOT
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.credit import Crediting
from orchestrator.meta.policy import Learning
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from sandbox import Job
from tests.crash.fate import Fate, die_within
from tests.orchestrator.loop.books import check_books, ledger_of
from tests.orchestrator.loop.noise import gaussian, noisy
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import CPU, GUARD, HELDOUT, TUNE, Act, Point, scripted, write_task, written


@dataclass(frozen=True)
class Kind:
    """`changes_at` is the node from which on chambers run on other hardware, `sigma` how far scores spread. With
    `ballast`, what is proposed changes more than the judge looks at; `combined` is how many attempts the second stage
    has.

    Where a person is asked, one answers: yes to the first that waits, and no to the second.
    """

    parts: tuple[str, ...]
    flags: dict[str, Any]
    branching: bool = False
    changes_at: str = ""
    attempts: int = 12
    drafts: int = 1
    sigma: float = 0.0
    ballast: bool = False
    combined: int = 0


COMBINE = """[budget]
combination = 4
[combine]
pool = 2
editable = ["params.json"]
[combine.trial]
command = ["combination"]
[combine.parameters]
file = "params.json"
[combine.parameters.space]
value = {type = "int", low = 1, high = 20}
"""
LEARNING = {"meta": "gradient", "credit": "lineage"}
KINDS = {
    "wide": Kind((TUNE, GUARD), {"width": 3}, drafts=2),
    "deep": Kind((TUNE, GUARD), {"width": 1, "depth": 3}, branching=True, drafts=2),
    "moving": Kind((CPU, GUARD), {"width": 1, "control": "random"}, changes_at="1.9"),
    "held": Kind((CPU, HELDOUT, GUARD), {"width": 1}, changes_at="1.7"),
    "short": Kind((CPU, TUNE, GUARD), {"width": 1}, changes_at="1.2", attempts=2),
    "noisy": Kind((noisy(8, 6), GUARD), {"width": 1}, sigma=1.0),
    "asked": Kind((TUNE,), {"width": 1, "ask": True}, attempts=2),
    "full": Kind((), {"width": 1, "artifacts": 1_200}),
    "learning": Kind((), {"width": 3, "depth": 2, "walk": 3, "selection": "drawn", **LEARNING}, branching=True),
    "tested": Kind((noisy(5, 5),), {"width": 1}, attempts=1, sigma=0.1),
    "islands": Kind((), {"width": 1, "depth": 1, "islands": 2, "migrate": 2}, branching=True, attempts=4),
    "minimised": Kind((), {"width": 1, "minimise": True}, attempts=1, ballast=True),
    # Its members are run on the held-out data, so that two of four slots are used before the first combination.
    "combined": Kind((HELDOUT, COMBINE), {"width": 1}, attempts=2, combined=2),
}


def make(folder: Path, kind: str) -> Path:
    (folder / "combine").mkdir(parents=True)
    (folder / "combine" / "params.json").write_text('{"value": 2}\n')
    return write_task(folder, *KINDS[kind].parts)


def drafts(number: int, count: int) -> list[Point]:
    """What is proposed for the attempt of that number: the same whoever asks, and when. Some of it goes wrong."""
    first: Point = {"value": number * 5 % 13, "tuned": number * 7 % 11, "takes": number % 3 / 1000}
    second: Point = {"value": number * 3 % 13 + 0.5, "tuned": number * 4 % 11 + 0.5}
    wrong: dict[int, Point] = {4: {"do": "failed"}, 7: {"judge": "crash"}, 9: {"judge": "no solution"}}
    both: list[Point] = [{**first, **wrong.get(number, {})}, {**second, **wrong.get(number, {})}]
    return both[:count]


def live(
    folder: str,
    kind: str,
    at: int | None = None,
    within: float | None = None,
    count: str = "",
    *,
    surely: bool = False,
    gate: str = "",
) -> None:
    """Work on the campaign until it is finished, or until fate strikes, `surely` at the end at the latest; `count`
    names a file for the points met. No chamber is opened before there is a file named by `gate`.
    """
    campaign.POLL_S = 0.01  # a resume waits for its first turn; here that need not take long
    fate = Fate(at)
    fate.rule()
    if within is not None:
        die_within(within)
    asyncio.run(_work(Path(folder), KINDS[kind], gate))
    if surely:
        fate.end()
    if count:
        Path(count).write_text(json.dumps(fate.points))


async def _work(folder: Path, kind: Kind, gate: str) -> None:
    stages = _stages(folder)
    if stages < 2:
        await _run(folder, kind, How.RESUME if stages else How.START, kind.attempts, gate)
    if kind.combined:
        await _run(folder, kind, How.RESUME if stages == 2 else How.COMBINE, kind.combined, gate)


async def _run(folder: Path, kind: Kind, how: How, count: int, gate: str) -> None:
    script = Script(unsound=(9, 10))
    proposed: list[list[Point] | Act] = [drafts(number, kind.drafts) for number in range(1, count + 1)]
    if kind.ballast:
        proposed = [written({"value": 7, "idle": 1, "more": 2})]
    async with scripted(folder, script, *proposed, branching=kind.branching, how=how, **kind.flags) as session:
        script.noise = gaussian(session.bench.state, kind.sigma) if kind.sigma else None
        script.on_open = _moving(session.bench.state, script, kind.changes_at, Path(gate) if gate else None)
        for event in (e.PromotionAsked, e.AttemptResumed):
            session.when(event, partial(_answer, folder, session.bench.state))
        await session.run()


def _answer(folder: Path, state: State, event: e.PromotionAsked | e.AttemptResumed) -> None:
    """As soon as there is a question, or once more after a kill: nobody knows whether the first answer was left."""
    if state.nodes[event.node].waits_for_person:
        ask(folder, "accept" if event.node == "1.1" else "decline", {"node": event.node})


def _moving(state: State, script: Script, changes_at: str, gate: Path | None) -> Callable[[Job], Awaitable[None]]:
    async def on_open(_: Job) -> None:
        while gate and not gate.exists():  # noqa: ASYNC110, ASYNC240  another process opens it
            await asyncio.sleep(0.02)
        script.cpu = "another" if changes_at in state.nodes else "pretended"

    return on_open


def _stages(folder: Path) -> int:
    """How many were begun."""
    try:
        with ledger_of(folder) as ledger:
            return len(State.from_rows(ledger.rows()).runs)
    except Missing:
        return 0


def checked(folder: Path, kind: str) -> State:
    """The state of a finished campaign, once all that must hold of any is found to hold."""
    with ledger_of(folder) as ledger:
        check_books(ledger)
        rows = ledger.rows()
        asked = [record.body for record in ledger.read() if record.kind == "promotion asked"]
    assert len(set(asked)) == len(asked), "a person was asked twice"
    state, accounts = State.from_rows(rows), Accounts.from_ledger(rows)
    assert not accounts.holds
    assert all(node.phase is Phase.ENDED for node in state.nodes.values())
    assert all(trial.ended and trial.judging is None for trial in state.trials.values())
    charged = [node for node in state.nodes.values() if node.ending and node.ending.charged]
    searched = [run_of(node.id) for node in charged if node.role is Role.SEARCH]
    assert accounts.used(Account.ATTEMPTS) == searched.count(1) == KINDS[kind].attempts
    members = sum(len(run.member_outputs) for run in state.runs.values())
    assert accounts.used(Account.COMBINATION) == searched.count(2) + members == (4 if KINDS[kind].combined else 0)
    assert accounts.used(Account.CONTROL) == sum(node.role is Role.CONTROL for node in charged)
    booked = accounts.used(Account.SECONDS)
    of_nodes = sum(node.spent.milliseconds for node in state.nodes.values())
    assert of_nodes < booked if members else of_nodes == booked  # members are of no node of the stage
    assert not list((folder / ".blastdoor" / "live").glob("*"))
    check_outputs(folder, state)
    assert bool(state.campaign.let_go) is ("artifacts" in KINDS[kind].flags)
    return state


def check_outputs(folder: Path, state: State) -> None:
    """What a trial left is there as long as the ledger does not say that it was let go, and no longer."""
    store = Artifacts(folder / ".blastdoor" / "artifacts")
    lists = {trial.outputs for trial in state.trials.values() if trial.outputs and not trial.let_go}
    for name in lists:
        assert store.get_files(name)
    gone = {trial.id: trial for trial in state.trials.values() if trial.let_go}
    assert not store.those_there({trial.outputs for trial in gone.values() if trial.outputs} - lists)
    assert not any(state.nodes[trial.node].kept for trial in gone.values())
    assert len(gone) == state.campaign.let_go


def tree(state: State) -> dict[str, object]:
    """All that a campaign of width 1 decides: who stands where, made of what, judged how, kept or not."""
    return {
        **{name: _place(node) for name, node in state.nodes.items()},
        "champions": list(state.run.champions.values()),
        "pool": [(member.node, member.outputs) for member in state.run.pool],
        "tunes": sum(trial.purpose == "tune" for trial in state.trials.values() if trial.judged),
    }


def verdicts(state: State) -> dict[str, object]:
    """What was found out about each point; with several at work, who is kept on the way depends on who comes first."""
    found = {str(node.params): (node.id, node.promoted, node.ending, _metrics(node)) for node in state.nodes.values()}
    champion = state.champion()
    return {**found, "champion": champion and champion.params}


def results(state: State) -> dict[str, object]:
    """What was found out about each attempt, wherever it was put: with several at work that depends on who ends first,
    and so does what is learnt by then.
    """
    found = {str(node.number): (node.params, node.ending, _metrics(node)) for node in state.nodes.values()}
    champion = state.champion()
    return {**found, "champion": champion and champion.params}


def check_draws(folder: Path) -> int:
    """Every rule by which a branch starts can be drawn again from the ledger alone, under the same probability, and is
    on record with each attempt of its branch; how many were drawn.
    """
    state, begun = State(), dict[int, Drawn]()
    learnt = Learnt(Learning(LEARNING["meta"]), Crediting(LEARNING["credit"]))
    ranking, rules = Ranking([Metric()]), ("champion", "tasks", "tournament", "novelty", "archive")
    with ledger_of(folder) as ledger:
        for record in ledger.read():
            event = read_event(record.body)
            if isinstance(event, e.AttemptOpened) and event.drawn and event.step == 1:
                past = History(state, ranking, Role.SEARCH, (), lambda _: Tree())
                seed = seed_of(state.run, Role.SEARCH)
                chooser = Meta(learnt).chooser(past.ended, seed, -event.branch, 0, past.running)
                chooser.choose(SLOT, dict.fromkeys(rules, 1.0))
                assert chooser.drawn == event.drawn, event.node
                begun[event.branch] = event.drawn
            elif isinstance(event, e.AttemptOpened) and event.branch:
                assert event.drawn == begun[event.branch], event.node
            fold(state, event, record.at)
    return len(begun)


def _place(node: Node) -> tuple[object, ...]:
    return (node.role, node.number, node.branch, node.step, node.params, node.promoted, _metrics(node), node.guarded,
            node.ending, node.kept, node.why, node.diff, node.island, node.migrated, node.minimal)  # fmt: skip


def _metrics(node: Node) -> object:
    return node.verdict and (node.verdict.metrics, node.verdict.cohort)
