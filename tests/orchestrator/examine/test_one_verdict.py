"""T84: a verdict does not depend on the way it is asked. A table of cases through campaign, gate and replay."""

import itertools
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.change import Effort, Reason, Refusal, Tree
from orchestrator.change.canonical import Comparison, compare
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Aim, Stage
from orchestrator.examine import gate as gate_module
from orchestrator.examine.gate import Decision
from orchestrator.examine.gate_steps import Step, StepState
from orchestrator.examine.replay import replay
from orchestrator.ledger import Ledger
from orchestrator.loop import attempt
from orchestrator.loop.keeping import End, may_be_kept
from orchestrator.proposers import Brief
from orchestrator.settings import Settings
from orchestrator.views.judging.evidence import evidence
from orchestrator.views.judging.gate import Change, gate
from orchestrator.views.judging.junit import junit
from orchestrator.views.judging.markdown import markdown
from orchestrator.views.judging.report import Report
from orchestrator.views.judging.sarif import sarif
from orchestrator.wiring.reading import ask
from orchestrator.wiring.site import Site
from tests.orchestrator.loop.noise import noisy
from tests.orchestrator.loop.relay_script import RelayScript, write_relay_task
from tests.orchestrator.loop.script import Script, failing
from tests.orchestrator.loop.scripted import GUARD, HELDOUT, Scripted, make_site, scripted, write_task

# Accepted, rejected, could not judge.
YES, NO, OPEN = Decision.ACCEPTED, Decision.REJECTED, Decision.UNJUDGED
FEW, TOLD = f"{HELDOUT}queries = 1\n", f"{HELDOUT}gate = false\n"
NOISY, FAILS = noisy(repeats=12, champion=3), '{"do": "failed"}'
CEILING = '[[metrics]]\nname = "score"\nceiling = 10\n'


@dataclass(frozen=True)
class Case:
    """`kept` is the campaign's answer, `improves` the gate's with --must-improve and `passes` its answer without."""

    name: str
    change: dict[str, Any]
    kept: bool
    improves: Decision
    passes: Decision
    stage: Stage | None
    sections: tuple[str, ...] = ()
    sigma: float = 0.0
    unsound: tuple[int, ...] = ()
    relay: bool = False
    shared: bool = False


CASES = [
    Case("better", {"value": 3}, True, YES, YES, Stage.REPLAY),
    Case("equal", {"value": 0, "more": 1}, False, NO, YES, Stage.SCORE),
    Case("worse", {"value": -1}, False, NO, NO, Stage.SCORE),
    Case("better once, then worse", {"value": 3, "then": '{"value": -1}'}, False, NO, NO, Stage.REPLAY),
    Case("better once, then equal", {"value": 3, "then": '{"value": 0}'}, False, NO, YES, Stage.REPLAY),
    Case("invalid on replay", {"value": 3, "then": '{"judge": "no solution"}'}, False, NO, NO, Stage.REPLAY),
    Case("missing metric", {"value": 3, "judge": "no metric"}, False, NO, NO, None),
    Case("no solution", {"value": 3, "judge": "no solution"}, False, NO, NO, None),
    Case("suspect", {"value": 50}, False, NO, NO, Stage.SCORE, (CEILING,)),
    Case("guard fails", {"value": 3}, False, NO, NO, Stage.GUARDS, (GUARD,), unsound=(3,)),
    Case("better on the held-out split", {"value": 3}, True, YES, YES, Stage.HELD_OUT, (HELDOUT,)),
    Case("not better there", {"value": 3, "held": 0.5}, False, NO, YES, Stage.HELD_OUT, (HELDOUT,)),
    Case("worse there", {"value": 3, "held": -5}, False, NO, NO, Stage.HELD_OUT, (HELDOUT,)),
    Case("fails there", {"value": 3, "held do": "failed"}, False, NO, NO, Stage.HELD_OUT, (HELDOUT,)),
    Case("queries used up", {"value": 3}, False, OPEN, OPEN, Stage.HELD_OUT, (FEW,)),
    Case("only recorded", {"value": 3, "held": -5}, True, YES, YES, Stage.HELD_OUT, (TOLD,)),
    Case("relay, better", {"value": 3}, True, YES, YES, Stage.REPLAY, relay=True),
    Case("shared, better", {"value": 3}, True, YES, YES, Stage.REPLAY, shared=True),
    Case("noisy, no-op", {"value": 0, "more": 1}, False, NO, YES, None, (NOISY,), sigma=1.0),
    Case("noisy, better", {"value": 9}, True, YES, YES, Stage.REPEATS, (NOISY,), sigma=1.0),
    Case("noisy, fails again", {"value": 9, "then": FAILS}, False, NO, NO, Stage.REPEATS, (NOISY,), sigma=1.0),
]


