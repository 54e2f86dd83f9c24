"""`blastdoor check`: whether a task is fit to be searched, before the first attempt is paid for. Records nothing."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from orchestrator.domain import figures
from orchestrator.examine.checkup import check_judge, check_wiring, make_or_tell
from orchestrator.examine.findings import Findings, Row, Section, Sign
from orchestrator.examine.gold import check_gold
from orchestrator.loop.workbench import Parts
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import FILE, Task, TaskError, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.text import printable, printable_lines
from orchestrator.views.campaign.opening import json_option, print_json, task_argument
from orchestrator.views.campaign.screen import Screen, open_screen
from orchestrator.views.event_loop import run_in_loop
from orchestrator.views.exits import Exit
from orchestrator.views.flags import flags_of, site_options
from orchestrator.views.judging.estimates import Expected, tell_cost, tell_noise, tell_profile
from orchestrator.wiring.fitting import ceiling_of
from orchestrator.wiring.models import asks_a_model, ready_models
from orchestrator.wiring.opening import shape_of
from orchestrator.wiring.options import Options, resolve
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.proposers import make_searcher
from orchestrator.wiring.site import Site
from orchestrator.wiring.sites import open_site

LOG_LINES = 20
_CHEATS_AT_ONCE = 4
_SIGNS = {
    Sign.OK: ("✓", "ok", "green"),
    Sign.NOTE: ("·", "--", "cyan"),
    Sign.WARN: ("!", "!!", "yellow"),
    Sign.FAIL: ("✗", "XX", "bold red"),
}


@click.command("check")
@click.option("--runs", type=click.IntRange(1, 1000), default=3, show_default=True, help="Number of baseline runs.")
@click.option("--no-cheats", is_flag=True, help="Skip the cheats; each costs one run of the judge.")
@site_options()
@json_option
@task_argument
@click.pass_obj
def command(settings: Settings, /, task: Path, runs: int, no_cheats: bool, as_json: bool, **given: Any) -> int:
    """Check TASK before you search with it: wiring, noise, cost, and whether its judge holds.

    Runs and judges the baseline a few times, shows cheats to the judge, and searches the candidate's chamber for gold.
    Records nothing.

    Exit code 0 when nothing is broken (warnings are allowed), 1 when something is, 2 when the task cannot be read, 3
    when the engine fails.
    """
    loaded = load_task(task)
    options = resolve(flags_of(given), loaded, settings)
    view = RowsView(open_screen(), quiet=as_json)
    findings = Findings(view.row, view.doing)

    async def work() -> None:
        async with open_site(settings, options.site, view.doing) as site:
            await examine(loaded, task, site, settings, findings, options=options, runs=runs, cheats=not no_cheats)

    with view:
        run_in_loop(work())
    if as_json:
        print_json(record_of(loaded, findings))
    else:
        view.conclude(findings)
    return Exit.OK if findings.good else Exit.NOT_GOOD


async def examine(
    task: Task,
    folder: Path,
    site: Site,
    settings: Settings,
    findings: Findings,
    *,
    options: Options | None = None,
    runs: int = 3,
    cheats: bool = True,
) -> None:
    """All sections in turn. Raises TaskError, and the sandbox's errors when the engine fails."""
    options = options or resolve(Flags(), task, settings)
    taken = snapshot(task, folder)
    findings.add(Section.WIRING, Sign.OK, f"{FILE} is read: {task.name}", facts={"digest": task.digest})
    for warning in task.warnings:
        findings.add(Section.WIRING, Sign.WARN, warning)
    for caveat in site.backend.capabilities.caveats:
        findings.add(Section.WIRING, Sign.NOTE, f"{site.name}: {caveat}")
    _check_models(task, options, settings, findings)
    parts = await make_or_tell(make_parts(task, taken, site), findings)
    if parts is None:
        return
    found = await check_wiring(parts, runs, findings)
    if not found.runs:
        return
    expected = _expected(task, site, options)
    if task.rule_by_default:
        findings.add(Section.NOISE, Sign.NOTE, task.rule_by_default)
    tell_noise(parts.ranking, parts.certify, found.runs, findings)
    tell_cost(parts, found, expected, findings)
    tell_profile(parts, found, expected, findings)
    await check_judge(parts, found, findings, cheats=cheats, width=cheats_at_once(parts, task, site))
    check_gold(parts, found, findings)


