"""Pruning in a campaign: the order, the grace and the kill; who is watched, who is spared, and what a resume knows."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Node, Role, Trial
from orchestrator.domain.reports import MOST_POINTS, BadReport
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import (
    CPU,
    TUNE,
    Point,
    Proposing,
    Scripted,
    ran,
    scripted,
    take_words,
    write_task,
)

LIMITS = '[limits]\nwall = "30s"\ngrace = "0.2s"\n'


def pruning(rule: str = "median", **keys: Any) -> str:
    keys = {"startup": 2, "spare": 0.0, **keys}
    return f'[pruning]\nrule = "{rule}"\n' + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def reporting(value: int, *curve: float | str, **more: Any) -> Point:
    return {"value": value, "do": "report", "curve": json.dumps(curve), **more}


GOOD = [reporting(value, 0.1, 0.5, 0.8, 0.9) for value in (2, 3)]


def task(tmp_path: Path, *more: str, **keys: Any) -> Path:
    return write_task(tmp_path / "task", pruning(**keys), *more, limits=LIMITS)


def last(session: Scripted, number: int) -> tuple[Node, Trial]:
    node = session.nodes[f"1.{number}"]
    return node, session.state.trials[node.submitted or ""]


async def test_pruned_with_grace(tmp_path: Path) -> None:
    """A trial below the median is told to stop, flushes and is pruned: charged, no score, partial outputs kept. T80:
    one that ignores the order is killed after its grace: pruned and charged like any other, never refunded.
    """
    script, bad = Script(), (0.1, 0.2, 0.3, 0.4)
    points = [*GOOD, reporting(4, *bad), {"value": 5}, reporting(6, *bad, deaf=True)]
    async with scripted(task(tmp_path), script, *points) as session:
        await session.run()
        node, trial = last(session, 3)
        assert (node.ending, node.kept, node.verdict) == (Ending.PRUNED, False, None)
        assert "median 0.5 of 2 peers" in node.why
        assert node.spent == node.booked
        assert trial.pruning
        assert (trial.pruning.step, trial.pruning.value, trial.pruning.spared) == (1, 0.2, False)
        assert trial.reports
        assert trial.reports.points[:2] == ((0, 0.1), (1, 0.2))
        assert script.steps[4] == 1
        assert trial.outputs
        assert set(session.bench.artifacts.get_files(trial.outputs)) == {"partial.json"}
        assert last(session, 4)[0].ending is Ending.SCORED
        assert script.commands.count("judge") == 7  # the baseline, and each that is kept twice
        node, trial = last(session, 5)
        assert (node.ending, node.stalls, session.charged) == (Ending.PRUNED, 0, 5)
        assert "ignored the order to stop" in trial.reason
        assert not session.of(e.Refunded)
        assert not script.world.chambers


@pytest.mark.parametrize(
    "keys", [{"warmup": 9}, {"startup": 3}, {"every": 4, "warmup": 4}, {"rule": "halving", "least": 9}]
)
async def test_too_early(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Before the warm-up, with too few peers, between two looks, or at a rung alone, nothing is pruned."""
    session = await ran(task(tmp_path, **keys), None, *GOOD, reporting(4, 0.1, 0.2, 0.3, 0.4))
    assert last(session, 3)[0].ending is Ending.SCORED


async def test_goal_of_the_reports(tmp_path: Path) -> None:
    """What is reported may be better when lower, whatever the score is."""
    low = [reporting(value, 0.9, 0.5, 0.2, 0.1) for value in (2, 3)]
    more = reporting(4, 0.9, 0.7, 0.6, 0.5), reporting(5, 0.9, 0.4, 0.1, 0.0)
    session = await ran(task(tmp_path, goal="lower"), None, *low, *more)
    assert last(session, 3)[0].ending is Ending.PRUNED
    assert last(session, 4)[0].ending is Ending.SCORED


async def test_spared(tmp_path: Path) -> None:
    """A spared trial goes on to its score, and it is on record where the rule would have ended it."""
    session = await ran(task(tmp_path, spare=1.0), None, *GOOD, reporting(4, 0.1, 0.2, 0.3, 0.4))
    node, trial = last(session, 3)
    assert (node.ending, node.kept) == (Ending.SCORED, True)
    assert trial.pruning
    assert (trial.pruning.spared, trial.pruning.step, trial.pruning.value) == (True, 1, 0.2)
    assert trial.reports
    assert len(trial.reports.points) == 4


