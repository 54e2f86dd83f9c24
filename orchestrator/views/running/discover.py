"""`blastdoor discover`: what in a repository is worth a search, and the task for it."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from orchestrator.change import shown
from orchestrator.discovery.declared import Packages, packages_of
from orchestrator.discovery.discover import Found, discover
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.targets import Target
from orchestrator.discovery.writing import Made
from orchestrator.examine.findings import Findings, Sign
from orchestrator.importing import write_task
from orchestrator.importing.source import Source
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec, TaskError, load_task, parse_duration
from orchestrator.views.campaign.opening import json_option, print_json
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.commands import COMMANDS
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, say, site_options
from orchestrator.views.judging.check import examine, record_of
from orchestrator.views.parsing import Parsed
from orchestrator.views.running.import_task import name_of, package_pair
from orchestrator.wiring.laboratory import open_laboratory
from orchestrator.wiring.options import resolve_site
from orchestrator.wiring.site import Site
from orchestrator.wiring.sites import open_site, refuse_paid

_MEMORY_MIB = 1024
_CHECKED_RUNS = 3


@dataclass(frozen=True)
class _Asked:
    """What a person said on the command line."""

    target: int | None
    into: Path | None
    wall_s: float
    check: bool
    as_json: bool


@click.command("discover")
@json_option
@click.option("--target", type=click.IntRange(1), metavar="N", help="Write the task of this row.")
@click.option("--into", metavar="FOLDER", type=click.Path(path_type=Path), help="New folder for the task.")
@click.option("--package", "packages", metavar="IMPORT=NAME", multiple=True, help="The package of an import.")
@click.option("--without", "left_out", metavar="NAME", multiple=True, help="A declared package to leave out.")
@click.option(
    "--wall",
    type=Parsed("duration", parse_duration),
    default="4m",
    help="Limit of one run of the tests.  [default: 4m]",
)
@click.option("--no-check", is_flag=True, help="Do not check the task that was written.")
@site_options("gpu", "standing")
@click.argument("repository", metavar="REPO", type=click.Path(path_type=Path))
@click.pass_obj
def command(
    settings: Settings,
    /,
    repository: Path,
    target: int | None,
    into: Path | None,
    packages: tuple[str, ...],
    left_out: tuple[str, ...],
    wall: float,
    no_check: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Look at the folder REPO, profile its tests and benchmarks in chambers, and list what could be searched for.

    With --target and --into, the chosen row becomes a task, which is then checked. At a terminal it asks. Nothing of
    REPO is run outside a chamber, and REPO is not changed.

    Exit code 0 when something was found and, if a task was written, it is ready; 1 when nothing was found or the task
    is not ready; 2 when the input is at fault, 3 when the engine fails.
    """
    if (target is None) != (into is None) and not (sys.stdin.isatty() and target is None):
        raise click.UsageError("--target and --into belong together: which row, and the new folder for its task")
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise click.UsageError(f"{into}: exists and is not an empty folder; name a new one")
    asked = _Asked(target, into, wall, not no_check, as_json)
    choice = resolve_site(flags_of(given), settings)
    try:
        refuse_paid(settings, choice, "discover")
        found = Repository.of(Source.of(repository))
        _refuse_nothing(found)
        named = packages_of(found, dict(map(package_pair, packages)))
    except TaskError as error:
        raise click.UsageError(str(error)) from None
    named = Packages(tuple(it for it in named.names if not _is_named(it, left_out)), named.unknown)

    async def work() -> int:
        async with open_site(settings, choice, say) as site:
            return await _look(found, named, site, settings, asked)

    return asyncio.run(work())


def _refuse_nothing(repository: Repository) -> None:
    """What can be said before a chamber is opened."""
    folder = repository.source.folder
    if repository.facts:
        if not (repository.tests or repository.benchmarks or repository.scripts):
            raise TaskError(
                f"{folder}: has no tests, benchmarks or scripts to run; write one that calls what should be faster"
            )
        return
    if repository.unreadable:
        path = folder / repository.unreadable[0]
        raise TaskError(f"{path}: has a syntax error or is too large, and no other Python file can be read; mend it")
    others = f" ({', '.join(repository.other_languages)} is not looked at yet)" if repository.other_languages else ""
    raise TaskError(f"{folder}: has no Python{others}; write a task that runs its benchmark: blastdoor init")


def _is_named(requirement: str, names: tuple[str, ...]) -> bool:
    return any(requirement == it or requirement.startswith(tuple(f"{it}{sign}" for sign in "=<>!~")) for it in names)


async def _look(repository: Repository, named: Packages, site: Site, settings: Settings, asked: _Asked) -> int:
    image = ImageSpec(base=settings.image, pip=named.names)
    laboratory = await open_laboratory(repository, image, site, wall_s=asked.wall_s, memory=_MEMORY_MIB << 20)
    found = await discover(repository, laboratory, say)
    made = Made(repository, named.names, found.guard, _MEMORY_MIB)
    record = _record(repository, named, found)
    if not asked.as_json:
        _tell(repository, named, found)
    code = Exit.OK if found.targets else Exit.NOT_GOOD
    number, into = _chosen(asked, found)
    if number is not None and into is not None:
        code = await _write(found.targets[number - 1], made, into, site, settings, asked, record)
    if asked.as_json:
        print_json(record)
    return code


