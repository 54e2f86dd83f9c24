"""The same as the command line, from Python.

import asyncio
from orchestrator.api import search

finished = asyncio.run(search("my-task", attempts=20, seed=7))
print(finished.reason, finished.champion.id, finished.best.metrics, finished.baseline.metrics)
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from orchestrator.domain.headline import Headline
from orchestrator.loop.book import Observer
from orchestrator.loop.campaign import Finished
from orchestrator.loop.workbench import PoolFailed
from orchestrator.proposers import Proposer
from orchestrator.run_options import OPTIONS, Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError
from orchestrator.wiring.beginning import How
from orchestrator.wiring.combining import combines_next
from orchestrator.wiring.notifying import notifying, targets_of
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.reading import Reading, read_campaign
from orchestrator.wiring.resuming import CannotOpen, NoRoom, site_of_campaign
from orchestrator.wiring.sites import open_site

__all__ = ["Finished", "Flags", "Headline", "How", "Reading", "Settings", "read_campaign", "search"]
_F = TypeVar("_F", bound=Callable[..., Any])


def _with_run_options(function: _F) -> _F:
    """Show every option of a run among its keywords, and what it means."""
    shown = inspect.signature(function)
    own = [it for it in shown.parameters.values() if it.kind is not it.VAR_KEYWORD]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=field.annotation)
        for name, field in Flags.model_fields.items()
        if name not in shown.parameters
    ]
    lines = "\n".join(f"    {it.name}: {OPTIONS[it.name].help}" for it in more)
    function.__signature__ = shown.replace(parameters=[*own, *more])  # type: ignore[attr-defined]  # read by inspect
    function.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("    flags: Every option of a run.", lines)
    return function


@_with_run_options
async def search(
    task: str | Path,
    *,
    how: How = How.START,
    settings: Settings | None = None,
    observer: Observer | None = None,
    proposer: Proposer | str | None = None,
    **flags: Any,
) -> Finished:
    """Run a campaign until a rule stops it.

    Args:
        task: The folder with the task's `blastdoor.toml`.
        how: Start a campaign, resume one, begin the next run in it, or combine the best of what it has.
        settings: In place of the user's own.
        observer: Is called with every event and its time, after the event is on disk. One that raises ends the session.
        proposer: One by its name, or an instance: it stands in the ledger under its `name`, or that of its class, and a
            resume needs it again.
        flags: Every option of a run.

    Returns:
        Why it ended, the champion, and its values beside those of the baseline.

    Raises:
        TaskError, LedgerError, CannotOpen, PluginFailed, BaselineFailed: With one line for a person.
        SandboxError: When the engine or the provider fails.
    """
    settings = settings or Settings()
    targets_of(settings)
    instance = None if isinstance(proposer, str) else proposer
    said = _flags({"proposer": proposer if isinstance(proposer, str) else None, **flags})
    finished = await _session(Path(task), how, said, settings, observer, instance)
    may_combine = said.combine or how is How.RESUME
    if may_combine and not finished.gave_up and combines_next(Path(task), settings):
        try:
            finished = await _session(Path(task), How.COMBINE, said.of_a_stage(), settings, observer, None)
        except NoRoom as error:
            finished = replace(finished, reason=f"{finished.reason}; {error}")
    return finished


async def _session(
    task: Path, how: How, flags: Flags, settings: Settings, observer: Observer | None, proposer: Proposer | None
) -> Finished:
    async with (
        open_site(settings, site_of_campaign(task, how, flags, settings, proposer)) as site,
        open_campaign(task, site, how=how, flags=flags, settings=settings, proposer=proposer) as opened,
        notifying(opened, settings),
    ):
        if observer:
            opened.bench.book.observers.append(observer)
        try:
            return await opened.campaign.run()
        except PoolFailed as error:
            raise CannotOpen(str(error)) from error


def _flags(given: dict[str, Any]) -> Flags:
    if unknown := given.keys() - OPTIONS.keys():
        raise TypeError(f"search() got an unexpected keyword argument {min(unknown)!r}")
    try:
        return Flags(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise TaskError(f"{first['loc'][0]}: {first['msg'].removeprefix('Value error, ')}") from None
