"""Small parts, made from a task and its options."""

from orchestrator.budget import Stop, stops
from orchestrator.domain.metric import Ranking
from orchestrator.domain.verdict import Mode, Tier
from orchestrator.door import Door
from orchestrator.judge.data import DataJudge, judge_files
from orchestrator.judge.helpers import judge_helpers
from orchestrator.loop.jobs import Image, Jobs
from orchestrator.loop.workbench import Parts
from orchestrator.proposers import Grid, Injected, Proposer, Random
from orchestrator.task import Snapshot, Task, TaskError
from orchestrator.wiring.options import Options
from orchestrator.wiring.site import Site
from sandbox import Job, Limits


def make_proposer(name: str, task: Task, *, control: bool = False) -> Proposer:
    """Raises TaskError for one that needs a space where the task has none."""
    if name == "inject":
        return Injected()
    if task.parameters is None:
        raise TaskError(f"the proposer {name} needs [parameters] in the task; add them, or use --proposer inject")
    space = task.parameters.space
    if name == "grid":
        return Grid(space, task.tune.trials if task.tune and not control else 1)
    return Random(space, branching=not control)


def make_ranking(task: Task) -> Ranking:
    return Ranking(tuple(spec.metric() for spec in task.metrics), task.ranking.rule)


def make_stop(options: Options) -> Stop:
    """Every cap that is set, whichever comes first; no new attempt is opened then."""
    stop = stops.target()
    if options["attempts"] is not None:
        stop |= stops.attempts(options["attempts"])
    if options["usd"] is not None:
        stop |= stops.spent(usd=options["usd"])
    if options["tokens"] is not None:
        stop |= stops.tokens(options["tokens"])
    if options["seconds"] is not None:
        stop |= stops.chamber_time(seconds=options["seconds"])
    if options["patience"] is not None:
        stop |= stops.no_improvement(attempts=options["patience"])
    return stop


def make_deadline(options: Options) -> Stop:
    """The cap on the clock; what is under way is ended then."""
    return stops.never() if options["wall"] is None else stops.elapsed(seconds=options["wall"])


async def make_parts(task: Task, taken: Snapshot, site: Site) -> Parts:
    """Bakes the images and stores the inputs, unless they are there. Raises TaskError for a site that can not do it."""
    check_site(task, site)
    image, judge_image = await site.bake(task.image), await site.bake(task.judge.image)
    jobs = Jobs(
        task=task,
        snapshot=taken,
        image=image,
        judge_image=judge_image,
        inputs=tuple(site.add_input(name, path) for name, path in taken.inputs.items()),
        tune_inputs=tuple(site.add_input(name, path) for name, path in taken.tune_inputs.items()),
        backend=site.name,
    )
    judge = DataJudge(
        door=make_door(site, judge_image, task.stall.provision),
        jobs={mode: jobs.judge(mode) for mode in Mode},
        files=judge_files(taken.judge, taken.gold, judge_helpers(Tier(task.judge.mode))),
    )
    door = make_door(site, image, task.stall.provision)
    return Parts(task=task, jobs=jobs, door=door, judge=judge, ranking=make_ranking(task))


def check_site(task: Task, site: Site) -> None:
    """Raises TaskError where the judge must call candidates and the backend carries no frames."""
    can = site.backend.capabilities
    if task.judge.mode == "relay" and not can.relay:
        where = f"this backend ({can.boundary}) has no relay"
        raise TaskError(f'judge.mode is "relay", but {where}; use another backend, or judge.mode = "data"')


def make_door(site: Site, image: Image, provision_s: float) -> Door:
    control = Job(command=("true",), image=image.name, limits=Limits(wall=10, build=10, grace=1))
    return Door(site.backend, control, site.usd_per_second, provision_s, site.spare_s)
