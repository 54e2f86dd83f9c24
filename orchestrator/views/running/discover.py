"""`blastdoor discover`: what in a repository is worth a search, and the task for it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from orchestrator.discovery.bench import Found
from orchestrator.discovery.chambers import Laboratory
from orchestrator.discovery.discover import discover
from orchestrator.discovery.needs import Needs, read_repository
from orchestrator.discovery.repository import Repository
from orchestrator.discovery.targets import Target
from orchestrator.discovery.writing import Made
from orchestrator.domain.audit import Asked
from orchestrator.examine.audit import audit
from orchestrator.examine.findings import Findings
from orchestrator.importing import write_task
from orchestrator.run_options import OPTIONS, Scope
from orchestrator.settings import Settings
from orchestrator.task import ImageSpec, Task, TaskError, load_task, parse_duration
from orchestrator.task.audits import keep_audit
from orchestrator.task.snapshot import snapshot
from orchestrator.views.campaign.opening import json_option, json_text, print_json
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, run_flags, say, site_options
from orchestrator.views.judging.audit_record import record as audit_record
from orchestrator.views.judging.check import cheats_at_once, examine, record_of
from orchestrator.views.parsing import Parsed
from orchestrator.views.running.discover_model import Adviser, advised
from orchestrator.views.running.discover_told import record_found, tell_audit, tell_check, tell_found
from orchestrator.views.running.import_task import name_of, package_pair
from orchestrator.wiring.laboratory import open_laboratory
from orchestrator.wiring.options import resolve_site
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.question import ready_question
from orchestrator.wiring.site import Site
from orchestrator.wiring.sites import open_site, refuse_paid

_MEMORY_MIB = 1024
_CHECKED_RUNS = 3
# Of the caps of a run, those that one question to a model needs.
_NO_CAPS = tuple(name for name in OPTIONS if name not in ("usd", "tokens"))


@dataclass(frozen=True)
class _Asked:
    """What a person said on the command line."""

    target: int | None
    into: Path | None
    wall_s: float
    check: bool
    quick: bool
    as_json: bool
    adviser: Adviser | None


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
@click.option("--no-check", is_flag=True, help="Do not check and audit the task that was written.")
@click.option("--quick", is_flag=True, help="Audit it with the quick half of the adversaries.")
@click.option(
    "--proposer", type=click.Choice(["llm"]), help="Ask a model about the chosen row, within --usd and --tokens."
)
@site_options("gpu", "standing")
@run_flags(Scope.CAP, but=_NO_CAPS)
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
    quick: bool,
    proposer: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Look at the folder REPO, profile its tests and benchmarks in chambers, and list what could be searched for.

    With --target and --into, the chosen row becomes a task, which is then checked and audited. At a terminal it asks.
    With --proposer llm a model adds to its statement, and questions for its judge.
    Nothing of REPO is run outside a chamber, and REPO is not changed.

    Exit code 0 when something was found and, if a task was written, it is ready; 1 when nothing was found or the task
    is not ready; 2 when the input is at fault, 3 when the engine fails.
    """
    if (target is None) != (into is None) and not (sys.stdin.isatty() and target is None):
        raise click.UsageError("--target and --into belong together: which row, and the new folder for its task")
    if into is not None and into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise click.UsageError(f"{into}: exists and is not an empty folder; name a new one")
    flags = flags_of(given)
    choice = resolve_site(flags, settings)
    try:
        adviser = Adviser(ready_question(flags, settings), settings, say) if proposer else None
        refuse_paid(settings, choice, "discover")
        found, needs = read_repository(repository, dict(map(package_pair, packages)), left_out)
    except TaskError as error:
        raise click.UsageError(str(error)) from None
    asked = _Asked(target, into, wall, not no_check, quick, as_json, adviser)

    async def work() -> int:
        async with open_site(settings, choice, say) as site:
            return await _look(found, needs, site, settings, asked)

    return run_in_loop(work())


async def _look(repository: Repository, needs: Needs, site: Site, settings: Settings, asked: _Asked) -> int:
    image = ImageSpec(base=settings.image, pip=needs.pip, apt=needs.apt)
    laboratory = await open_laboratory(repository, image, site, wall_s=asked.wall_s, memory=_MEMORY_MIB << 20)
    found = await discover(repository, laboratory, say, package=needs.package, others=needs.others)
    made = Made(repository, needs.pip, needs.apt, found.guards, _MEMORY_MIB)
    record = record_found(repository, needs, found)
    if not asked.as_json:
        tell_found(repository, needs, found)
    code = Exit.OK if found.targets else Exit.NOT_GOOD
    number, into = _chosen(asked, found)
    if number is not None and into is not None:
        row, made = await _advised(found.targets[number - 1], made, laboratory, asked, record)
        code = await _write(row, made, into, site, settings, asked, record)
    if asked.as_json:
        print_json(record)
    return code


async def _advised(
    target: Target, made: Made, laboratory: Laboratory, asked: _Asked, record: dict[str, Any]
) -> tuple[Target, Made]:
    if not asked.adviser:
        return target, made
    told = await advised(asked.adviser, target, made, laboratory)
    record["model"] = told.record
    if not asked.as_json:
        click.echo(told.line)
    return told.target, told.made


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
    good = await _examined(task, into, site, settings, asked, record) if asked.check else True
    if not asked.as_json:
        click.echo(f"Next:\n  {typed(into, 'run')}")
    return Exit.OK if good else Exit.NOT_GOOD


async def _examined(
    task: Task, into: Path, site: Site, settings: Settings, asked: _Asked, record: dict[str, Any]
) -> bool:
    """With `check`, and with `audit` in the place of its few cheats. Whether the task is ready to be searched."""
    findings = Findings(doing=say)
    await examine(task, into, site, settings, findings, runs=_CHECKED_RUNS, cheats=False)
    record["check"] = record_of(task, findings)
    if not asked.as_json:
        tell_check(findings)
    if not findings.good:
        return False
    cheats = Findings(doing=say)
    taken = snapshot(task, into)
    parts = await make_parts(task, taken, site)
    width = cheats_at_once(parts, task, site)
    report = await audit(parts, cheats, runs=_CHECKED_RUNS, quick=asked.quick, width=width)
    told = audit_record(task, taken, report, cheats, Asked(runs=_CHECKED_RUNS, quick=asked.quick))
    record["audit"] = told.model_dump(mode="json")
    if not asked.as_json:
        tell_audit(told, cheats)
    if told.tried:
        keep_audit(into, told, json_text(record["audit"]) + "\n")
    return told.good
