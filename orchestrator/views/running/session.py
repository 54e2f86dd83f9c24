"""One session of a campaign in a terminal: what it runs with, its progress, and what came of it."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.budget import Account, shown
from orchestrator.domain.records import Run
from orchestrator.llm.line import Unusable
from orchestrator.loop.campaign import Campaign, Finished
from orchestrator.loop.free_bound import FreeBound
from orchestrator.loop.workbench import BaselineFailed, PoolFailed, Workbench
from orchestrator.proposers import PluginFailed
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.text import printable, short
from orchestrator.views.campaign.sections.material import typed
from orchestrator.views.campaign.sections.work import site_lines
from orchestrator.views.campaign.stalls import replay_command
from orchestrator.views.exits import Exit
from orchestrator.views.flags import say
from orchestrator.views.live.progress import Progress
from orchestrator.views.live.scene import Caps
from orchestrator.watch import floor_warnings
from orchestrator.wiring.beginning import How
from orchestrator.wiring.models import models_lines
from orchestrator.wiring.notifying import notifying, targets_of
from orchestrator.wiring.opening import Opened, open_campaign
from orchestrator.wiring.resuming import CannotOpen, site_of_campaign
from orchestrator.wiring.sites import open_site


class NoBaseline(CannotOpen):
    """The campaign ended before it could begin: its baseline has no score."""


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line. `folder` is where the campaign is kept, if not in the task; with `brief`
    nothing is said of what runs, and `goes_on` is the command that goes on with what a signal ended. `by` is who asked
    for it at the page.
    """

    task: Path
    how: How
    flags: Flags
    settings: Settings
    start: str | None = None
    lower_tier: bool = False
    quiet: bool = False
    folder: Path | None = None
    brief: bool = False
    goes_on: str = "blastdoor resume"
    by: str = ""


async def work(wanted: Wanted, minimises: str = "") -> Finished:
    """Run until a rule stops it, or Ctrl-C does; with a node that it `minimises`, do only that.

    Raises click errors for what a person must mend.
    """
    # What is wrong with the task, or with what was asked for, is said before an engine is looked for.
    targets_of(wanted.settings)
    chosen = site_of_campaign(wanted.task, wanted.how, wanted.flags, wanted.settings, kept_in=wanted.folder)
    with _stopping_before_it_began():
        async with (
            open_site(wanted.settings, chosen, say) as site,
            open_campaign(
                wanted.task,
                site,
                how=wanted.how,
                flags=wanted.flags,
                settings=wanted.settings,
                start=wanted.start,
                lower_tier=wanted.lower_tier,
                folder=wanted.folder,
                by=wanted.by,
            ) as opened,
        ):
            if minimises:
                opened.campaign.minimise(minimises)
            if wanted.brief:
                return await _follow(opened, wanted)
            _say_what_runs(opened, wanted)
            async with notifying(opened, wanted.settings, say):
                return await _follow(opened, wanted)


async def _follow(opened: Opened, wanted: Wanted) -> Finished:
    book, bench, task = opened.bench.book, opened.bench, wanted.folder or wanted.task
    caps = Caps(opened.shape.width, opened.options["wall"], opened.options["patience"])
    try:
        with (
            Progress(
                book.state, book.accounts, bench.ranking, caps, quiet=wanted.quiet, live=bench.live, task=task
            ) as progress,
            _stopping(opened.campaign, progress, wanted.goes_on),
        ):
            book.observers.append(progress.on_event)
            return await opened.campaign.run()
    except Unusable as error:
        spent = book.accounts.used(Account.USD)
        told = (
            f"the attempt is not charged; {shown(Account.USD, spent)} were spent before"
            if spent
            else "nothing was charged"
        )
        raise CannotOpen(printable(f"{error}; {told}")) from error
    except (PluginFailed, PoolFailed) as error:
        raise CannotOpen(printable(str(error))) from error
    except BaselineFailed as error:
        tail = f"; the judge's result: {error.log}" if error.log else notes_on_baseline(bench)
        raise NoBaseline(printable(f"{error}{tail}; {how_to_mend(bench.state.run, wanted.task)}")) from error


def how_to_mend(run: Run, task: Path) -> str:
    """`check` looks at the base stage alone; of combinations the log tells, and a stage that is mended begins again."""
    if run.combine is None:
        return f"{typed(task, 'check')} shows more"
    return (
        f"{typed(task, 'logs', run.root)} shows more; mend it, then begin the stage again with {typed(task, 'combine')}"
    )


def notes_on_baseline(bench: Workbench) -> str:
    """What the judge says of a baseline that is no solution."""
    root = bench.state.nodes.get(bench.state.run.root)
    verdict = root.verdict if root else None
    return f": {short(verdict.notes, 300)}" if verdict and not verdict.valid and verdict.notes else ""


def _say_what_runs(opened: Opened, wanted: Wanted) -> None:
    """What was chosen, whom each role asks, and where each value was inherited from."""
    models = opened.bench.models
    doubts = floor_warnings(models.folder, models.config, replay_command(wanted.task, models.config)) if models else []
    for warning in (*opened.bench.task.warnings, *opened.notes, *doubts):
        click.echo(f"warning: {printable(warning)}", err=True)
    run = opened.bench.state.run
    click.echo(f"{opened.bench.task.name}, run {run.number}", err=True)
    if by_default := opened.bench.task.rule_by_default:
        click.echo(f"  {by_default}", err=True)
    for line in opened.options.inherited():
        click.echo(f"  {line}", err=True)
    for line in models_lines(opened.bench.task, opened.options, wanted.settings):
        click.echo(printable(line), err=True)
    if models and models.floor_why:
        click.echo(f"floor {models.config.floor:.3g} tokens/s: {models.floor_why}", err=True)
    for line in site_lines(run.site):
        click.echo(printable(line), err=True)
    if caveat := opened.bench.tier.terms.caveat:
        click.echo(f"tier {caveat}", err=True)
    click.echo(run.why, err=True)
    click.echo(f"{FreeBound.of(opened.bench)} (stall.in_a_row, stall.in_a_row_usd)", err=True)


@contextmanager
def _stopping_before_it_began() -> Iterator[None]:
    """While an engine is looked for and images are built, which may take minutes: no attempt has begun."""
    opening, is_asked = asyncio.current_task(), False

    def stop() -> None:
        nonlocal is_asked
        is_asked = True
        click.echo("interrupted before it began (Ctrl-C again ends at once); run it again", err=True)
        if opening:
            opening.cancel()

    with _on_signals(stop):
        try:
            yield
        except asyncio.CancelledError:
            if is_asked:
                os._exit(Exit.INTERRUPTED)  # all is closed; a thread that waits for an engine would hold us for minutes
            raise


@contextmanager
def _stopping(campaign: Campaign, progress: Progress, goes_on: str) -> Iterator[None]:
    def stop() -> None:
        click.echo(f"ending what runs (Ctrl-C again ends at once); `{goes_on}` goes on", err=True)
        campaign.stop(INTERRUPTED)

    with _on_signals(stop, progress.close):
        yield


@contextmanager
def _on_signals(stop: Callable[[], None], before_exit: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Ctrl-C ends it cleanly; a second one at once, and then what still runs dies with us."""
    loop = asyncio.get_running_loop()
    is_asked = False

    def handle() -> None:
        nonlocal is_asked
        if is_asked:
            before_exit()
            os._exit(Exit.INTERRUPTED)
        is_asked = True
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


INTERRUPTED = "a signal"