def named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def script_of(case: Case) -> Script:
    script = RelayScript() if case.relay else Script()
    script.unsound = case.unsound
    if case.sigma:
        counts = itertools.count()
        script.noise = lambda _: random.Random(f"84/{case.name}/{next(counts)}").gauss(0.0, case.sigma)
    return script


def task_of(case: Case, folder: Path) -> Path:
    if case.relay:
        return write_relay_task(folder, *case.sections)
    task = write_task(folder, *case.sections)
    if case.shared:
        path = task / "blastdoor.toml"
        path.write_text(path.read_text().replace('command = ["judge"]\n', 'command = ["judge"]\nmode = "shared"\n', 1))
    return task


def text_of(case: Case) -> str:
    return f"params.json\n````\n{json.dumps(case.change)}\n````\n"


@asynccontextmanager
async def campaign(case: Case, folder: Path) -> AsyncIterator[Scripted]:
    """One that is over, whose only proposal was the change. A search stops once nothing can be kept any more; a change
    that a person brings is run all the same.
    """
    stops = case.sections == (FEW,)

    async def act(_: Brief) -> Sequence[Proposal]:
        return [Proposal(operator="scripted", description="the change", text=text_of(case))]

    async with scripted(task_of(case, folder), script_of(case), *([] if stops else [act])) as session:
        if stops:
            ask(folder, "inject", {"text": text_of(case)})
        await session.run()
        yield session


async def gated(
    case: Case, folder: Path, *, must_improve: bool, keep: Path | None = None, script: Script | None = None
) -> Report:
    raw = text_of(case).encode()
    script = script or script_of(case)

    @asynccontextmanager
    async def site() -> AsyncIterator[Site]:
        made = make_site(script)
        try:
            yield made
        finally:
            await made.backend.close()

    change = Change(raw, "0" * 64, len(raw))
    return await gate(task_of(case, folder), change, Settings(), site, must_improve=must_improve, keep=keep)


def kept_by_ledger(folder: Path) -> tuple[bool, str]:
    """What the ledger of a gate says of the change."""
    with Ledger.open(folder / "ledger.sqlite3", read_only=True) as ledger:
        node = State.from_rows(ledger.rows()).nodes["1.1"]
    return node.kept, node.why


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_t84_one_verdict(tmp_path: Path, case: Case) -> None:
    """Campaign, gate and replay give one answer: kept, accepted with --must-improve, and kept again. Without the flag
    the gate asks less: not worse, in each of its runs. Its own ledger says what it says.
    """
    async with campaign(case, tmp_path / "campaign") as session:
        node = session.bench.state.nodes["1.1"]
        again = await replay(session.bench, session.bench.state, node, await session.bench.tree("1.1"), 1e-9)
    improves = await gated(case, tmp_path / "gate", must_improve=True, keep=tmp_path / "kept")
    assert node.kept is case.kept, node.why
    # Whether a no-op is screened out or tested is luck.
    assert case.name == "noisy, no-op" or node.stage is case.stage, node.why
    assert again.kept is node.kept, again.why
    assert improves.gated.decision is case.improves, improves.line
    assert (improves.gated.decision is YES) is node.kept
    kept, why = kept_by_ledger(tmp_path / "kept")
    assert kept is node.kept
    assert case.sigma or why == node.why
    passes = await gated(case, tmp_path / "again", must_improve=False, keep=tmp_path / "kept too")
    assert passes.gated.decision is case.passes, passes.line
    kept, why = kept_by_ledger(tmp_path / "kept too")
    assert kept is (passes.gated.decision is YES), why
    assert any(step.state in (StepState.FAILED, StepState.BROKEN) for step in passes.gated.steps) is not kept


