"""`blastdoor import`: a task of another public system becomes one of ours."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import click

from orchestrator.apart import read_apart
from orchestrator.change import shown
from orchestrator.choices import IMPORTERS
from orchestrator.domain.tier import Tier
from orchestrator.examine.baseline import score_twice
from orchestrator.importing import Imported, ImportRequest, write_task
from orchestrator.importing.called import with_noisy_rule
from orchestrator.loop.workbench import Parts
from orchestrator.registry import ChoiceError, told
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import FILE, TaskError, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.views.campaign.opening import json_option, print_json
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.event_loop import run_in_loop
from orchestrator.wiring.options import resolve, resolve_site
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.sites import open_site, refuse_paid


@click.command("import")
@json_option
@click.option("--program", metavar="FILE", help="The program to improve, where the folder has several.")
@click.option("--evaluator", metavar="FILE", help="The evaluator, where it has another name.")
@click.option("--config", metavar="FILE", help="The config, where the folder has several.")
@click.option("--metric", metavar="NAME", help="The number to rank by.")
@click.option("--measure", is_flag=True, help="Run the baseline twice in chambers: do its scores differ?")
@click.option("--package", "packages", metavar="IMPORT=NAME", multiple=True, help="The package of an import.")
@click.option("--place", "placed", metavar="WHERE=FOLDER", multiple=True, help="A folder that the evaluator looks for.")
@click.option("--stub-text", is_flag=True, help="Import though the evaluator's look at the program's text is blind.")
@click.argument("system", metavar="FORMAT")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.pass_obj
def command(
    settings: Settings,
    /,
    system: str,
    source: Path,
    folder: Path | None,
    packages: tuple[str, ...],
    placed: tuple[str, ...],
    measure: bool,
    stub_text: bool,
    as_json: bool,
    **said: str | None,
) -> None:
    """Write a task of another system, in the folder SOURCE, as a task in a new FOLDER.

    FORMAT is the system that it was written for: openevolve, shinka, evo or harbor, or one that an installed package
    brings. Nothing of SOURCE is run, unless with --measure, in chambers. Without FOLDER, the task has the name of
    SOURCE, in the current folder.
    """
    folder = folder or Path(source.resolve().name)
    try:
        request = ImportRequest(
            source=source,
            name=name_of(folder),
            packages=dict(map(package_pair, packages)),
            placed=dict(map(_place_pair, placed)),
            stub_text=stub_text,
            **said,
        )
        imported = _read(system, request)
        if measure:
            refuse_paid(settings, resolve_site(Flags(), settings), "import --measure")
        tier = write_task(imported, folder)
    except TaskError as error:
        raise click.UsageError(str(error)) from None
    if measure:
        by_reading = [line for line in imported.mapped if not line.startswith("certify.rule")]
        line = run_in_loop(_measured(imported, folder, settings))
        imported = replace(imported, mapped=(*by_reading, line))
    if as_json:
        print_json(_record(imported, folder, tier))
    else:
        _tell(imported, folder, tier)


def _read(system: str, request: ImportRequest) -> Imported:
    try:
        entry, reader = IMPORTERS.find(system), IMPORTERS.load(system)
    except ChoiceError as error:
        raise TaskError(f"format: {error}") from None
    who = f'the {IMPORTERS.noun} "{system}"{entry}'

    def asked() -> Imported:
        if not entry.is_outside:
            ours: Imported = reader(request)
            return ours
        try:
            imported = reader(request)
        except TaskError:
            raise
        except Exception as error:  # whatever somebody else's code does: nothing is written yet
            raise TaskError(f"{who} failed ({told(error)}); mend or remove it") from error
        if not isinstance(imported, Imported):
            raise TaskError(f"{who} gave back no Imported; mend or remove it")
        return imported

    return read_apart(asked, Imported, request.source, TaskError)


async def _measured(imported: Imported, folder: Path, settings: Settings) -> str:
    """What two runs of the baseline say of its noise. They may add the rule, and never take it away: a coarse score of
    an evaluator that draws is the same twice by chance.
    """
    task = load_task(folder)
    options = resolve(Flags(), task, settings)

    @asynccontextmanager
    async def parts() -> AsyncIterator[Parts]:
        async with open_site(settings, options.site) as site:
            yield await make_parts(task, snapshot(task, folder), site)

    runs = await score_twice(parts)
    if runs.why:
        return f"certify.rule is by reading: {shown(runs.why, 300)}"
    one, other = runs.scores
    why = f"two runs of the baseline gave {one!r} and {other!r}"
    if runs.noisy:
        (folder / FILE).write_text(with_noisy_rule(imported.files[FILE].decode(), why))
    elif task.certify.rule == "noisy":
        return f'certify.rule stays "noisy", by reading, though {why}'
    return f'certify.rule is "{load_task(folder).certify.rule}": {why}'


def package_pair(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)=([A-Za-z0-9][A-Za-z0-9._-]*)", text)
    if match is None:
        raise TaskError(f'--package {text}: write it as IMPORT=NAME, like "sklearn=scikit-learn"')
    return match[1], match[2]


def _place_pair(text: str) -> tuple[str, Path]:
    where, sign, folder = text.partition("=")
    if not (where and sign and folder):
        raise TaskError(f'--place {text}: write it as WHERE=FOLDER, like "~/github/AlgoTune=../AlgoTune"')
    return where, Path(folder)


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