def _chosen(asked: _Asked, found: Found) -> tuple[int | None, Path | None]:
    """Asks at a terminal. Raises UsageError for a row that is not there."""
    number, into = asked.target, asked.into
    if found.targets and number is None and not asked.as_json and sys.stdin.isatty() and sys.stdout.isatty():
        number = click.prompt("Write the task of which row? (0 for none)", type=click.IntRange(0, len(found.targets)))
        into = into or (Path(click.prompt("Into which new folder?")) if number else None)
    if not found.targets:
        return None, None
    if number is not None and number > len(found.targets):
        raise click.UsageError(
            f"--target {number}: there are {len(found.targets)}; run it without --target to see them"
        )
    return number or None, into


async def _write(
    target: Target, made: Made, into: Path, site: Site, settings: Settings, asked: _Asked, record: dict[str, Any]
) -> Exit:
    try:
        tier = write_task(made.task(target, name_of(into)), into)
        task = load_task(into)
    except TaskError as error:
        raise click.UsageError(str(error)) from None
    record["task"] = str(into)
    if not asked.as_json:
        click.echo(f"\n{into} is a task of the tier {tier.value}; read {into / 'blastdoor.toml'}.")
    findings = Findings(doing=say)
    if asked.check:
        await examine(task, into, site, settings, findings, runs=_CHECKED_RUNS)
        record["check"] = record_of(task, findings)
    if not asked.as_json:
        _tell_check(findings)
        click.echo("Next:")
        for name in ("audit", "run"):
            if name in COMMANDS:
                click.echo(f"  {typed(into, name)}")
    return Exit.OK if findings.good else Exit.NOT_GOOD


def _tell_check(findings: Findings) -> None:
    if not findings.rows:
        return
    for row in findings.rows:
        if row.sign in (Sign.WARN, Sign.FAIL) or row.section in ("noise", "cost"):
            click.echo(f"  {'not ready' if row.sign is Sign.FAIL else row.sign.value}: {shown(row.text, 400)}")
            if row.advice:
                click.echo(f"      {shown(row.advice, 400)}")
    click.echo(
        "check: ready to be searched" if findings.good else "check: not ready; mend the task, then: blastdoor check"
    )


def _record(repository: Repository, named: Packages, found: Found) -> dict[str, Any]:
    return {
        "repository": str(repository.source.folder),
        "tests": len(repository.tests),
        "benchmarks": list(repository.benchmarks),
        "scripts": list(repository.scripts),
        "not_read": repository.unreadable,
        "parameters": [str(it) for it in repository.parameters],
        "packages": list(named.names),
        "unknown_imports": list(named.unknown),
        "guard_seconds": found.guard.seconds if found.guard else None,
        "notes": found.notes,
        "targets": [
            {
                "target": number,
                "title": it.title,
                "tier": it.tier,
                "metric": it.metric,
                "reason": it.reason,
                "editable": list(it.editable),
                "noise": it.noise,
                "run_seconds": it.run_s,
                "worth": it.worth,
                "doubts": list(it.doubts),
            }
            for number, it in enumerate(found.targets, 1)
        ],
    }


def _tell(repository: Repository, named: Packages, found: Found) -> None:
    click.echo(
        f"{repository.source.folder}: {len(repository.code)} Python files, {len(repository.tests)} of tests,"
        f" {len(repository.benchmarks)} benchmarks, {len(repository.scripts)} scripts,"
        f" {len(repository.parameters)} parameters; packages: {', '.join(named.names) or 'none'}"
    )
    if found.guard:
        click.echo(f"The tests pass in {found.guard.seconds:.1f} s and guard every candidate.")
    for note in found.notes:
        click.echo(f"note: {shown(note, 400)}")
    if repository.unreadable:
        click.echo(f"note: Python that was not read (syntax, or size): {shown(', '.join(repository.unreadable), 200)}")
    if named.unknown:
        click.echo(f"note: imports that no declaration and no table has: {', '.join(named.unknown[:8])}; see --package")
    for number, it in enumerate(found.targets, 1):
        click.echo(f"\n{number}. {shown(it.title, 200)}")
        click.echo(f"   {it.reason}")
        click.echo(f"   metric {it.metric}, lower is better; tier {it.tier}; editable: {', '.join(it.editable)}")
        click.echo(f"   a run takes {it.run_s:.3g} s, give or take {it.noise:.0%}, as measured in a chamber")
        for doubt in it.doubts:
            click.echo(f"   doubt: {doubt}")
    if not found.targets:
        click.echo("nothing here is worth a search as it is; a benchmark that takes a second or more would help")
