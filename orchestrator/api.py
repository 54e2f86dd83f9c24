"""The same as the command line, from Python.

import asyncio
from orchestrator.api import search

finished = asyncio.run(search("my-task", attempts=20, seed=7))
print(finished.reason, finished.champion.id, finished.best.metrics, finished.baseline.metrics)
"""

from pathlib import Path
from typing import Any

from orchestrator.domain.headline import Headline
from orchestrator.loop.book import Observer
from orchestrator.loop.campaign import Finished
from orchestrator.proposers import Proposer
from orchestrator.settings import Settings
from orchestrator.wiring import Flags, How, Reading, open_campaign, open_site, read_campaign, site_of_campaign

__all__ = ["Finished", "Flags", "Headline", "How", "Reading", "Settings", "read_campaign", "search"]


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
        how: Start a campaign, resume one, or begin the next run in it.
        settings: In place of the user's own.
        observer: Is called with every event and its time, after the event is on disk. One that raises ends the session.
        proposer: One by its name, or an instance: it stands in the ledger under its `name`, or that of its class, and a
            resume needs it again.
        flags: Those of `blastdoor run`, see `Flags`; `attempts`, `usd`, `width`, `seed` and `backend` among them.

    Returns:
        Why it ended, the champion, and its values beside those of the baseline.

    Raises:
        TaskError, LedgerError, CannotOpen, PluginFailed, BaselineFailed: With one line for a person.
        SandboxError: When the engine or the provider fails.
    """
    settings = settings or Settings()
    instance = None if isinstance(proposer, str) else proposer
    said = Flags(proposer=proposer if isinstance(proposer, str) else None, **flags)
    async with (
        open_site(settings, site_of_campaign(Path(task), how, said, settings, instance)) as site,
        open_campaign(Path(task), site, how=how, flags=said, settings=settings, proposer=instance) as opened,
    ):
        if observer:
            opened.bench.book.observers.append(observer)
        return await opened.campaign.run()
