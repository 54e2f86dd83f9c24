"""`blastdoor reap`: remove what an earlier crash left."""

import asyncio
import json

import click

from orchestrator.settings import Settings
from orchestrator.wiring import docker_config


@click.command("reap")
@click.option("--json", "as_json", is_flag=True, help="Print the names as a JSON list.")
@click.pass_obj
def command(settings: Settings, as_json: bool) -> None:
    """Remove what owners that are gone left behind."""

    async def reap() -> list[str]:
        backend = await docker_config(settings).connect()
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
