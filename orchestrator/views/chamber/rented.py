"""`blastdoor doctor --backend modal` or `skypilot`: the live check, for whoever has an account there.

It rents, so it costs: a chamber to look at and one for nearly every row of the contract. What it costs is said before.
"""

import asyncio
import json
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from orchestrator.settings import Settings
from orchestrator.views.chamber.contract import show_contract, show_posture
from orchestrator.views.exits import Exit
from orchestrator.wiring import SiteChoice, backend_config, site_name
from orchestrator.wiring.planning import price_before
from sandbox import Limits, ModalConfig, SkyPilotConfig
from sandbox.conformance.subject import Subject


def examine_rented(settings: Settings, chosen: SiteChoice, names: Sequence[str], as_json: bool) -> int:
    """Raises Refused without the package, Unavailable where the provider does not answer or does not know us."""
    config = backend_config(settings, chosen)
    if not isinstance(config, ModalConfig | SkyPilotConfig):
        raise TypeError(f"{chosen.backend} is not rented")
    console = Console(quiet=as_json, highlight=False)
    account = _account(settings, chosen, config)
    table = Table("who pays", "and for what", title=site_name(settings, chosen), title_justify="left")
    for name, value in account.items():
        table.add_row(name, value)
    console.print(table)

    async def work() -> tuple[dict[str, object], list[dict[str, object]]]:
        posture = await show_posture(console, config, settings.image, chosen.gpu)
        return posture, await show_contract(console, _subject(config), names)

    posture, rows = asyncio.run(work())
    broken = [row for row in rows if row["holds"] is False]
    if as_json:
        click.echo(json.dumps({"account": account, "posture": posture, "rows": rows}, indent=2))
    kept = sum(row["holds"] is True for row in rows)
    console.print(f"\n{kept} rows hold, {len(broken)} broken, on {site_name(settings, chosen)}", style="bold")
    return Exit.NOT_GOOD if broken else Exit.OK


def _account(settings: Settings, chosen: SiteChoice, config: ModalConfig | SkyPilotConfig) -> dict[str, str]:
    limits = Limits(gpu=chosen.gpu)
    usd, worst = price_before(settings, chosen, limits)
    most = f"${worst:.4f} at worst for a trial of {limits.wall:g} s and its control job"
    if isinstance(config, ModalConfig):
        return {
            "account": "that of MODAL_TOKEN_ID, or of ~/.modal.toml",
            "app": config.app + (f", environment {config.environment}" if config.environment else ""),
            "price": f"${usd:.8f} a second of {limits.cpus:g} processor, 512 MiB{_with(chosen)}; {most}",
        }
    price = f"at most ${usd * 3600:g} an hour (usd_per_hour_most); {most}" if usd else "no ceiling (usd_per_hour_most)"
    return {"account": "that of SkyPilot's own set-up", "where": config.infra, "price": price}


def _with(chosen: SiteChoice) -> str:
    return f" and {chosen.gpu}" if chosen.gpu else ""


def _subject(config: ModalConfig | SkyPilotConfig) -> Subject:
    """Imported here: a subject brings its vendor's package with it."""
    if isinstance(config, ModalConfig):
        from sandbox.conformance.modal import ModalSubject

        return ModalSubject(config)
    from sandbox.backends.skypilot.backend import SkyPilotBackend
    from sandbox.conformance.skypilot import SkyPilotSubject

    return SkyPilotSubject(config.infra, lambda: SkyPilotBackend.connect(config))