def cheats_at_once(parts: Parts, task: Task, site: Site) -> int:
    at_once = parts.judge_mode.limits_of_judging(task)
    return min(_CHEATS_AT_ONCE, site.home.ceiling(task.judge.limits if site.judging else at_once))


def _check_models(task: Task, options: Options, settings: Settings, findings: Findings) -> None:
    """A proposer that asks a model needs a key, a price and an allowance; `run` would refuse to begin without."""
    if not asks_a_model(options):
        return
    try:
        ready_models(task, options, settings)
    except TaskError as error:
        findings.add(Section.WIRING, Sign.FAIL, str(error))


def _expected(task: Task, site: Site, options: Options) -> Expected:
    """What `run` with no other flags would choose."""
    try:
        proposer = make_searcher(options, task)
    except TaskError as error:
        return Expected(options, None, str(error))
    return Expected(options, shape_of(task, options, proposer, ceiling_of(task, site)))


def record_of(task: Task, findings: Findings) -> dict[str, Any]:
    rows = [
        {
            "section": row.section,
            "sign": row.sign,
            "text": printable(row.text),
            "advice": printable(row.advice),
            "facts": dict(row.facts),
            "log": list(printable_lines(row.log))[-LOG_LINES:],
        }
        for row in findings.rows
    ]
    return {"task": task.name, "good": findings.good, "rows": rows}


class RowsView:
    """Rows as they come, each section under its name; what takes a while is said on stderr and wiped off again."""

    def __init__(self, screen: Screen, *, quiet: bool) -> None:
        self._screen = screen
        self._quiet = quiet
        self._section: Section | None = None
        console = Console(stderr=True, markup=False, highlight=False)
        self._status = Status("", console=console) if console.is_terminal and not quiet else None

    def __enter__(self) -> "RowsView":
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status:
            self._status.stop()

    def doing(self, what: str) -> None:
        if self._status:
            self._status.update(Text(printable(what), "dim"))

    def row(self, row: Row) -> None:
        if self._quiet:
            return
        with self._without_status():
            if row.section is not self._section:
                self._screen.line(Text(("\n" if self._section else "") + row.section, "bold"))
                self._section = row.section
            for line in _lines(row, self._screen):
                self._screen.line(line)

    def conclude(self, findings: Findings) -> None:
        failures, warnings = findings.count(Sign.FAIL), findings.count(Sign.WARN)
        told = [figures.plural(count, noun) for count, noun in ((failures, "failure"), (warnings, "warning")) if count]
        if failures:
            self._screen.line(Text(f"\nnot ready: {', '.join(told)}", "bold red"))
        else:
            rest = f", with {told[0]}" if told else ""
            self._screen.line(Text(f"\nready to be searched{rest}", "bold yellow" if warnings else "bold green"))

    def say(self, text: str, style: str) -> None:
        self._screen.line(Text(text, style))

    @contextmanager
    def _without_status(self) -> Iterator[None]:
        if self._status:
            self._status.stop()
        yield
        if self._status:
            self._status.start()


def _lines(row: Row, screen: Screen) -> Iterator[Text]:
    sign, plain, style = _SIGNS[row.sign]
    mark = sign if screen.unicode else plain
    indent = " " * (len(mark) + 3)
    for number, part in enumerate(_folded(row.text, screen, len(indent))):
        yield Text.assemble((f"  {mark} ", style) if number == 0 else indent, part)
    arrow = "→ " if screen.unicode else "> "
    for number, part in enumerate(_folded(row.advice, screen, len(indent) + 2)):
        yield Text.assemble(indent, ((arrow if number == 0 else "  ") + part, "dim"))
    lines = list(printable_lines(row.log))
    if len(lines) > LOG_LINES:
        yield Text(f"{indent}{len(lines) - LOG_LINES} lines before", "dim")
    for line in lines[-LOG_LINES:]:
        yield Text.assemble(indent, ("│ " if screen.unicode else "| ", style), line)


def _folded(text: str, screen: Screen, indent: int) -> list[str]:
    """Lines that stay beside their sign; a pipe gets the text whole."""
    line = printable(text)
    if not screen.console.is_terminal:
        return [line] if line else []
    return textwrap.wrap(line, max(20, screen.width - indent), break_on_hyphens=False)
