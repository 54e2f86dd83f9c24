"""A task as it is run at a site: what the site changes of it, what it lacks for it, how much of it fits at a time."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.verdict import Mode
from orchestrator.door import Door, Overseer, Ran
from orchestrator.loop.judge_modes import judge_mode_of
from orchestrator.task import Task, TaskError
from orchestrator.wiring.site import Site
from sandbox import Bundle, Job, Limits, Listener, Talk


def fitted(task: Task, site: Site) -> Task:
    """With the GPU that was asked for, in trials alone; and with as long for a chamber as the provider may take."""
    given: dict[str, Any] = {}
    gpu = None if site.without_gpu else site.gpu or task.limits.gpu
    if gpu != task.limits.gpu:
        given["limits"] = task.limits.model_copy(update={"gpu": gpu})
        if task.tune and task.tune.limits:
            limits = task.tune.limits.model_copy(update={"gpu": gpu})
            given["tune"] = task.tune.model_copy(update={"limits": limits})
    if (opening_s := site.terms.opening_s) > task.stall.provision:
        given["stall"] = task.stall.model_copy(update={"provision": opening_s})
    return task.model_copy(update=given) if given else task


def ceiling_of(task: Task, site: Site, *, agent: bool = False) -> int:
    """How many attempts fit at once. A judge at home waits for its turn, unless it must be there with the candidate."""
    task = fitted(task, site)
    if site.judging is None:
        return site.ceiling(judge_mode_of(task).side_by_side(task))
    fits = [site.ceiling(task.limits)]
    if task.judge.mode.terms.calls:
        fits.append(site.judging.ceiling(task.judge.limits))
    if agent:
        fits.append(site.judging.ceiling(task.agent.limits))
    return min(fits)


def check_site(task: Task, site: Site) -> None:
    """Raises TaskError for what the task needs and the backend lacks, Refused for what costs more than was allowed."""
    can = site.backend.capabilities
    for wanted, name in (
        (task.pruning, "[pruning]"),
        (task.stall.heartbeat, "stall.heartbeat"),
        (task.trial.steps is not None and not task.judge.mode.terms.calls, "trial.steps"),
    ):
        if wanted and not (can.stop and can.live_log):
            raise TaskError(f"{name} needs a backend that can stop a trial, which {site.name} cannot; take it out")
    if misfit := judge_mode_of(task).misfit(can, site.name, away=site.judging is not None):
        raise TaskError(f'judge.mode is "{task.judge.mode}", {misfit}')
    for limits in of_candidates(task):
        site.usd_per_second(limits)


def of_candidates(task: Task) -> list[Limits]:
    """The limits of all that runs away from home."""
    trials = [task.target(mode).limits for mode in Mode]
    return trials + [guard.limits for guard in task.guards if guard.place != "judge"]


@dataclass(frozen=True)
class QueuedDoor(Door):
    """A door at home, where fewer judges fit at a time than there are candidates elsewhere: each waits for its turn."""

    places: asyncio.Semaphore = field(kw_only=True)

    async def run(
        self,
        job: Job,
        bundle: Bundle,
        listener: Listener | None = None,
        overseer: Overseer | None = None,
        talk: Talk | None = None,
    ) -> Ran:
        async with self.places:
            return await super().run(job, bundle, listener, overseer, talk)
