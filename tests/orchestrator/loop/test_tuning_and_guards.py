"""Tuning against the cheaper target, and guards that a candidate must pass before it is kept."""

from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Draft, Guard, Purpose
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, NotComparable, Verdict, better, decide
from orchestrator.loop.steps import Promote, best_draft
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import GUARD, TUNE, Point, ran, scripted, write_task
from tests.orchestrator.loop.telling import at

DRAFTS: list[Point] = [{"value": 5, "tuned": 1}, {"value": 3, "tuned": 9}, {"value": 9, "tuned": 2}]


async def testbest_draft_is_promoted(tmp_path: Path) -> None:
    """Every draft is tuned, the best in tuning is promoted with the reason on record, and only that one counts."""
    folder = write_task(tmp_path / "task", TUNE)
    session = await ran(folder, None, DRAFTS)
    state, accounts = session.state, session.accounts
    node = state.nodes["1.1"]
    promoted = session.of(e.Promoted)[-1]
    assert (promoted.draft, promoted.why) == (2, "best of 3 drafts in tuning")
    assert (node.params, node.ending) == ({"value": 3, "tuned": 9}, Ending.SCORED)
    assert node.verdict is not None
    assert (node.verdict.mode, node.verdict.metrics) == (Mode.SUBMIT, {"score": 3.0})
    assert [trial.purpose for trial in state.trials_of("1.1")] == [
        *[Purpose.TUNE] * 3,
        Purpose.SUBMIT,
        Purpose.REPLAY,
    ]
    assert (accounts.used(Account.TUNES), accounts.used(Account.ATTEMPTS)) == (3, 1)


async def test_tune_verdict_is_never_ranked_against_submit(tmp_path: Path) -> None:
    """The baseline has a verdict in each mode; comparing the two raises, and neither can make a champion of tuning."""
    folder = write_task(tmp_path / "task", TUNE)
    ranking = Ranking((Metric(),))
    session = await ran(folder, None, DRAFTS)
    state = session.state
    tuned = next(trial.verdict for trial in state.trials_of("1") if trial.purpose is Purpose.TUNE)
    submitted = state.nodes["1"].verdict
    assert tuned is not None
    assert submitted is not None
    assert tuned.mode is Mode.TUNE
    with pytest.raises(NotComparable):
        better(tuned, submitted, ranking)
    with pytest.raises(NotComparable):
        decide(tuned, submitted, ranking)


async def test_tuning_pool(tmp_path: Path) -> None:
    """When the pool is used up, tuning is over and the attempts go on without it."""
    folder = write_task(tmp_path / "task", TUNE)
    others: list[Point] = [{"value": 6, "tuned": 1}, {"value": 7, "tuned": 9}]
    session = await ran(folder, None, DRAFTS, others, {"value": 4}, tunes=4)
    state, accounts = session.state, session.accounts
    assert accounts.used(Account.TUNES) == 4
    assert state.nodes["1.2"].promoted == 1
    assert [node.ending for node in state.nodes.values()] == [Ending.SCORED] * 4


async def test_tuning_pool_after_an_interruption(tmp_path: Path) -> None:
    """A tune trial that ran and was judged later, after a resume, is a tune trial: the pool pays for it."""
    folder = write_task(tmp_path / "task", TUNE)
    script = Script()
    async with scripted(folder, script, [{"value": 1, "judge": "wait"}], tunes=1) as session:
        at(session, e.JudgingIntended, "1.1-1", lambda: session.campaign.stop("enough"))
        await session.run()
    script.gate.set()
    session = await ran(folder, script, [{"value": 1}], [{"value": 2}], how=How.RESUME)
    tunes = [trial for trial in session.state.trials.values() if trial.purpose is Purpose.TUNE]
    assert [trial.node for trial in tunes] == ["1", "1.1"]
    assert session.accounts.used(Account.TUNES) == 1


