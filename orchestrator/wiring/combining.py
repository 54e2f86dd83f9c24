"""A combination stage: a run whose candidates combine what an earlier run's left."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.change import Tree
from orchestrator.domain.records import Combining, PoolMember, Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode
from orchestrator.git import Candidates
from orchestrator.ledger import Artifacts
from orchestrator.loop.calling import CallingDoor, MemberSeat
from orchestrator.loop.jobs import Jobs
from orchestrator.loop.judge_modes import CallingMode, judge_mode_of, with_helpers
from orchestrator.loop.pool import Pooling, deliver
from orchestrator.loop.relaying import candidate_bundle
from orchestrator.loop.workbench import Parts
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError
from orchestrator.wiring.beginning import How
from orchestrator.wiring.fitting import fitted
from orchestrator.wiring.options import Options
from orchestrator.wiring.parts import add_inputs
from orchestrator.wiring.reading import read_campaign
from orchestrator.wiring.site import Site
from sandbox import Input, Needs
from sandbox import Mode as JobMode
from sandbox.scratch import scratch


def base_run(state: State, how: How) -> Run | None:
    """The run whose nodes are combined; None where nothing is. A new stage is one of the last run that is none."""
    if how is How.RESUME:
        return state.runs[str(state.run.combine.base)] if state.run.combine else None
    if how is not How.COMBINE:
        return None
    return next(run for run in reversed(list(state.runs.values())) if run.combine is None)


def combining_of(whole: Task, base: Run | None) -> Combining | None:
    """How the pool of a new stage is chosen."""
    if base is None or whole.combine is None:
        return None
    spec = whole.combine
    return Combining(base=base.number, pool=spec.pool, diversity=spec.diversity, serve=spec.serve)


def refuse_no_attempts(options: Options) -> None:
    """A stage of its own has a budget of its own. Raises TaskError."""
    if options.sources["attempts"] not in ("flag", "task"):
        raise TaskError("budget.combination is 0, so there is no attempt for combinations; set it, or use --attempts")


def refuse_no_stage(task: Task) -> None:
    """Before a run that combinations are to follow. Raises TaskError."""
    task.combination()
    if not task.budget.combination:
        raise TaskError("budget.combination is 0, so there is no attempt for combinations; set it")


def combines_next(folder: Path, settings: Settings) -> bool:
    """Whether the campaign's run was begun to be followed by combinations, and is no stage of them itself. A person
    who reviews each round says when it is over.
    """
    with read_campaign(folder, settings) as reading:
        run = reading.state.run
        said = json.loads(run.options)
        return run.combine is None and bool(said.get("combine")) and not said.get("review")


def make_pooling(whole: Task, parts: Parts, site: Site, folder: Path) -> Pooling:
    """Members run as they did when they were submitted, whatever their stage's task says of tuning."""
    jobs = replace(parts.jobs, task=fitted(whole, site), judge_mode=judge_mode_of(whole))
    return Pooling(jobs, lambda name, path: _add(site, name, path), folder)


def refuse_other_members(run: Run, whole: Task) -> None:
    """What combinations may do with members is fixed when their stage begins. Raises TaskError."""
    if run.combine and whole.combine and run.combine.serve != whole.combine.serve:
        raise TaskError(f"combine.serve is another than run {run.number} was begun with; put it back")


def with_members(
    parts: Parts, base: Jobs, pool: Callable[[], Sequence[PoolMember]], read: Callable[[str], Tree]
) -> Parts:
    """The same with a door through which combinations call members of the pool; as it is where they may not. `base`
    are the jobs of the base stage, `read` gives the files of a commit.
    """
    task = parts.task
    if (terms := task.members) is None:
        return parts
    job = base.trial(Mode.SUBMIT).model_copy(
        update={
            "command": terms.serve,
            "mode": JobMode.RELAY,
            "env": with_helpers(base.trial(Mode.SUBMIT).env),
            "limits": CallingMode().member_limits(task, Mode.SUBMIT),
            "needs": Needs(),
        }
    )

    def seats() -> dict[str, MemberSeat]:
        return {it.node: MemberSeat(job, candidate_bundle(read(it.commit)), terms.limits.wall) for it in pool()}

    walls = {mode.value: task.target(mode).limits.wall for mode in (Mode.TUNE, Mode.SUBMIT)}
    return replace(parts, door=CallingDoor(**vars(parts.door), members=seats, wall_s=walls))


def with_pool(parts: Parts, whole: Task, run: Run, artifacts: Artifacts, candidates: Candidates, site: Site) -> Parts:
    """The same with what the run's combinations are made of. Raises TaskError while that is not frozen."""
    refuse_other_members(run, whole)
    if not run.pool:
        raise TaskError(f"the pool of run {run.number} is not frozen yet; go on with `resume`")
    with scratch("members") as beside:
        pool = deliver(artifacts, run.pool, parts.jobs, beside, lambda name, path: _add(site, name, path))
    base = replace(parts.jobs, task=fitted(whole, site), judge_mode=judge_mode_of(whole))
    return with_members(replace(parts, jobs=replace(parts.jobs, pool=pool)), base, lambda: run.pool, candidates.read)


def _add(site: Site, name: str, path: Path) -> Input:
    return add_inputs(site, {name: path})[0]
