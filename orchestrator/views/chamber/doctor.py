"""`blastdoor doctor`: does this machine hold what a chamber promises?"""

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator import logs
from orchestrator.settings import Settings
from orchestrator.views.exits import Exit
from orchestrator.wiring import docker_config
from sandbox import DockerConfig, Enforcer, Job, Limits, Refused, SandboxError
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.docker import DockerSubject
from sandbox.engine_report import EngineReport, examine_engine

_MARK = {True: "[green]holds[/green]", False: "[red bold]BROKEN[/red bold]", None: "[yellow]not here[/yellow]"}


@click.command("doctor")
@click.option("--runtime", "runtimes", multiple=True, help="Runtime to examine; all known ones when left out.")
@click.option("--only", multiple=True, metavar="ROW", help="Rows of the contract to run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(settings: Settings, runtimes: tuple[str, ...], only: tuple[str, ...], as_json: bool) -> int:
    """Tell whether this machine holds what a chamber promises.

    Shows the engine's parts, the posture of a chamber, and the contract that every backend must keep.
    """
    if unknown := [name for name in only if name not in CONTRACT]:
        raise click.UsageError(f"no row {unknown[0]!r}; rows are {', '.join(CONTRACT)}")
    logs.configure(logging.ERROR)  # rows break things on purpose, and the sandbox would warn of each
    console = Console(quiet=as_json, highlight=False)
    report = asyncio.run(examine_engine(docker_config(settings)))
    _show_engine(console, report)
    chosen = runtimes or report.runtimes
    if not chosen:
        raise Refused("the engine has neither runc nor runsc; name its runtime with --runtime")
    rows = []
    for runtime in chosen:
        config = docker_config(settings, runtime=runtime)
        rows += asyncio.run(_examine(console, config, settings.image, only or tuple(CONTRACT)))
    broken = [row for row in rows if row["holds"] is False]
    if as_json:
        click.echo(json.dumps({"engine": report.record(), "rows": rows}, indent=2))
    kept = sum(row["holds"] is True for row in rows)
    console.print(f"\n{kept} rows hold, {len(broken)} broken, on {', '.join(chosen)}", style="bold")
    return Exit.NOT_GOOD if broken else Exit.OK


def _show_engine(console: Console, report: EngineReport) -> None:
    table = Table("part", "version", "minimum", "remark", title="Engine", title_justify="left")
    for part in report.parts:
        table.add_row(part.name, part.version, part.minimum, part.remark, style=None if part.good else "yellow")
    console.print(table)


async def _examine(console: Console, config: DockerConfig, image: str, names: Sequence[str]) -> list[dict[str, Any]]:
    await _show_posture(console, config, image)
    table = Table(
        "row", "what must be true", "", "ms", title=f"Contract on docker/{config.runtime}", title_justify="left"
    )
    rows = []
    subject = DockerSubject(config)
    try:
        with console.status("") as status:
            for number, name in enumerate(names, 1):
                status.update(f"docker/{config.runtime}: {number} of {len(names)}, {name}")
                row = await _judge(subject, name)
                rows.append(row)
                table.add_row(name, row["truth"], _MARK[row["holds"]], f"{row['milliseconds']:.0f}")
                if row["why"]:
                    table.add_row("", Text(row["why"], style="yellow" if row["holds"] is None else "red"), "", "")
    finally:
        await subject.close()
    console.print(table)
    return rows


async def _judge(subject: DockerSubject, name: str) -> dict[str, Any]:
    started = time.perf_counter()
    holds: bool | None = True
    why = ""
    try:
        if name in subject.lacks:
            holds, why = None, subject.lacks[name]
        else:
            await CONTRACT[name](subject)
    except (NotConforming, SandboxError, TimeoutError) as error:
        holds, why = False, f"{type(error).__name__}: {error}"
    return {
        "subject": subject.name,
        "row": name,
        "truth": (CONTRACT[name].__doc__ or "").strip(),
        "holds": holds,
        "why": why,
        "milliseconds": (time.perf_counter() - started) * 1000,
    }


async def _show_posture(console: Console, config: DockerConfig, image: str) -> None:
    backend = await config.connect()
    try:
        async with await backend.open(Job(command=("true",), image=image)) as chamber:
            facts = dict(chamber.facts)
        capabilities = backend.capabilities
    finally:
        await backend.close()
    table = Table("fact", "as the chamber sees it", title=f"A chamber on {capabilities.boundary}", title_justify="left")
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)
    holders: dict[Enforcer, list[str]] = {}
    for limit in Limits.model_fields:
        holders.setdefault(capabilities.enforcer(limit), []).append(limit)
    table = Table("held by", "limits", title="Who holds which limit", title_justify="left")
    for holder, limits in holders.items():
        table.add_row(holder, ", ".join(limits), style="yellow" if holder is Enforcer.NOBODY else None)
    console.print(table)
