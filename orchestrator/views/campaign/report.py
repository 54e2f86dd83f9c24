"""`blastdoor report`: a campaign as one Markdown document."""

from pathlib import Path

import click

from orchestrator.views.campaign.diff import winners_diff
from orchestrator.views.campaign.export import STDOUT, writing
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_run,
    json_option,
    json_text,
    material_of,
    open_campaign,
    run_option,
    task_argument,
)
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.render.data import record
from orchestrator.views.render.markdown import document


@click.command("report", cls=CampaignCommand)
@click.option("--out", type=click.Path(path_type=Path), default=STDOUT, help="File to write to; defaults to stdout.")
@run_option
@json_option
@task_argument
def command(task: Path, out: Path, number: int | None, as_json: bool) -> None:
    """Write a report in Markdown: the winner, every node, what it cost, and whether it beats the control."""
    with open_campaign(task) as reading:
        state, run = reading.state, chosen_run(reading.state, number)
        reason = state.campaign.stopped if run is state.run else ""
        material = material_of(reading, run, diff=winners_diff(reading, run), reason=reason or "")
        found = sections(material, Place.REPORT)
    text = document(found)
    if as_json:
        told = record(found)
        text = json_text(told | {"winner": told["best"], "accounts": material.accounts.as_rows()}) + "\n"
    with writing(out) as stream:
        stream.write(text)
    if out != STDOUT:
        click.echo(f"written to {out}")
