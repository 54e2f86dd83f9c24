"""What a campaign would do and may cost, before the first dollar."""

from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.records import Spent
from orchestrator.loop.backstop import side_by_side, walls_of_agent, walls_of_search
from orchestrator.loop.width import Shape
from orchestrator.settings import Settings
from orchestrator.tariff import Tariff
from orchestrator.task import Task, load_task, snapshot
from orchestrator.wiring.beginning import How
from orchestrator.wiring.engine import docker_config, local_ceiling, spare_of
from orchestrator.wiring.fitting import fitted
from orchestrator.wiring.ledgers import has_ledger
from orchestrator.wiring.models import asks_a_model, models_lines, ready_models, worst_of_asking
from orchestrator.wiring.opening import shape_of
from orchestrator.wiring.options import Flags, Options, resolve
from orchestrator.wiring.playbooks import task_pages
from orchestrator.wiring.proposers import make_proposer
from orchestrator.wiring.reading import campaign_folder, read_campaign
from orchestrator.wiring.secrets import refuse_secrets
from orchestrator.wiring.sites import backend_config, price_of
from sandbox import FREE, BackendConfig, DockerConfig


@dataclass(frozen=True)
class Plan:
    """`attempt_s` is what one attempt reserves; `measured_s` what one took on average so far, if any was run.

    `beyond` says what comes on top of all figures, if anything does; `models` has a line for each role that asks one.
    """

    options: Options
    shape: Shape
    attempt_s: float
    attempt_usd: float
    attempts: int | None
    usd: float
    wall_s: float
    measured_s: float | None
    beyond: str
    models: list[str]


def plan_campaign(folder: Path, how: How, flags: Flags, settings: Settings) -> Plan:
    """Raises TaskError for a task that would not run. Starts nothing, writes nothing."""
    task = load_task(folder)
    tree = snapshot(task, folder).tree
    options = resolve(flags, task, settings)
    config = backend_config(settings, options.site)
    proposer = make_proposer(options["proposer"], task, tree=tree, agent=options["agent"])
    ready = None
    if asks_a_model(options):
        refuse_secrets(task, tree, task_pages(task, folder))
        ready = ready_models(task, options, settings)
    if options["control"]:
        make_proposer(options["control"], task, control=True)
    form = shape_of(task, options, proposer, local_ceiling(side_by_side(task)))
    tariffs = {True: _tariff(config, settings, task), False: _tariff(docker_config(settings), settings, task)}
    asked = fitted(task, options.site.gpu, tariffs[True].opening_s)
    walls = walls_of_search(asked) + (walls_of_agent(asked) if options["proposer"] == "agent" else [])
    worst = sum((tariffs[it.away].worst_within(it.limits, builds=it.builds) for it in walls), Spent())
    if ready:
        worst += Spent(microdollars=worst_of_asking(ready.allowances).microdollars)
    usd, seconds = worst.microdollars / 1e6, worst.milliseconds / 1000
    attempts = options["attempts"]
    return Plan(
        options=options,
        shape=form,
        attempt_s=seconds,
        attempt_usd=usd,
        attempts=attempts,
        usd=usd * (attempts or 0),
        wall_s=seconds * (attempts or 0) / form.width,
        measured_s=_measured(folder, settings) if how is not How.START else None,
        beyond=task.certify.certify().beyond,
        models=models_lines(task, options, settings),
    )


def _tariff(config: BackendConfig, settings: Settings, task: Task) -> Tariff:
    terms = FREE if isinstance(config, DockerConfig) else config.terms
    return Tariff(price_of(config, settings.usd_per_hour_most), task.stall.provision, spare_of(config), terms)


def _measured(folder: Path, settings: Settings) -> float | None:
    if not has_ledger(campaign_folder(folder)):
        return None
    with read_campaign(folder, settings) as reading:
        spent = [node.spent.milliseconds for node in reading.state.nodes.values() if node.verdict]
    return sum(spent) / len(spent) / 1000 if spent else None
