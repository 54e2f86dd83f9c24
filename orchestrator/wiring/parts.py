"""Small parts, made from a task and its options."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from orchestrator.awake import Awake
from orchestrator.budget import stops
from orchestrator.budget.stops import Stop
from orchestrator.choices import PARENTS, PRUNERS
from orchestrator.domain.metric import Goal, Ranking
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode
from orchestrator.door import Door, Durable, nothing_is_recorded
from orchestrator.judge.data import DataJudge
from orchestrator.loop.book import Book
from orchestrator.loop.jobs import Image, Jobs
from orchestrator.loop.judge_modes import judge_mode_of
from orchestrator.loop.pruning import Pruning
from orchestrator.loop.selection import Population
from orchestrator.loop.workbench import Parts
from orchestrator.meta.chooser import Learnt, Meta
from orchestrator.meta.credit import Crediting, Price
from orchestrator.meta.policy import Learning
from orchestrator.population import Member, ParentContext, ParentRule
from orchestrator.population.making import Outside
from orchestrator.pruning import Rule, RuleContext
from orchestrator.pruning.making import Outside as OutsidePruner
from orchestrator.tariff import CONTROL, Tariff
from orchestrator.task import PruningSpec, Snapshot, Task
from orchestrator.wiring.fitting import QueuedDoor, check_site, fitted, of_candidates
from orchestrator.wiring.options import Options
from orchestrator.wiring.plugins import make_by_name
from orchestrator.wiring.proposers import make_ranking
from orchestrator.wiring.site import Site
from sandbox import Input, Job, Limits


def make_pruning(task: Task, ranking: Ranking, state: State) -> Pruning | None:
    """With the curves of all trials that the state has."""
    if task.pruning is None:
        return None
    rule = _make_rule(task.pruning, task.pruning.goal or ranking.metrics[0].goal)
    return Pruning(task.pruning, rule, ranking, state)


def _make_rule(spec: PruningSpec, goal: Goal) -> Rule:
    """Raises TaskError for one that cannot be made."""
    rule: Rule = make_by_name(PRUNERS, spec.rule, RuleContext(spec, goal), OutsidePruner)
    return rule


def make_stop(options: Options) -> Stop:
    """Every cap that is set, whichever comes first; no new attempt is opened then."""
    stop = stops.target() | stops.stall_losses()
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


def make_meta(options: Options) -> Meta:
    """What learns from the search's own choices, or does not."""
    learning, credit, price = Learning(options["meta"]), Crediting(options["credit"]), Price(options["price"])
    return Meta(Learnt(learning, credit, price))


def make_selection(options: Options, task: Task, ranking: Ranking, book: Book) -> Population | None:
    """None where every branch starts at the champion. Raises TaskError for a rule that cannot be made."""
    name, run = options["selection"], book.state.run
    if name == "champion" and run.islands == 1:
        return None

    def make(baseline: Member | None) -> ParentRule:
        context = ParentContext(task.search.archive, baseline)
        rule: ParentRule = make_by_name(PARENTS, name, context, Outside)
        return rule

    selection = Population(book.state, ranking, make)
    book.listeners.append(selection.on_event)
    return selection


async def make_parts(
    task: Task, taken: Snapshot, site: Site, awake: Awake | None = None, durable: Durable = nothing_is_recorded
) -> Parts:
    """Bakes the images and stores the inputs, unless they are there. Raises TaskError for a site that cannot do it."""
    awake = awake or Awake()  # without a campaign, nobody asks it
    task = fitted(task, site)
    await site.ask_first(of_candidates(task))
    check_site(task, site)
    image, judge_image = await site.bake(task.image), await site.home.bake(task.judge.image)
    jobs = Jobs(
        task=task,
        judge_mode=judge_mode_of(task),
        snapshot=taken,
        image=image,
        judge_image=judge_image,
        inputs=add_inputs(site, taken.inputs),
        tune_inputs=add_inputs(site, taken.tune_inputs),
        backend=site.name,
        heldout_inputs=add_inputs(site, taken.heldout_inputs),
    )
    await site.keep_apart(jobs.realms())
    home = _home(site, judge_image, task, awake, durable)
    judge = DataJudge(
        door=home,
        jobs={mode: jobs.judge(mode) for mode in Mode},
        files=jobs.judge_mode.files(taken.judge, taken.gold),
    )
    door = make_door(site, image, task.stall.provision, awake, durable)
    return Parts(task=task, jobs=jobs, door=door, home=home, judge=judge, ranking=make_ranking(task))


def add_inputs(site: Site, inputs: Mapping[str, Path]) -> tuple[Input, ...]:
    """Candidate and judge read the same inputs, each where it runs; in either place they go by their content."""
    if site.home.add_input != site.add_input:
        for name, path in inputs.items():
            site.home.add_input(name, path)
    return tuple(site.add_input(name, path) for name, path in inputs.items())


def _home(site: Site, image: Image, task: Task, awake: Awake, durable: Durable) -> Door:
    door = make_door(site.home, image, task.stall.provision, awake, durable)
    if site.judging is None:
        return door
    return QueuedDoor(**vars(door), places=asyncio.Semaphore(site.judging.ceiling(task.judge.limits)))


def make_door(
    site: Site, image: Image, provision_s: float, awake: Awake | None = None, durable: Durable = nothing_is_recorded
) -> Door:
    """Its control decides who is to blame for a failure, so it must not run where a candidate was."""
    control = Job(command=("true",), image=image.of_jobs, limits=CONTROL, fresh=True)
    tariff = Tariff(site.usd_per_second, provision_s, site.spare_s, site.terms)
    return Door(site.backend, control, tariff, name=site.name, awake=awake or Awake(), durable=durable)


def worst_of_chamber(site: Site, limits: Limits) -> float:
    """Dollars of a whole chamber at worst, as far as that is known without asking anybody."""
    door = make_door(site, Image("planned", ""), site.terms.opening_s)
    return door.worst_within(limits, builds=False).microdollars / 1e6
