"""`blastdoor doctor`: does this machine hold what a chamber promises?"""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from orchestrator import logs
from orchestrator.settings import Settings
from orchestrator.views.chamber.contract import show_contract, show_posture
from orchestrator.views.chamber.rented import examine_rented
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.wiring import docker_config, resolve_site
from sandbox import DockerConfig, Gpu, Refused
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.docker import DockerSubject
from sandbox.engine_report import EngineReport, examine_engine


@click.command("doctor")
@click.option("--runtime", "runtimes", multiple=True, help="Runtime to examine; all known ones when left out.")
@site_options("standing", "runtime")
@click.option("--only", multiple=True, metavar="ROW", help="Rows of the contract to run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(
    settings: Settings, /, runtimes: tuple[str, ...], only: tuple[str, ...], as_json: bool, **given: Any
) -> int:
    """Check that this machine, or the provider that --backend names, keeps what a chamber promises.

    Shows the engine's parts or who pays, the posture of a chamber, and the contract that every backend must keep. At
    a provider it rents what it examines: that costs a little.
    """
    if unknown := [name for name in only if name not in CONTRACT]:
        raise click.UsageError(f"no row {unknown[0]!r}; rows are {', '.join(CONTRACT)}")
    logs.configure(logging.ERROR)  # rows break things on purpose, and the sandbox would warn of each
    chosen = resolve_site(flags_of(given), settings)
    if chosen.backend != "docker":
        if runtimes:
            raise click.UsageError("--runtime is examined on one's own engine; leave it out, or --backend")
        return examine_rented(settings, chosen, only or tuple(CONTRACT), as_json)
    console = Console(quiet=as_json, highlight=False)
    report = asyncio.run(examine_engine(docker_config(settings)))
    _show_engine(console, report)
    examined = runtimes or report.runtimes
    if not examined:
        raise Refused("the engine has neither runc nor runsc; name its runtime with --runtime")
    rows = []
    for runtime in examined:
        config = docker_config(settings, runtime=runtime)
        rows += asyncio.run(_examine(console, config, settings.image, chosen.gpu, only or tuple(CONTRACT)))
    broken = [row for row in rows if row["holds"] is False]
    if as_json:
        click.echo(json.dumps({"engine": report.record(), "rows": rows}, indent=2))
    kept = sum(row["holds"] is True for row in rows)
    console.print(f"\n{kept} rows hold, {len(broken)} broken, on {', '.join(examined)}", style="bold")
    return Exit.NOT_GOOD if broken else Exit.OK


def _show_engine(console: Console, report: EngineReport) -> None:
    table = Table("part", "version", "minimum", "remark", title="Engine", title_justify="left")
    for part in report.parts:
        table.add_row(part.name, part.version, part.minimum, part.remark, style=None if part.good else "yellow")
    console.print(table)


async def _examine(
    console: Console, config: DockerConfig, image: str, gpu: Gpu | None, names: Sequence[str]
) -> list[dict[str, Any]]:
    await show_posture(console, config, image, gpu)
    return await show_contract(console, DockerSubject(config), names)
