"""What a campaign would do and may cost, before the first dollar."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.records import Role, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.loop.backstop import (
    Walls,
    walls_of_agent,
    walls_of_attempt,
    walls_of_search,
    walls_of_trial,
    worst_of_walls,
)
from orchestrator.loop.jobs import Image
from orchestrator.loop.judge_modes import judge_mode_of
from orchestrator.loop.width import Shape
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Task, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.beginning import How
from orchestrator.wiring.combining import refuse_no_stage
from orchestrator.wiring.fitting import ceiling_of, check_site, fitted
from orchestrator.wiring.least import check_cap
from orchestrator.wiring.ledgers import has_ledger
from orchestrator.wiring.models import asks_a_model, least_of_asking, models_lines, ready_models, worst_of_asking
from orchestrator.wiring.opening import refuse_no_search, shape_of
from orchestrator.wiring.options import Options, resolve
from orchestrator.wiring.parts import make_door
from orchestrator.wiring.playbooks import task_pages
from orchestrator.wiring.proposers import make_proposer, make_searcher
from orchestrator.wiring.reading import campaign_folder, read_campaign
from orchestrator.wiring.secrets import refuse_secrets
from orchestrator.wiring.site import Site
from orchestrator.wiring.sites import planned_site


@dataclass(frozen=True)
class Planned:
    """Where it would run, and at what price: of a second of a trial, of a trial at worst, of a second of the judge.

    `asked_later`: the price is the provider's at that time, and nobody said how high it may be.
    """

    backend: str
    judge: str
    usd_per_second: float | None
    trial_usd: float | None
    judge_usd_per_second: float
    asked_later: bool


@dataclass(frozen=True)
class More:
    """What comes beside the attempts of the search: so many of what, and all of them at worst."""

    what: str
    count: int
    usd: float | None
    wall_s: float


@dataclass(frozen=True)
class Plan:
    """`attempt_s` is what one attempt reserves; `measured_s` what one took on average so far, if any was run.

    Dollars are None where the provider tells its price only later.
    `beyond` says what comes on top of all figures, if anything does; `models` has a line for each role that asks one.
    `more` is what the control, combinations and minimising may take, in figures of their own.
    """

    options: Options
    shape: Shape
    attempt_s: float
    attempt_usd: float | None
    attempts: int | None
    usd: float | None
    wall_s: float
    measured_s: float | None
    beyond: str
    models: list[str]
    site: Planned
    more: tuple[More, ...] = ()

    @property
    def total_usd(self) -> float | None:
        found = [self.usd, *(it.usd for it in self.more)]
        return None if None in found else sum(it for it in found if it is not None)


def plan_campaign(folder: Path, how: How, flags: Flags, settings: Settings) -> Plan:
    """Raises TaskError for a task that would not run. Starts nothing, writes nothing."""
    task = load_task(folder)
    tree = snapshot(task, folder).tree
    options = resolve(flags, task, settings)
    site = planned_site(settings, options.site)
    task = fitted(task, site)
    check_site(task, site)
    proposer = make_searcher(options, task, tree)
    ready = None
    if asks_a_model(options):
        refuse_secrets(task, tree, task_pages(task, folder))
        ready = ready_models(task, options, settings)
    if options["control"]:
        make_proposer(options["control"], task, control=True)
    if options["combine"]:
        refuse_no_stage(task)
        refuse_no_search(task, folder, flags, settings)
    is_agent = "agent" in options.proposers
    form = shape_of(task, options, proposer, ceiling_of(task, site, agent=is_agent))
    judge_mode = judge_mode_of(task)
    attempt, *tuning = walls_of_search(judge_mode, task)
    worst = sum((_worst(site, task, walls) for walls in (attempt, walls_of_agent(task) if is_agent else [])), Spent())
    if how is not How.RESUME:
        baseline = _worst(site, task, walls_of_attempt(judge_mode, task, Role.BASELINE, []))
        least = worst.microdollars + (least_of_asking(task, ready) if ready else 0) if options["attempts"] else 0
        check_cap(max(baseline.microdollars, least), options, site.name)
    worst += sum((_worst(site, task, walls) for walls in tuning), Spent())
    if ready:
        worst += Spent(microdollars=worst_of_asking(ready.allowances).microdollars)
    where, seconds = _planned(site, task), worst.milliseconds / 1000
    usd = None if where.asked_later else worst.microdollars / 1e6
    attempts = options["attempts"]
    return Plan(
        options=options,
        shape=form,
        attempt_s=seconds,
        attempt_usd=usd,
        attempts=attempts,
        usd=None if usd is None else usd * (attempts or 0),
        wall_s=seconds * (attempts or 0) / form.width,
        measured_s=_measured(folder, settings) if how is not How.START else None,
        beyond=task.certify.certify().beyond,
        models=models_lines(task, options, settings),
        site=where,
        more=tuple(_more(task, site, options, flags, settings, form.width)),
    )


def _more(task: Task, site: Site, options: Options, flags: Flags, settings: Settings, width: int) -> Iterator[More]:
    def at_worst(what: str, count: int, one: Spent) -> More:
        later = site.priced_later and not site.usd_per_second(task.limits)
        usd = None if later else count * one.microdollars / 1e6
        return More(what, count, usd, count * one.milliseconds / 1000 / width)

    stages = [("", task)]
    if options["control"]:
        walls, *_ = walls_of_search(judge_mode_of(task), task)
        yield at_worst("attempts of the control", options["attempts"] or 0, _worst(site, task, walls))
    if options["combine"]:
        stage = fitted(task.combination(), site)
        own = resolve(flags.of_a_stage(), stage, settings)
        one = sum((_worst(site, stage, walls) for walls in walls_of_search(judge_mode_of(stage), stage)), Spent())
        if asks_a_model(own):
            asked = worst_of_asking(ready_models(stage, own, settings).allowances)
            one += Spent(microdollars=asked.microdollars)
        yield at_worst("attempts of combinations", own["attempts"] or 0, one)
        stages.append((" of the best combination", stage))
    for what, of in stages if options["minimise"] else ():
        one = _worst(site, of, walls_of_trial(judge_mode_of(of), of, Mode.SUBMIT))
        yield at_worst(f"trials of minimising{what}", options["minimisation"] or 0, one)


def _planned(site: Site, task: Task) -> Planned:
    trials = [it for it in walls_of_trial(judge_mode_of(task), task, Mode.SUBMIT) if it.away]
    usd = site.usd_per_second(task.limits)
    asked_later = site.priced_later and not usd
    return Planned(
        backend=site.name,
        judge=site.home.name,
        usd_per_second=None if asked_later else usd,
        trial_usd=None if asked_later else _worst(site, task, trials[:1]).microdollars / 1e6,
        judge_usd_per_second=site.home.usd_per_second(task.judge.limits),
        asked_later=asked_later,
    )


def _worst(site: Site, task: Task, walls: Sequence[Walls]) -> Spent:
    """Just what the campaign would set aside for them."""
    places = ((site, True), (site.home, False))
    doors = [(make_door(place, Image("planned", ""), task.stall.provision), away) for place, away in places]
    return sum((worst_of_walls(door.tariff, walls, away=away) for door, away in doors), Spent())


def _measured(folder: Path, settings: Settings) -> float | None:
    if not has_ledger(campaign_folder(folder)):
        return None
    with read_campaign(folder, settings) as reading:
        spent = [node.spent.milliseconds for node in reading.state.nodes.values() if node.verdict]
    return sum(spent) / len(spent) / 1000 if spent else None
