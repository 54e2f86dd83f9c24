"""`blastdoor reap`: remove what an earlier crash left."""

import asyncio
import json
from typing import Any

import click

from orchestrator.settings import Settings
from orchestrator.views.where import flags_of, site_options
from orchestrator.wiring import backend_config, resolve_site
from sandbox import SkyPilotConfig


@click.command("reap", short_help="Remove what owners that are gone left behind.")
@site_options("gpu", "standing", "runtime")
@click.option("--json", "as_json", is_flag=True, help="Print the names as a JSON list.")
@click.pass_obj
def command(settings: Settings, /, as_json: bool, **given: Any) -> None:
    """Remove what owners that are gone left behind, on one's own engine or at the provider that is named."""
    chosen = resolve_site(flags_of(given), settings, anywhere=True)

    async def reap() -> list[str]:
        if chosen.backend == "skypilot":
            return await SkyPilotConfig.reap_everywhere()
        backend = await backend_config(settings, chosen).connect()
        try:
            return await backend.reap()
        finally:
            await backend.close()

    ended = asyncio.run(reap())
    if as_json:
        click.echo(json.dumps(ended))
    else:
        for name in ended:
            click.echo(f"removed {name}")
        click.echo(f"{len(ended)} removed" if ended else "nothing was left behind")
