"""A chamber and the contract of its backend, shown: the same for every backend."""

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.proposers import PluginFailed
from orchestrator.task import ImageSpec
from orchestrator.wiring.site import Provider
from sandbox import Enforcer, Gpu, Job, Limits, SandboxError
from sandbox.conformance.check import NotConforming
from sandbox.conformance.contract import CONTRACT
from sandbox.conformance.subject import Subject

_MARK = {True: "[green]holds[/green]", False: "[red bold]BROKEN[/red bold]", None: "[yellow]not here[/yellow]"}


async def show_contract(console: Console, subject: Subject, names: Sequence[str]) -> list[dict[str, Any]]:
    """Run the rows, one after the other; what became of each."""
    table = Table("row", "what must be true", "", "ms", title=f"Contract on {subject.name}", title_justify="left")
    rows = []
    try:
        with console.status("") as status:
            for number, name in enumerate(names, 1):
                status.update(f"{subject.name}: {number} of {len(names)}, {name}")
                row = await _judge(subject, name)
                rows.append(row)
                table.add_row(name, row["truth"], _MARK[row["holds"]], f"{row['milliseconds']:.0f}")
                if row["why"]:
                    table.add_row("", Text(row["why"], style="yellow" if row["holds"] is None else "red"), "", "")
    finally:
        await subject.close()
    console.print(table)
    return rows


async def _judge(subject: Subject, name: str) -> dict[str, Any]:
    started = time.perf_counter()
    holds: bool | None = True
    why = ""
    try:
        if name in subject.lacks:
            holds, why = None, subject.lacks[name]
        else:
            await CONTRACT[name](subject)
    except (NotConforming, SandboxError, PluginFailed, TimeoutError) as error:
        holds, why = False, f"{type(error).__name__}: {error}"
    return {
        "subject": subject.name,
        "row": name,
        "truth": (CONTRACT[name].__doc__ or "").strip(),
        "holds": holds,
        "why": why,
        "milliseconds": (time.perf_counter() - started) * 1000,
    }


async def show_posture(console: Console, provider: Provider, image: str, gpu: Gpu | None = None) -> dict[str, Any]:
    """What a chamber sees of itself, who holds which limit, and what is weaker here than elsewhere."""
    async with provider.alone(lambda _: None) as site:
        with console.status("the image is made ready, unless it is"):
            baked = await site.bake(ImageSpec(base=image))
        job = Job(command=("true",), image=baked.name, limits=Limits(gpu=gpu))
        async with await site.backend.open(job) as chamber:
            facts = dict(chamber.facts)
        can = site.backend.capabilities
    table = Table("fact", "as the chamber sees it", title=f"A chamber on {can.boundary}", title_justify="left")
    for name, value in facts.items():
        table.add_row(name, Text(value))
    console.print(table)
    holders: dict[Enforcer, list[str]] = {}
    for limit in Limits.model_fields:
        holders.setdefault(can.enforcer(limit), []).append(limit)
    table = Table("held by", "limits", title="Who holds which limit", title_justify="left")
    for holder, limits in holders.items():
        table.add_row(holder, ", ".join(limits), style="yellow" if holder is Enforcer.NOBODY else None)
    console.print(table)
    for caveat in can.caveats:
        console.print(Text(f"note: {caveat}", style="yellow"))
    return {"facts": facts, "boundary": can.boundary, "held_by": holders, "caveats": list(can.caveats)}
