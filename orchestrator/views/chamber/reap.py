"""`blastdoor reap`: remove what an earlier crash left."""

import json
from typing import Any

import click

from orchestrator.settings import Settings
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.wiring.options import resolve_site
from orchestrator.wiring.sites import make_provider


@click.command("reap")
@site_options("gpu", "standing", "runtime")
@click.option("--json", "as_json", is_flag=True, help="Print the names as a JSON list.")
@click.pass_obj
def command(settings: Settings, /, as_json: bool, **given: Any) -> None:
    """Remove what crashed processes left behind, on your own engine or at the provider that --backend names.

    Exit code 3 when something could not be removed; stderr names it.
    """
    chosen = resolve_site(flags_of(given), settings, anywhere=True)
    ended, left = run_in_loop(make_provider(settings, chosen).reap())
    _tell(ended, left, as_json=as_json)
    if left:
        raise click.exceptions.Exit(Exit.NO_ENGINE)


def _tell(ended: list[str], left: list[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(ended))
    else:
        for name in ended:
            click.echo(f"removed {name}")
        if ended or left:
            click.echo(f"{len(ended)} removed" + (f", {len(left)} could not be removed" if left else ""))
        else:
            click.echo("nothing was left behind")
    for name in left:
        click.echo(f"could not remove {name}: run `blastdoor reap` again once the provider answers", err=True)
