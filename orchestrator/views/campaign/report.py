"""`blastdoor report`: a campaign as one document, in Markdown or HTML."""

from pathlib import Path
from typing import Any

import click

from orchestrator.views.campaign.diff import winners_diff
from orchestrator.views.campaign.export import STDOUT, writing
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_run,
    given_settings,
    json_option,
    json_text,
    material_of,
    open_campaign,
    run_option,
    task_argument,
)
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.render.data import record
from orchestrator.views.render.html import document as html_document
from orchestrator.views.render.markdown import document
from orchestrator.views.render.model import Section
from orchestrator.wiring.reading import AB_FILE


@click.command("report", cls=CampaignCommand)
@click.option("--out", type=click.Path(path_type=Path), default=STDOUT, help="File to write to; defaults to stdout.")
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    help="File for the report as one HTML page with plots, which loads nothing; - is stdout.",
)
@run_option
@json_option
@task_argument
def command(task: Path, out: Path, html: Path | None, number: int | None, as_json: bool) -> None:
    """Write a report in Markdown: the winner, every node, what it cost, and whether it beats the control.

    Of the folder of a comparison: which side is better, how sure that is, and every pair.
    """
    if html and (as_json or out != STDOUT):
        raise click.UsageError(
            f"--html is a file and a format of its own; leave out {'--json' if as_json else '--out'}"
        )
    found, more = _of_ab(task) if (task / AB_FILE).is_file() else _of_campaign(task, number)
    text = json_text(record(found) | more) + "\n" if as_json else (html_document if html else document)(found)
    out = html or out
    with writing(out) as stream:
        stream.write(text)
    if out != STDOUT:
        click.echo(f"written to {out}")


def _of_campaign(task: Path, number: int | None) -> tuple[list[Section], dict[str, Any]]:
    """Its sections, and what only programs get."""
    with open_campaign(task) as reading:
        state, run = reading.state, chosen_run(reading.state, number)
        reason = state.campaign.stopped if run is state.run else ""
        material = material_of(reading, run, diff=winners_diff(reading, run), reason=reason or "")
        found = sections(material, Place.REPORT)
    return found, {"winner": record(found)["best"], "accounts": material.accounts.as_rows()}


def _of_ab(folder: Path) -> tuple[list[Section], dict[str, Any]]:
    # With them comes a library for numbers.
    from orchestrator.views.campaign.sections.ab import AbMaterial, ab_sections
    from orchestrator.wiring.ab import read_comparing

    return ab_sections(AbMaterial(read_comparing(folder, given_settings()), folder)), {}
