"""`run --dry-run`: what would run, with which values from where, and what it may cost at worst."""

from dataclasses import asdict
from pathlib import Path

import click

from orchestrator.domain import figures
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.text import printable
from orchestrator.views.campaign.opening import print_json
from orchestrator.views.exits import Exit
from orchestrator.wiring.beginning import How
from orchestrator.wiring.planning import Planned, plan_campaign


def show_plan(task: Path, how: How, flags: Flags, settings: Settings, as_json: bool) -> int:
    plan = plan_campaign(task, how, flags, settings)
    if as_json:
        print_json({**asdict(plan), "options": dict(plan.options.values), "sources": dict(plan.options.sources)})
        return Exit.OK
    for name, source in plan.options.sources.items():
        if plan.options[name] is not None:
            click.echo(f"{name:<10} {plan.options.shown(name)}  ({source})")
    for line in plan.models:
        click.echo(printable(line))
    click.echo(plan.shape.why)
    for line in _price(plan.site):
        click.echo(line)
    if plan.beyond:
        click.echo(f"{plan.beyond}; they are not in the figures below")
    click.echo(
        f"one attempt sets aside: {figures.duration(plan.attempt_s)} in chambers, {_dollars(plan.attempt_usd, 4)}"
    )
    if plan.attempts is not None:
        wall = figures.duration(plan.wall_s)
        click.echo(f"{plan.attempts} attempts at worst: {_dollars(plan.usd, 2)}, {wall} on the clock at this width")
    for it in plan.more:
        wall = figures.duration(it.wall_s)
        click.echo(f"{it.count} {it.what} at worst: {_dollars(it.usd, 2)} more, {wall} on the clock")
    if plan.measured_s is not None:
        click.echo(f"measured so far: {figures.duration(plan.measured_s)} in chambers for one attempt")
    else:
        click.echo("nothing is measured yet; blastdoor check says what one run takes")
    return Exit.OK


def _dollars(usd: float | None, digits: int) -> str:
    return "dollars not known yet" if usd is None else f"${usd:.{digits}f}"


def _price(site: Planned) -> list[str]:
    """Nothing where all is on one machine and costs nothing."""
    if site.judge == site.backend and not site.usd_per_second:
        return []
    if site.usd_per_second is None:
        price = "at a price that is asked for when it begins, and is in no figure below: usd_per_hour_most sets a bound"
    else:
        price = f"at ${site.usd_per_second:.7f} a second (${site.usd_per_second * 3600:.2f} an hour)"
        price += f", {_dollars(site.trial_usd, 4)} at worst for one trial and its control job"
    judge = f"${site.judge_usd_per_second:.7f} a second" if site.judge_usd_per_second else "which costs nothing"
    return [printable(f"candidates run on {site.backend}, {price}"), f"the judge runs on {site.judge}, {judge}"]
