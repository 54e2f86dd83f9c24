"""The steps by which a candidate is certified, taken."""

from orchestrator.domain import events as e
from orchestrator.domain.records import Purpose
from orchestrator.loop.again import run_again, run_ended_again
from orchestrator.loop.certifying import (
    CertifyStep,
    JudgeReplay,
    OpenTest,
    Repeat,
    RepeatChampion,
    Replay,
    samples,
)
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import hold_of
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import Workbench


async def certify(bench: Workbench, name: str, step: CertifyStep) -> None:
    """Take one step for a node. Raises Free, or CanNotCompare where the caps leave no room for a repeat."""
    node = bench.state.nodes[name]
    match step:
        case Replay() if any(it.purpose is Purpose.REPLAY and it.judged for it in bench.state.trials_of(name)):
            # The one before landed in another cohort. Only one replay is set aside with the attempt.
            await run_again(bench, name, Purpose.REPLAY, f"{hold_of(node)}/replay")
        case Replay():
            await run_trial(bench, name, Purpose.REPLAY, node.promoted or 0, bench.tree(name))
        case JudgeReplay(trial):
            await judge_trial(bench, trial)
        case OpenTest(champion, cohort):
            _open_test(bench, name, champion, cohort)
        case Repeat():
            await run_again(bench, name, Purpose.REPEAT, f"{hold_of(node)}/repeat")
        case RepeatChampion():
            await _repeat_champion(bench, step)


def _open_test(bench: Workbench, name: str, champion: str, cohort: str) -> None:
    holder = bench.state.nodes[champion]
    reference, against = holder.references[cohort], holder.challenged.get(cohort, 0) + 1
    bench.book.record(
        e.CertificationOpened(
            node=name,
            champion=champion,
            cohort=cohort,
            number=bench.state.campaign.tests + 1,
            reference=reference,
            against=against,
            level=bench.certify.level(reference, against),
        )
    )


async def _repeat_champion(bench: Workbench, step: RepeatChampion) -> None:
    """Of several attempts that want it, each measures it once in turn, until it is measured often enough."""
    async with bench.cohort_lock:
        champion = bench.state.nodes[step.champion]
        if len(samples(bench.state, champion, step.cohort)) < step.count:
            await run_ended_again(bench, champion.id, Purpose.REPEAT)
