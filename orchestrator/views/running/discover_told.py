"""What `discover` found, for people and for programs."""

from typing import Any

import click

from orchestrator.change import shown
from orchestrator.discovery.bench import Found
from orchestrator.discovery.needs import Needs
from orchestrator.discovery.repository import Repository
from orchestrator.domain.audit import AuditRecord
from orchestrator.examine.findings import Findings, Section, Sign


def tell_check(findings: Findings) -> None:
    if not findings.rows:
        return
    for row in findings.rows:
        if row.section is Section.CHEATS and row.sign is Sign.WARN:
            continue  # that they were not tried: the audit comes in their place
        if row.sign in (Sign.WARN, Sign.FAIL) or row.section in (Section.NOISE, Section.COST):
            click.echo(f"  {'not ready' if row.sign is Sign.FAIL else row.sign.value}: {shown(row.text, 400)}")
            if row.advice:
                click.echo(f"      {shown(row.advice, 400)}")
    click.echo(
        "check: ready to be searched" if findings.good else "check: not ready; mend the task, then: blastdoor check"
    )


def tell_audit(told: AuditRecord, findings: Findings) -> None:
    for row in findings.rows:
        if row.sign in (Sign.WARN, Sign.FAIL):
            hole = row.section is Section.CHEATS and "untried" not in row.facts
            failed = "a hole" if hole else "not ready"
            click.echo(f"  {failed if row.sign is Sign.FAIL else row.sign.value}: {shown(row.text, 400)}")
            if row.advice:
                click.echo(f"      {shown(row.advice, 400)}")
    click.echo(f"audit: {shown(told.conclusion, 400)}")


def record_found(repository: Repository, needs: Needs, found: Found) -> dict[str, Any]:
    return {
        "repository": str(repository.source.folder),
        "tests": len(repository.tests) + len(needs.package.tests if needs.package else ()),
        "benchmarks": [*repository.benchmarks, *(needs.package.benchmarks if needs.package else ())],
        "commands": [{"language": it.language, "command": list(it.command)} for it in needs.others],
        "scripts": list(repository.scripts),
        "not_read": repository.unreadable,
        "parameters": [str(it) for it in needs.parameters],
        "packages": [*needs.pip, *needs.apt],
        "unknown_imports": [*needs.unknown, *(needs.package.unknown if needs.package else ())],
        "guards": {it.name: it.seconds for it in found.guards},
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
                "holes": it.holes,
                "doubts": list(it.doubts),
            }
            for number, it in enumerate(found.targets, 1)
        ],
    }


def tell_found(repository: Repository, needs: Needs, found: Found) -> None:
    package = needs.package
    click.echo(
        f"{repository.source.folder}: {len(repository.code)} Python files and {len(package.code) if package else 0} of"
        f" JavaScript, {len(repository.tests) + len(package.tests if package else ())} of tests,"
        f" {len(repository.benchmarks) + len(package.benchmarks if package else ())} benchmarks,"
        f" {len(repository.scripts)} scripts, {len(needs.parameters)} parameters; packages:"
        f" {', '.join([*needs.pip, *needs.apt]) or 'none'}"
    )
    for guard in found.guards:
        click.echo(f"{guard.name} pass in {guard.seconds:.1f} s and guard every candidate.")
    for note in found.notes:
        click.echo(f"note: {shown(note, 400)}")
    if repository.unreadable:
        click.echo(f"note: Python that was not read (syntax, or size): {shown(', '.join(repository.unreadable), 200)}")
    if needs.unknown:
        click.echo(f"note: imports that no declaration and no table has: {', '.join(needs.unknown[:8])}; see --package")
    for number, it in enumerate(found.targets, 1):
        click.echo(f"\n{number}. {shown(it.title, 200)}{' (its judge can be cheated)' if it.holes else ''}")
        click.echo(f"   {it.reason}")
        click.echo(f"   metric {it.metric}, lower is better; tier {it.tier}; editable: {', '.join(it.editable)}")
        click.echo(f"   a run takes {it.run_s:.3g} s, give or take {it.noise:.0%}, as measured in a chamber")
        for hole in it.holes:
            click.echo(f"   hole: {hole}")
        for doubt in it.doubts:
            click.echo(f"   doubt: {doubt}")
    if not found.targets:
        click.echo("nothing here is worth a search as it is; a benchmark that takes a second or more would help")
