"""What replay, guards and shell have in common: a campaign that is read, and chambers like those of its run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.change import Tree
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node
from orchestrator.loop.workbench import Parts
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.views.campaign.opening import chosen_node
from orchestrator.views.campaign.opening import open_campaign as read
from orchestrator.views.flags import say
from orchestrator.wiring.plugins import refuse_missing
from orchestrator.wiring.reading import Reading, task_folder_of
from orchestrator.wiring.resuming import parts_of_run, site_of_run
from orchestrator.wiring.sites import open_site


@dataclass(frozen=True)
class Place:
    reading: Reading
    node: Node
    tree: Tree
    parts: Parts


@asynccontextmanager
async def open_place(settings: Settings, task: Path, name: str, flags: Flags) -> AsyncIterator[Place]:
    """A node, and the site that its run is at.

    Raises UsageError for a node without a candidate, CannotOpen for a task that changed.
    """
    with read(task) as reading:
        node = chosen_node(reading.state, name)
        if node.commit is None:
            raise click.UsageError(f"{node.id} has no candidate: nothing of it was promoted")
        number = run_of(node.id)
        loaded = load_task(task_folder_of(task), searches=False)
        refuse_missing(reading.state.runs[str(number)], backend=flags.backend, searches=False)
        chosen = site_of_run(reading.state.runs[str(number)], loaded, flags, settings)
        async with open_site(settings, chosen, say) as site:
            if site.judging:
                say(f"on {site.name}, which is rented: this costs, and is in no campaign's books")
            parts = await parts_of_run(task, reading, number, site)
            yield Place(reading, node, reading.candidates.read(node.commit), parts)