@pytest.mark.parametrize("name", ["better once, then worse", "not better there", "queries used up"])
async def test_t84_control(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table tells: a gate that looks at one score of each side lets in what its own ledger does not keep."""

    def by_first_scores(_: Node, steps: Sequence[Step]) -> Decision:
        first = [step for step in steps if step.name in ("change-applies", "trial", "judge", "score")]
        return YES if all(step.state is StepState.PASSED for step in first) else NO

    monkeypatch.setattr(gate_module, "decision_of", by_first_scores)
    report = await gated(named(name), tmp_path / "gate", must_improve=True, keep=tmp_path / "kept")
    assert (report.gated.decision, kept_by_ledger(tmp_path / "kept")[0]) == (YES, False)


async def test_smaller_tie(tmp_path: Path) -> None:
    """Of two that are as good the smaller change is kept, and is again when it is replayed; a gate has only the
    baseline to compare with, than which nothing is smaller.
    """
    large, small = {"value": 3, "a": 1, "b": 2, "c": 3}, {"value": 3}
    async with scripted(write_task(tmp_path / "task"), None, large, small) as session:
        await session.run()
        nodes = session.bench.state.nodes
        assert (nodes["1.2"].kept, nodes["1.2"].why) == (True, "as good as the champion, and a smaller change")
        for name in ("1.1", "1.2"):
            again = await replay(session.bench, session.bench.state, nodes[name], await session.bench.tree(name), 1e-9)
            assert (again.stands, again.kept) == (True, True), again.why


async def test_lower_tier(tmp_path: Path) -> None:
    """A better score of a weaker tier is not kept, by the one function that all three ask."""
    async with campaign(CASES[0], tmp_path / "task") as session:
        state, bench = session.bench.state.copy(), session.bench
        node, trial = state.nodes["1.1"], state.trials["1.1-1"]
        assert trial.verdict
        state.set_run(1, champions={trial.verdict.cohort: "1"})
        assert isinstance(found := may_be_kept(state, node, trial, bench.rules), End)
        assert found.kept
        shared = trial.model_copy(update={"verdict": trial.verdict.model_copy(update={"tier": Tier.SHARED})})
        for aim in Aim:
            found = may_be_kept(state, node, shared, replace(bench.rules, aim=aim))
            assert isinstance(found, End)
            assert (found.kept, found.why) == (False, "tier shared does not replace tier data")


def states(report: Report) -> dict[str, StepState]:
    return {step.name: step.state for step in report.gated.steps}


async def test_the_held_out_answer_is_one_bit(tmp_path: Path) -> None:
    """Neither the score there, nor the rounded value, nor how long it took reaches the author of the change; and where
    the answer decides nothing, not even that.
    """
    told = {}
    unasked = replace(named("only recorded"), name="not asked", sections=(f"{TOLD}queries = 1\n",))
    for case in (*map(named, ("better on the held-out split", "worse there", "fails there", "only recorded")), unasked):
        report = await gated(case, tmp_path / case.name, must_improve=True)
        step = next(step for step in report.gated.steps if step.name == "held-out")
        told[case.name] = (step.state, step.why, step.seconds, step.log)
    assert told == {
        "better on the held-out split": (StepState.PASSED, "better on the held-out split", 0, b""),
        "worse there": (StepState.FAILED, "not better on the held-out split", 0, b""),
        "fails there": (StepState.FAILED, "not better on the held-out split", 0, b""),
        "only recorded": (StepState.PASSED, "asked, and only recorded: heldout.gate is off", 0, b""),
        "not asked": (StepState.PASSED, told["not asked"][1], 0, b""),
    }
    assert told["not asked"][1].startswith("not asked, since heldout.queries are used up")


async def test_a_provider_that_fails_in_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of the change then: 2, never 0 and never 1."""
    monkeypatch.setattr(gate_module, "PATIENCE_S", 0.0)
    case, script = CASES[0], failing(99, after=2)
    stall = "[stall]\nafter = 1\nrefunds = 1\nprovision = '1s'\n"
    report = await gated(replace(case, sections=(stall,)), tmp_path / "gate", must_improve=False, script=script)
    assert report.gated.decision is OPEN, report.line


def failed_in_every_report(report: Report, step: str) -> bool:
    told = (
        [it["ruleId"] for it in sarif(report)["runs"][0]["results"]],
        [it["name"] for it in evidence(report)["steps"]],
    )
    return f'name="{step}"' in junit(report) and "<failure" in junit(report) and all(step in names for names in told)


async def test_t84_a_change_that_is_refused_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Applied, and then too costly to compare: that is a rejection, and a step that failed says why."""

    def too_costly(before: Tree, after: Tree, effort: Effort | None = None) -> Comparison:
        if before.digest != after.digest:
            raise Refusal(Reason.TOO_COSTLY, "all of it")
        return compare(before, after, effort)

    monkeypatch.setattr(attempt, "compare", too_costly)
    report = await gated(CASES[0], tmp_path / "gate", must_improve=False)
    assert report.gated.decision is NO
    assert states(report)["change-applies"] is StepState.FAILED
    assert failed_in_every_report(report, "change-applies")
    assert "too costly" in report.line


async def test_t84_no_rejection_without_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no step has failed and the change is rejected all the same, a step of that name says so."""

    def all_passed(*_: object) -> list[Step]:
        return [Step("change-applies", StepState.PASSED)]

    monkeypatch.setattr(gate_module, "steps_of", all_passed)
    report = await gated(named("worse"), tmp_path / "gate", must_improve=False)
    assert (report.gated.decision, states(report)["gate"]) == (NO, StepState.FAILED)
    assert failed_in_every_report(report, "gate")


@pytest.mark.parametrize("must_improve", [False, True])
async def test_caps_that_end_a_test(tmp_path: Path, must_improve: bool) -> None:
    """Half a proof is none: where the caps leave no room for the repeats, it is 2, and the step says why."""
    case = named("noisy, better")
    # Enough for a trial at its worst, and another; not for a block of four beside the attempt itself.
    cap = '[budget]\nseconds = "1000s"\n'
    short = replace(case, sections=(*case.sections, cap))
    report = await gated(short, tmp_path / "gate", must_improve=must_improve, keep=tmp_path / "kept")
    broken = [step for step in report.gated.steps if step.state is StepState.BROKEN]
    assert report.gated.decision is OPEN, report.line
    assert "the caps leave no room" in broken[0].why
    assert kept_by_ledger(tmp_path / "kept")[0] is False


async def test_a_noisy_gate_tells_medians(tmp_path: Path) -> None:
    """Figures and evidence are those of the repeats; a first run is told as what it is."""
    case = named("noisy, better")
    report = await gated(case, tmp_path / "gate", must_improve=False)
    why = {step.name: step.why for step in report.gated.steps}
    assert why["score"].startswith("its first run, which decides nothing: the repeats do (score ")
    assert why["repeats"].startswith("proven better than the baseline (score ")
    assert report.line == f"accepted: scored: {why['repeats']}"
    assert report.gated.runs > 0
    told = evidence(report)
    assert told["certified"] == {"rule": "noisy", "repeats": report.gated.runs, "replay": None}
    assert told["candidate"]["metrics"] == dict(report.gated.candidate.metrics) if report.gated.candidate else False


async def test_documents(tmp_path: Path) -> None:
    """Each question is a step, in the order in which they are asked, and in every report: the one that failed as a
    failure, those not asked with the reason. A task whose campaigns wait for a person has nobody to ask here.
    """
    case = replace(named("better once, then worse"), sections=(HELDOUT, "[search]\nask = true\n"))
    report = await gated(case, tmp_path / "gate", must_improve=False)
    why, unasked = "its score did not stand when it was run again: 3, then -1", "not asked, since replay did not pass"
    assert list(states(report)) == ["change-applies", "trial", "judge", "score", "replay", "repeats", "held-out"]
    assert f'<failure message="{why}" type="rejected">' in junit(report)
    assert f'<skipped message="{unasked}" />' in junit(report)
    assert [it["ruleId"] for it in sarif(report)["runs"][0]["results"]] == ["replay"]
    assert f"`{why}`" in markdown(report)
    told = {step["name"]: (step["state"], step["why"]) for step in evidence(report)["steps"]}
    assert (told["replay"], told["held-out"]) == (("failed", why), ("skipped", unasked))
    assert evidence(report)["certified"]["replay"]["metrics"] == {"score": -1.0}
