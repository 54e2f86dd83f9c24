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
from orchestrator.settings import Settings
from orchestrator.text import printable
from orchestrator.views.campaign.opening import chosen_node
from orchestrator.views.campaign.opening import open_campaign as read
from orchestrator.wiring import Reading, docker_config, docker_site, parts_of_run


@dataclass(frozen=True)
class Place:
    reading: Reading
    node: Node
    tree: Tree
    parts: Parts


@asynccontextmanager
async def open_place(settings: Settings, task: Path, name: str, runtime: str | None) -> AsyncIterator[Place]:
    """A node and an engine. Raises UsageError for a node without a candidate, CannotOpen for a task that changed."""
    with read(task) as reading:
        node = chosen_node(reading.state, name)
        if node.commit is None:
            raise click.UsageError(f"{node.id} has no candidate: nothing of it was promoted")
        config = docker_config(settings, runtime=runtime)
        async with docker_site(config, settings.image, lambda line: click.echo(printable(line), err=True)) as site:
            parts = await parts_of_run(task, reading, run_of(node.id), site)
            yield Place(reading, node, reading.candidates.read(node.commit), parts)
