"""A coding agent for a campaign: its image, made ready and looked at, and its books."""

from dataclasses import replace
from pathlib import Path

from orchestrator.agents.checking import objection
from orchestrator.agents.presets import IMAGE, agent_of
from orchestrator.agents.proposer import AgentProposer
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Spent
from orchestrator.domain.verdict import Mode
from orchestrator.ledger import Artifacts
from orchestrator.loop.agents import AgentBook
from orchestrator.loop.backstop import walls_of_agent
from orchestrator.loop.book import Book
from orchestrator.loop.models import Models
from orchestrator.loop.workbench import Parts
from orchestrator.task import Task, TaskError
from orchestrator.wiring.options import Options
from orchestrator.wiring.parts import make_door
from orchestrator.wiring.site import Site
from sandbox import Refused


async def make_agent(
    task: Task, options: Options, parts: Parts, site: Site, book: Book, artifacts: Artifacts, live: Path, models: Models
) -> AgentProposer:
    """Raises TaskError for an agent that could not work, before anything is charged."""
    agent = agent_of(task.agent, options["agent"])
    home = site.home
    if not home.backend.capabilities.relay:
        raise TaskError(f"an agent needs a backend with relay, which {home.name} has not; use another proposer")
    try:
        # What the task's programs need is there as well, so that the agent can try what it wrote.
        image = await home.bake(task.image.model_copy(update={"base": agent.image}))
    except Refused as error:
        hint = "; build it with `blastdoor images build agent`" if agent.image == IMAGE else ""
        raise TaskError(f"the agent's image cannot be had: {error}{hint}") from None
    agent = replace(agent, image=image.name)
    door = make_door(home, image, task.stall.provision, parts.home.awake, parts.home.durable)
    if why := await objection(door, agent):
        raise TaskError(why)
    mode = Mode.TUNE if task.tune else Mode.SUBMIT
    return AgentProposer(
        task=task,
        policy=task.policy(),
        metrics=parts.ranking.metrics,
        agent=agent,
        door=door,
        journal=AgentBook(book, artifacts, live, models.agent, models.configuration),
        inputs=parts.jobs.inputs_of(mode),
        pool=lambda: (parts.jobs.pool[mode],) if parts.jobs.pool else (),
        allowance=models.allowances[ModelRole.USER],
    )


def worst_of_agent(task: Task, parts: Parts) -> Spent:
    """What an attempt sets aside for its agent's chambers."""
    walls = walls_of_agent(task)
    return sum((parts.home.worst_within(it.limits, builds=it.builds) for it in walls), Spent())
