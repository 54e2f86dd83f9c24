"""`blastdoor init`: a new task that works, to be changed into one's own."""

from pathlib import Path

import click

from orchestrator.task import TaskError, write_template
from orchestrator.views.campaign.opening import json_option, print_json
from orchestrator.views.campaign.sections.material import typed


@click.command("init")
@json_option
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path, as_json: bool) -> None:
    """Create a small, commented task in a new FOLDER."""
    try:
        write_template(folder)
    except TaskError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json({"task": str(folder), "files": sorted(str(it) for it in folder.rglob("*") if it.is_file())})
        return
    click.echo(f"{folder} is a task that works; read {folder / 'blastdoor.toml'}, then:")
    check, run = typed(folder, "check"), typed(folder, "run")
    click.echo(f"  {check}    is it wired right, how noisy, what does one run cost")
    click.echo(f"  {run:<{len(check)}}    search")
