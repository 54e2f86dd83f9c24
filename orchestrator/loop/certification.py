"""The steps by which a candidate is certified, taken."""

from orchestrator.domain import events as e
from orchestrator.domain.records import Purpose, Role
from orchestrator.loop.again import run_again, run_once, set_aside
from orchestrator.loop.certifying import (
    CertifyStep,
    JudgeReplay,
    MeasureChampion,
    OpenTest,
    Replay,
    RunBlock,
    is_measured,
    next_in_test,
)
from orchestrator.loop.judging import judge_trial
from orchestrator.loop.money import hold_of
from orchestrator.loop.trial import run_trial
from orchestrator.loop.workbench import Workbench


async def certify(bench: Workbench, name: str, step: CertifyStep) -> None:
    """Take one step for a node. Raises Free, or CanNotCompare where the caps leave no room for what has to be run."""
    node = bench.state.nodes[name]
    match step:
        case Replay() if any(it.purpose is Purpose.REPLAY and it.judged for it in bench.state.trials_of(name)):
            # The one before landed in another cohort. Only one replay is set aside with the attempt.
            await run_again(bench, name, Purpose.REPLAY, f"{hold_of(node)}/replay")
        case Replay():
            await run_trial(bench, name, Purpose.REPLAY, node.promoted or 0)
        case JudgeReplay(trial):
            await judge_trial(bench, trial)
        case OpenTest():
            _open_test(bench, name, step)
        case RunBlock():
            await _run_block(bench, name, step)
        case MeasureChampion():
            await _measure_champion(bench, name, step)


def _open_test(bench: Workbench, name: str, step: OpenTest) -> None:
    holder = bench.state.nodes[step.champion]
    challenged = holder.challenged.get(step.cohort, 0)
    if bench.state.nodes[name].role is Role.MINIMISED:
        # Nothing can become champion by it. To spend less than all of the error would only hide that it is worse.
        reference, against, level = holder.references.get(step.cohort, 0), challenged, bench.certify.error
    else:
        reference, against = holder.references[step.cohort], challenged + 1
        level = bench.certify.level(reference, against)
    bench.book.record(
        e.CertificationOpened(
            node=name,
            champion=step.champion,
            cohort=step.cohort,
            number=bench.state.campaign.tests + 1,
            reference=reference,
            against=against,
            level=level,
            blocks=bench.certify.blocks,
            both=step.both,
        )
    )


async def _run_block(bench: Workbench, name: str, first: RunBlock) -> None:
    """What is left of a block, one run right after the other, all paid for beforehand.

    Nobody waits for anybody here, so a champion's run and a candidate's meet the same neighbours.
    """
    what = f"a block of {first.left} more runs of {name} and {first.champion}"
    async with set_aside(bench, name, f"{hold_of(bench.state.nodes[name])}/block", first.left, what):
        step: RunBlock | None = first
        for _ in range(first.left):
            if step is None or (step.champion, step.block) != (first.champion, first.block):
                break
            if step.mine:
                await run_once(bench, name, Purpose.REPEAT)
            else:
                await run_once(bench, name, Purpose.REFERENCE, step.champion)
            step = next_in_test(bench.state, name, bench.ranking)


async def _measure_champion(bench: Workbench, name: str, step: MeasureChampion) -> None:
    """Of several attempts that want it, each measures it once in turn, until it is measured often enough."""
    async with bench.cohort_lock:
        champion = bench.state.nodes[step.champion]
        if is_measured(bench.state, champion, step.cohort, bench.ranking, bench.certify):
            return
        hold = f"{hold_of(bench.state.nodes[name])}/reference"
        async with set_aside(bench, name, hold, 1, f"one more run of {champion.id}"):
            await run_once(bench, name, Purpose.REFERENCE, champion.id)
