"""`blastdoor chart` and `blastdoor tree`: a run as a picture in the terminal."""

from pathlib import Path

import click

from orchestrator.domain.goodput import in_order
from orchestrator.domain.node import run_of
from orchestrator.text import printable
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_run,
    json_option,
    metrics_of,
    open_campaign,
    print_json,
    run_option,
    task_argument,
)
from orchestrator.views.campaign.points import series_of
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sections.material import node_record
from orchestrator.views.campaign.tree import Layout, family_for, tree
from orchestrator.views.render.chart import chart
from orchestrator.views.render.data import series_record


@click.command("chart", cls=CampaignCommand)
@click.option("--metric", "name", help="Metric to plot; defaults to the first.")
@click.option("--width", type=click.IntRange(min=40, max=1000), help="Columns; defaults to the terminal's.")
@click.option("--height", type=click.IntRange(min=8, max=1000), help="Lines; defaults to the terminal's.")
@run_option
@json_option
@task_argument
def chart_command(
    task: Path, name: str | None, width: int | None, height: int | None, number: int | None, as_json: bool
) -> None:
    """Plot every node of a run as a dot, score over order, with the best so far as a stair."""
    with open_campaign(task, glance=True, dotted=True) as reading:
        run = chosen_run(reading.state, number)
        metrics = metrics_of(reading, run)
        found = [metric for metric in metrics if name in (None, metric.name)]
        if not found:
            known = ", ".join(printable(metric.name) for metric in metrics)
            raise click.UsageError(f"there is no metric {printable(name or '')}; metrics are {known}")
        series = series_of(reading.state, found[0], run)
    if as_json:
        print_json({"run": run.number, **series_record(series)})
        return
    screen = open_screen()
    size = {"width": width or screen.width, "height": height or screen.height - 1}
    screen.lines(chart(series, unicode=screen.unicode, **size))


@click.command("tree", cls=CampaignCommand)
@click.option("--depth", type=click.IntRange(min=0), help="Number of levels below the root.")
@click.option("--all", "everything", is_flag=True, help="Show every node, even if there are many.")
@run_option
@json_option
@task_argument
def tree_command(task: Path, depth: int | None, everything: bool, number: int | None, as_json: bool) -> None:
    """Show the tree of a run: what became of each node, and the path to the best."""
    with open_campaign(task, glance=not as_json) as reading:
        run = chosen_run(reading.state, number)
        metrics = metrics_of(reading, run)
        if as_json:
            print_json([node_record(reading.state, node) for node in in_order(reading.state, run)])
            return
        screen = open_screen()
        count = sum(run_of(node.id) == run.number for node in reading.state.node_lines())
        family = None if everything else family_for(count, screen.height)
        drawn = tree(reading.state, metrics, Layout(screen.width, screen.unicode, depth, family), run)
    screen.line(drawn)