async def test_never_pruned(tmp_path: Path) -> None:
    """Baseline, tuning, changes by hand and re-runs in a new cohort are not watched, however bad their curves are."""
    bad = {"do": "report", "curve": "[0, 0, 0, 0, 0]"}
    folder = task(tmp_path, TUNE, CPU, warmup=0, startup=1)
    (folder / "workspace/params.json").write_text(json.dumps({"value": 0, **bad}))
    script = Script()
    async with scripted(folder, script, GOOD[0], [{**GOOD[1], **bad}], {"value": 5}) as session:
        moved: list[e.Event] = []

        def move(event: e.AttemptOpened) -> None:
            if event.number == 3 and not moved:
                moved.append(event)
                script.cpu = "another"

        session.when(e.AttemptOpened, move)
        await session.run()
        trials = session.state.trials.values()
        watched = {trial.id for trial in trials if trial.pruning}
        assert {trial.purpose for trial in trials if trial.id not in watched} >= {"tune", "rerun", "submit"}
        assert watched == {node.submitted for node in session.nodes.values() if node.role is Role.SEARCH}
        assert session.nodes["1"].ending is Ending.SCORED


async def test_cohorts_are_kept_apart(tmp_path: Path) -> None:
    """On other hardware there are no peers yet, so nothing is pruned there."""
    script = Script()
    bad = reporting(4, 0.1, 0.2, 0.3, 0.4)
    async with scripted(task(tmp_path, CPU), script, *GOOD, bad) as session:
        session.when(e.AttemptOpened, lambda event: setattr(script, "cpu", "new" if event.number == 3 else "old"))
        await session.run()
        assert last(session, 3)[0].ending is Ending.SCORED


async def test_control_has_its_own_peers(tmp_path: Path) -> None:
    """The control is pruned by the same rule among its own trials, as a search of its own would be."""
    search = [reporting(value, 0.9, 0.9) for value in (21, 22, 23, 24)]
    drawn = [reporting(31, 0.5, 0.5), reporting(32, 0.5, 0.5), reporting(33, 0.1, 0.1)]
    async with scripted(task(tmp_path, warmup=0), None, *search, control="random", attempts=4) as session:
        session.bench.proposers[Role.CONTROL] = Proposing(*drawn)
        take_words(session.bench, [*search, *drawn])
        await session.run()
        state = session.state
        control = [node for node in state.nodes.values() if node.role is Role.CONTROL]
        assert [node.ending for node in control] == [Ending.SCORED, Ending.SCORED, Ending.PRUNED]
        assert all(node.ending is Ending.SCORED for node in state.nodes.values() if node.role is Role.SEARCH)


async def test_only_valid_trials_are_peers(tmp_path: Path) -> None:
    """A curve that shines is worth nothing where the judge says that there is no solution, or does not believe it."""
    liars = [
        reporting(2, 9.0, 9.0, judge="no solution"),
        reporting(3, 9.0, 9.0, judge="crash"),
        reporting(11, 9.0, 9.0),
    ]
    ceiling = '[[metrics]]\nname = "score"\nceiling = 10.0\n'
    honest = reporting(4, 0.1, 0.2)
    session = await ran(task(tmp_path, ceiling, startup=1, warmup=0), None, *liars, honest)
    assert last(session, 4)[0].ending is Ending.SCORED


async def test_bad_reports(tmp_path: Path) -> None:
    """Reports that are none are counted by what is wrong with them; the good ones among them count."""
    said = (
        0.1,
        '{"step": 1, "value": NaN}',
        '{"step": 1, "value": Infinity}',
        '{"step": -1, "value": 1}',
        "nonsense",
        '{"step": 5, "value": 0.5}',
        '{"step": 5, "value": 0.9}',
        '{"step": 2, "value": 0.9}',
        '{"step": 6, "value": 0.6}',
    )
    session = await ran(task(tmp_path), None, reporting(2, *said), {"value": 3})
    node, trial = last(session, 1)
    assert node.ending is Ending.SCORED
    assert trial.reports
    assert trial.reports.points == ((0, 0.1), (5, 0.5), (6, 0.6))
    assert trial.reports.bad == {BadReport.UNREADABLE: 4, BadReport.AGAIN: 1, BadReport.BACK: 1}
    assert last(session, 2)[1].reports is None


