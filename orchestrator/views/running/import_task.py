"""`blastdoor import`: a task of another public system becomes one of ours."""

import re
from pathlib import Path

import click

from orchestrator.change import shown
from orchestrator.choices import IMPORTERS
from orchestrator.domain.tier import Tier
from orchestrator.importing import Imported, ImportRequest, write_task
from orchestrator.registry import ChoiceError, told
from orchestrator.task import TaskError
from orchestrator.views.campaign.opening import json_option, print_json
from orchestrator.views.campaign.sections.material import typed


@click.command("import")
@json_option
@click.option("--program", metavar="FILE", help="The program to improve, where the folder has several.")
@click.option("--evaluator", metavar="FILE", help="The evaluator, where it has another name.")
@click.option("--config", metavar="FILE", help="The config, where the folder has several.")
@click.option("--metric", metavar="NAME", help="The number to rank by.")
@click.option("--package", "packages", metavar="IMPORT=NAME", multiple=True, help="The package of an import.")
@click.argument("system", metavar="FORMAT")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), required=False)
def command(
    system: str,
    source: Path,
    folder: Path | None,
    packages: tuple[str, ...],
    as_json: bool,
    **said: str | None,
) -> None:
    """Write a task of another system, in the folder SOURCE, as a task in a new FOLDER.

    FORMAT is the system that it was written for: openevolve, shinka, evo or harbor, or one that an installed package
    brings. Nothing of SOURCE is run. Without FOLDER, the task has the name of SOURCE, in the current folder.
    """
    folder = folder or Path(source.resolve().name)
    try:
        request = ImportRequest(source=source, name=name_of(folder), packages=dict(map(package_pair, packages)), **said)
        imported = _read(system, request)
        tier = write_task(imported, folder)
    except TaskError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        print_json(_record(imported, folder, tier))
    else:
        _tell(imported, folder, tier)


def _read(system: str, request: ImportRequest) -> Imported:
    try:
        entry, reader = IMPORTERS.find(system), IMPORTERS.load(system)
    except ChoiceError as error:
        raise TaskError(f"format: {error}") from None
    if not entry.is_outside:
        imported: Imported = reader(request)
        return imported
    who = f'the {IMPORTERS.noun} "{system}"{entry}'
    try:
        imported = reader(request)
    except TaskError:
        raise
    except Exception as error:  # whatever somebody else's code does: nothing is written yet
        raise TaskError(f"{who} failed ({told(error)}); mend or remove it") from error
    if not isinstance(imported, Imported):
        raise TaskError(f"{who} gave back no Imported; mend or remove it")
    return imported


def package_pair(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)=([A-Za-z0-9][A-Za-z0-9._-]*)", text)
    if match is None:
        raise TaskError(f'--package {text}: write it as IMPORT=NAME, like "sklearn=scikit-learn"')
    return match[1], match[2]


def name_of(folder: Path) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    return words[:64].strip("-") or "imported"


def _record(imported: Imported, folder: Path, tier: Tier) -> dict[str, object]:
    return {
        "task": str(folder),
        "tier": tier.value,
        "files": sorted(str(folder / name) for name in imported.files),
        "mapped": list(imported.mapped),
        "left_out": list(imported.left_out),
        "findings": list(imported.findings),
    }


def _tell(imported: Imported, folder: Path, tier: Tier) -> None:
    click.echo(f"{folder} is a task of the tier {tier.value}; read {folder / 'blastdoor.toml'}.")
    for title, lines in (
        ("Mapped", imported.mapped),
        ("Left out", imported.left_out),
        ("Know before you trust a score", imported.findings),
    ):
        if lines:
            click.echo(f"{title}:")
        for line in lines:
            click.echo(f"  {shown(line, 600)}")
    check, run = typed(folder, "check"), typed(folder, "run")
    click.echo("Next:")
    click.echo(f"  {check}    does it work here, how noisy is it, can it be cheated")
    click.echo(f"  {run:<{len(check)}}    search")