async def test_drafts_that_fail_in_tuning(tmp_path: Path) -> None:
    """A draft without a verdict from tuning is not promoted while another has one. Where none has, the first is
    submitted: tuning never decides what is charged as failed.
    """
    folder = write_task(tmp_path / "task", TUNE)
    drafts: list[Point] = [{"value": 9, "do": "failed"}, {"value": 8, "judge": "crash"}, {"value": 1}]
    fail: list[Point] = [{"value": 9, "do": "failed"}, {"value": 8, "do": "failed"}]
    session = await ran(folder, None, drafts, fail)
    assert [(node.promoted, node.ending) for node in session.nodes.values()][1:] == [
        (3, Ending.SCORED),
        (1, Ending.FAILED),
    ]


async def test_failing_guard(tmp_path: Path) -> None:
    """A candidate that is better but does not pass its guard is scored and discarded; a later one may be kept. One that
    would not be kept anyway is not put through its guards.
    """
    folder, script = write_task(tmp_path / "task", GUARD), Script(unsound=(9,))
    session = await ran(folder, script, {"value": 9}, {"value": 4}, {"value": 3})
    first, second, third = (session.nodes[name] for name in ("1.1", "1.2", "1.3"))
    assert (first.ending, first.kept, first.guarded) == (Ending.SCORED, False, {"sound": False})
    assert "the guard sound" in first.why
    assert (second.kept, second.guarded) == (True, {"sound": True})
    assert (third.kept, third.guarded) == (False, {})
    assert (script.commands.count("guard"), session.champion) == (2, "1.2")


async def test_guards_are_inherited(folder: Path) -> None:
    """A guard that a person hangs on a node holds for all below it, and for nothing beside it; a second one of its name
    is refused.
    """
    guard = Guard(name="late", command=("guard",), limits={"wall": 5})
    script = Script(unsound=(5,))
    async with scripted(folder, script, {"value": 3}, {"value": 5}, branching=True, depth=2) as session:

        def hang(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                ask(folder, "guard", {"node": "1.1", "guard": guard.model_dump(mode="json")})
                ask(folder, "guard", {"node": "1.1", "guard": {"name": "late", "command": ["true"]}})

        session.when(e.AttemptEnded, hang)
        await session.run()
        state = session.state
        assert session.of(e.RequestTaken)[1].answer == "refused: 1.1 has a guard late already"
        assert [it.name for it in state.guards_of("1.1.1")] == ["late"]
        assert state.guards_of("1") == []
        assert (state.nodes["1.1"].kept, state.nodes["1.1.1"].kept) == (True, False)
        assert state.nodes["1.1.1"].guarded == {"late": False}


async def test_guard_of_the_task_is_the_baselines(tmp_path: Path) -> None:
    """The task's guards hang on the baseline, in the transaction that opens it: nobody can die in between."""
    folder = write_task(tmp_path / "task", GUARD)
    async with scripted(folder, None, {"value": 1}) as session:
        seen: list[int] = []
        session.when(e.AttemptOpened, lambda event: seen.append(len(session.state.guards_of(event.node))))
        await session.run()
    assert seen == [1, 1]


def draft(number: int, score: float | None, cohort: str = "c") -> Draft:
    verdict = Verdict(metrics={"score": score}, tier=Tier.DATA, mode=Mode.TUNE, cohort=cohort) if score else None
    return Draft(node="1.1", number=number, operator="llm", description="", verdict=verdict)


@pytest.mark.parametrize(
    ("drafts", "number", "why"),
    [
        ([draft(1, 1), draft(2, 2), draft(3, 3)], 3, "best of 3 drafts in tuning"),
        ([draft(1, 4), draft(2, None), draft(3, 3)], 1, "best of 2 of 3 drafts in tuning"),
        ([draft(1, None), draft(2, 2), draft(3, None)], 2, "the only one of 3 drafts with a verdict from tuning"),
        ([draft(1, 9, "before"), draft(2, 2), draft(3, 1)], 2, "best of 2 of 3 drafts in tuning"),
        ([draft(1, 1)], 1, "the only draft"),
    ],
)
def test_why_a_draft_is_promoted(drafts: list[Draft], number: int, why: str) -> None:
    """Those count that tuning measured on the same terms; what was never tuned, or elsewhere, was not compared."""
    assert best_draft(drafts, Ranking((Metric(),))) == Promote(number, why)