@pytest.mark.alone
async def test_a_flood_of_reports(tmp_path: Path) -> None:
    """Of a great many reports few are kept, and the trial and the campaign go on."""
    many = "\n".join(f'::report {{"step": {step}, "value": {step % 7}}}' for step in range(10_000))
    folder = task(tmp_path, startup=1)
    session = await ran(folder, None, GOOD[0], reporting(4, many.removeprefix("::report ")), {"value": 5})
    node, trial = last(session, 2)
    assert node.ending is Ending.SCORED
    assert trial.reports
    assert trial.reports.count == 10_000
    assert len(trial.reports.points) <= MOST_POINTS + 1
    assert trial.reports.points[-1] == (9_999, 9_999 % 7)
    assert last(session, 3)[0].ending is Ending.SCORED


async def test_curves_without_a_rule(tmp_path: Path) -> None:
    """Without [pruning] a curve is on record all the same, and nothing watches."""
    session = await ran(write_task(tmp_path / "task"), None, *GOOD, reporting(4, 0.0))
    node, trial = last(session, 3)
    assert node.ending is Ending.SCORED
    assert trial.reports
    assert trial.pruning is None


def learning(value: int, end: float) -> Point:
    return reporting(value, *(end * (1 - 0.5**step) for step in range(1, 13)))


FORGED = [reporting(value, *[9.0] * 14) for value in (-7, -8, -9)]
HONEST = [learning(value, 0.9) for value in (2, 3, 4, 5, 6)]
RULES = [{"rule": "median"}, {"rule": "halving"}, {"rule": "wilcoxon", "threshold": 0.6}, {"rule": "curve"}]


def reporting_baseline(folder: Path, *curve: float) -> Path:
    point = reporting(0, *curve)
    (folder / "workspace/params.json").write_text(json.dumps(point))
    return folder


@pytest.mark.parametrize(("keys", "told"), [(RULES[0], ()), *((keys, (0.1, 0.4, 0.6, 0.7)) for keys in RULES)], ids=str)
async def test_t89_forged_curves_of_worthless_candidates(
    tmp_path: Path, keys: dict[str, Any], told: tuple[float, ...]
) -> None:
    """Curves that shine, of candidates that the judge found worthless, end no honest trial, whichever rule decides and
    whether or not the baseline reports; without any mercy for spared ones.
    """
    folder = task(tmp_path, **keys)
    if told:
        reporting_baseline(folder, *told)
    session = await ran(folder, None, *FORGED, *HONEST)
    endings = [last(session, number)[0].ending for number in range(4, 9)]
    assert endings == [Ending.SCORED] * 5
    assert not any(trial.pruning.cut for trial in session.state.trials.values() if trial.pruning)


@pytest.mark.parametrize("keys", RULES, ids=lambda keys: keys["rule"])
async def test_t89_control(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Among honest peers an honest bad trial is ended all the same, forged curves beside them or not."""
    curves, bad = [learning(value, value / 10) for value in (5, 6, 7, 8)], learning(1, 0.1)
    folder = reporting_baseline(task(tmp_path, **keys), 0.0, 0.0, 0.0)
    session = await ran(folder, None, FORGED[0], *curves, FORGED[1], bad)
    assert last(session, 7)[0].ending is Ending.PRUNED


async def test_t89_after_a_resume(tmp_path: Path) -> None:
    """What a curve is worth, and whose peers are, is known from the ledger: a resumed campaign is not poisoned, and
    decides as if it had gone on.
    """
    folder = reporting_baseline(task(tmp_path), 0.1, 0.4, 0.6, 0.7)
    points = [*FORGED, *HONEST, reporting(1, 0.1, 0.2, 0.3, 0.3)]
    session = await ran(folder, None, *points, stop=(e.AttemptEnded, 8))
    session = await ran(folder, None, *points, how=How.RESUME)
    endings = [last(session, number)[0].ending for number in range(4, 10)]
    assert endings == [*[Ending.SCORED] * 5, Ending.PRUNED]


async def test_more_steps_than_the_task_gives(tmp_path: Path) -> None:
    """Its own word can end it early; within the budget it is judged as usual."""
    folder = write_task(tmp_path, trial="steps = 2")
    over = reporting(4, 0.1, 0.2, 0.3, 0.4, hangs=True)
    session = await ran(folder, None, over, reporting(5, 0.1, 0.2, 0.3))
    node, trial = last(session, 1)
    assert node.ending is Ending.TIMED_OUT
    assert "more than 2 steps" in trial.reason
    assert last(session, 2)[0].ending is Ending.SCORED
    assert session.charged == 2
