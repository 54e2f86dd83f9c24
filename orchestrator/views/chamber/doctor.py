"""`blastdoor doctor`: does this machine hold what a chamber promises?"""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from orchestrator import logs
from orchestrator.settings import Settings
from orchestrator.views.chamber.contract import show_contract, show_posture
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.options import resolve_site
from orchestrator.wiring.site import About, Provider
from orchestrator.wiring.sites import make_provider
from sandbox import Gpu, Refused
from sandbox.conformance.contract import CONTRACT


@click.command("doctor")
@click.option("--runtime", "runtimes", multiple=True, help="Runtime to examine; defaults to all known ones.")
@site_options("standing", "runtime")
@click.option("--only", multiple=True, metavar="ROW", help="Row of the contract to run; can be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(
    settings: Settings, /, runtimes: tuple[str, ...], only: tuple[str, ...], as_json: bool, **given: Any
) -> int:
    """Check that chambers on this machine, or at the provider that --backend names, keep their promises.

    Shows the parts of the engine or the account that pays, the posture of a chamber, and the contract that every
    backend must keep. At a provider it rents what it examines, which costs a little.
    """
    if unknown := [name for name in only if name not in CONTRACT]:
        raise click.UsageError(f"no row {unknown[0]!r}; rows are {', '.join(CONTRACT)}")
    logs.configure(logging.ERROR)  # rows break things on purpose, and the sandbox would warn of each
    chosen = resolve_site(flags_of(given), settings)
    about, examined = examined_by(settings, chosen, runtimes)
    console = Console(quiet=as_json, highlight=False)
    _show_about(console, about)
    rows: list[dict[str, Any]] = []
    posture: dict[str, Any] = {}
    for provider in examined.values():
        posture, found = run_in_loop(_examine(console, provider, settings.image, chosen.gpu, only or tuple(CONTRACT)))
        rows += found
    broken = [row for row in rows if row["holds"] is False]
    if as_json:
        seen = {"posture": posture} if about.runtimes is None else {}
        click.echo(json.dumps({about.key: about.record, **seen, "rows": rows}, indent=2))
    kept = sum(row["holds"] is True for row in rows)
    console.print(f"\n{kept} rows hold, {len(broken)} broken, on {', '.join(examined)}", style="bold")
    return Exit.NOT_GOOD if broken else Exit.OK


def examined_by(settings: Settings, chosen: SiteChoice, runtimes: Sequence[str]) -> tuple[About, dict[str, Provider]]:
    """What a provider says of itself, and what is to be examined there by its name: each runtime, where it has several.

    Raises UsageError for a runtime where nobody has a choice of them.
    """
    provider = make_provider(settings, chosen)
    about = run_in_loop(provider.about())
    if about.runtimes is None:
        if runtimes:
            raise click.UsageError("--runtime is examined on one's own engine; leave it out, or --backend")
        return about, {provider.planned().name: provider}
    names = runtimes or about.runtimes
    if not names:
        raise Refused("the engine has neither runc nor runsc; name its runtime with --runtime")
    return about, {name: make_provider(settings, replace(chosen, runtime=name)) for name in names}


def _show_about(console: Console, about: About) -> None:
    table = Table(*about.columns, title=about.title, title_justify="left")
    for cells, good in about.rows:
        table.add_row(*cells, style=None if good else "yellow")
    console.print(table)


async def _examine(
    console: Console, provider: Provider, image: str, gpu: Gpu | None, names: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    posture = await show_posture(console, provider, image, gpu)
    return posture, await show_contract(console, provider.subject(), names)
