"""`blastdoor attack`: the attack suite, as a table."""

import json
import logging
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from orchestrator import logs
from orchestrator.choices import OWN_ENGINE, WITHOUT_DAEMON
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.views.chamber.doctor import examined_by
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import site_options
from orchestrator.wiring.options import resolve_site
from orchestrator.wiring.sites import make_provider
from sandbox.attacks.attack import Result, Target
from sandbox.attacks.mutations import MUTATIONS, Verdict, run_mutations
from sandbox.attacks.suite import run_suite, selected

CONTROLS = ("C01", "C02")


@click.command("attack")
@site_options("gpu", "infra", "standing", "runtime")
@click.option("--runtime", "runtimes", multiple=True, help="Runtime to attack; defaults to all known ones.")
@click.option("--only", multiple=True, metavar="ID", help="Row to run beside the controls, like T18; can be repeated.")
@click.option("--mutate", is_flag=True, help="Switch each hardening flag off in turn and see which attacks succeed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def command(
    settings: Settings,
    backend: str | None,
    runtimes: tuple[str, ...],
    only: tuple[str, ...],
    mutate: bool,
    as_json: bool,
) -> int:
    """Run every attack in the threat table against a chamber.

    Exit code 0 only if every attack ran and was blocked and both controls behaved; with --mutate, only if an attack
    notices each flag that is switched off. Attacks your own engine, or chambers without a daemon where your settings
    or --backend name them; rows that look at an engine from outside are then skipped.
    """
    logs.configure(logging.ERROR)  # attacks break things on purpose, and the sandbox would warn of each
    if mutate and only:
        raise click.UsageError("--mutate chooses its rows itself; leave --only out")
    only = (*only, *CONTROLS) if only else ()
    selected(only)
    here = settings.backend if settings.backend in WITHOUT_DAEMON else OWN_ENGINE
    chosen = resolve_site(Flags(backend=backend or here), settings, anywhere=True)
    make_provider(settings, chosen).target()  # Refused where it is not offered, before anybody is asked
    _, attacked = examined_by(settings, chosen, runtimes)
    targets = [provider.target() for provider in attacked.values()]
    view: _MutationView | _AttackView = _MutationView(as_json) if mutate else _AttackView(as_json, only)
    return Exit.OK if run_in_loop(view.show(targets)) else Exit.NOT_GOOD


class _View:
    """Runs a suite on every runtime with a progress bar, then shows what came of it."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False)

    def _progress(self) -> Progress:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        return Progress(*columns, console=Console(stderr=True), transient=True)


class _AttackView(_View):
    def __init__(self, as_json: bool, only: Sequence[str]) -> None:
        super().__init__(as_json)
        self._only = only

    async def show(self, targets: Sequence[Target]) -> bool:
        results: list[Result] = []
        with self._progress() as progress:
            for target in targets:
                task = progress.add_task(target.runtime, total=len(selected(self._only)))

                def advance(result: Result, task: Any = task, runtime: str = target.runtime) -> None:
                    progress.update(task, advance=1, description=f"{runtime} {result.attack.id}")

                results += await run_suite(target, self._only, advance)
        if self._as_json:
            click.echo(json.dumps([_record(result) for result in results], indent=2))
        else:
            self._print(results)
        return all(result.good for result in results if result.here)

    def _print(self, results: Sequence[Result]) -> None:
        table = Table("id", "attack", "runtime", "", "ending", "ms", title="Attacks", title_justify="left")
        for result in results:
            table.add_row(
                result.attack.id,
                Text(result.attack.title),
                result.runtime,
                _word(result),
                result.finding.ending,
                f"{result.milliseconds:.0f}",
            )
            if not result.good:
                table.add_row(
                    "", Text(result.finding.evidence, style="red" if result.here else "yellow"), "", "", "", ""
                )
        self._console.print(table)
        for runtime, notes in _differences(results).items():
            self._console.print(f"\nWhat {runtime} does differently", style="bold")
            for row, note in notes.items():
                self._console.print(Text(f"  {row}: {note}"))
        here = [result for result in results if result.here]
        bad = sum(not result.good for result in here)
        others = f", {len(results) - len(here)} not here" if len(here) < len(results) else ""
        style = "bold red" if bad else "bold green"
        self._console.print(f"\n{len(here) - bad} blocked, {bad} not{others}", style=style)


def _word(result: Result) -> str:
    if not result.here:
        return "[yellow]not here[/yellow]"
    if result.good:
        return "[green]as it should[/green]" if result.attack.is_control else "[green]blocked[/green]"
    return "[red bold]SUCCEEDED[/red bold]" if result.finding.ran else "[red bold]PROVED NOTHING[/red bold]"


def _differences(results: Sequence[Result]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for result in results:
        if note := result.attack.differs.get(result.runtime):
            found.setdefault(result.runtime, {})[result.attack.id] = note
    return found


def _record(result: Result) -> dict[str, Any]:
    return {
        "id": result.attack.id,
        "attack": result.attack.title,
        "runtime": result.runtime,
        "here": result.here,
        "ran": result.finding.ran,
        "blocked": result.finding.blocked,
        "ending": result.finding.ending,
        "evidence": result.finding.evidence,
        "differs": result.attack.differs.get(result.runtime, ""),
        "milliseconds": round(result.milliseconds, 1),
    }


class _MutationView(_View):
    async def show(self, targets: Sequence[Target]) -> bool:
        verdicts: list[Verdict] = []
        with self._progress() as progress:
            for target in targets:
                task = progress.add_task(target.runtime, total=len(MUTATIONS))

                def advance(verdict: Verdict, task: Any = task, runtime: str = target.runtime) -> None:
                    progress.update(task, advance=1, description=f"{runtime} without {verdict.mutation.flag}")

                verdicts += await run_mutations(target, on_verdict=advance)
        if self._as_json:
            click.echo(json.dumps([_mutation_record(verdict) for verdict in verdicts], indent=2))
        else:
            self._print(verdicts)
        return all(verdict.good for verdict in verdicts)

    def _print(self, verdicts: Sequence[Verdict]) -> None:
        title = "Hardening flags, each switched off in turn"
        table = Table("flag", "runtime", "attacks that then succeed", "", title=title, title_justify="left")
        for verdict in verdicts:
            noticed = ", ".join(verdict.red) or verdict.unseen or "none"
            mark = "[green]noticed[/green]" if verdict.red else "[yellow]not visible[/yellow]"
            table.add_row(
                verdict.mutation.flag,
                verdict.runtime,
                Text(noticed),
                mark if verdict.good else "[red bold]UNNOTICED[/red bold]",
            )
        self._console.print(table)


def _mutation_record(verdict: Verdict) -> dict[str, Any]:
    return {
        "flag": verdict.mutation.flag,
        "runtime": verdict.runtime,
        "red": verdict.red,
        "unseen": verdict.unseen,
        "honest_control": verdict.control.good,
        "good": verdict.good,
    }
