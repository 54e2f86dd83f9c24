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
    """Run a campaign until a rule stops it; `flags` are those of the command line (see Flags), `backend` among them.

    `proposer` is one by its name, or an instance: it stands in the ledger under its `name`, or that of its class, and a
    resume needs it again. `observer` is called with every event and its time, after it is on disk.

    Raises TaskError, LedgerError, CannotOpen, PluginFailed and BaselineFailed with one line for a person, and the
    sandbox's errors when the engine fails.
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
