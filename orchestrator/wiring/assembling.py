"""A campaign put together from its parts."""

import random
from dataclasses import fields, replace
from pathlib import Path

from orchestrator.awake import Awake
from orchestrator.budget import RateLimit
from orchestrator.budget.refunds import RefundPolicy
from orchestrator.change import Tree
from orchestrator.domain.records import Role
from orchestrator.git import Candidates
from orchestrator.ledger import Artifacts
from orchestrator.loop.book import Book
from orchestrator.loop.campaign import Campaign
from orchestrator.loop.models import Models
from orchestrator.loop.money import worst_of_search
from orchestrator.loop.purse import CampaignPurse
from orchestrator.loop.shelf import Shelf
from orchestrator.loop.width import Shape
from orchestrator.loop.workbench import Workbench
from orchestrator.proposers.arms import Arms
from orchestrator.task import Snapshot, Task
from orchestrator.wiring.combining import make_pooling, with_members
from orchestrator.wiring.models import has_free_arm, worst_of_asking
from orchestrator.wiring.options import Options
from orchestrator.wiring.parts import make_deadline, make_meta, make_parts, make_pruning, make_selection, make_stop
from orchestrator.wiring.playbooks import make_evolving
from orchestrator.wiring.proposers import changes_at_once, hints_of, make_proposer, make_searcher
from orchestrator.wiring.site import Site


async def make_bench(
    task: Task,
    taken: Snapshot,
    book: Book,
    artifacts: Artifacts,
    candidates: Candidates,
    site: Site,
    options: Options,
    folder: Path,
    root: Tree,
    models: Models | None,
    awake: Awake,
    whole: Task | None,
) -> Workbench:
    """`whole` is the task that a combination stage is of."""
    parts = await make_parts(task, taken, site, awake, book.durable)
    pooling = make_pooling(whole, parts, site, folder) if whole else None
    if pooling:
        parts = replace(parts, jobs=replace(parts.jobs, pool=pooling.delivered))
        parts = with_members(parts, pooling.jobs, lambda: book.state.run.pool, candidates.read)
    if models:
        parts = replace(parts, asking=worst_of_asking(models.allowances))
    proposers = {Role.SEARCH: make_searcher(options, task)}
    if models and "agent" in options.proposers:
        from orchestrator.wiring.agents import make_agent, worst_of_agent

        parts = replace(parts, asking=parts.asking + worst_of_agent(task, parts))
        made = await make_agent(task, options, parts, site, book, artifacts, folder / "live", models)
        armed = proposers[Role.SEARCH]
        proposers[Role.SEARCH] = armed.with_proposer("agent", made) if isinstance(armed, Arms) else made
    if options["control"]:
        proposers[Role.CONTROL] = make_proposer(options["control"], task, control=True)
    return Workbench(
        **{it.name: getattr(parts, it.name) for it in fields(parts)},
        root=root,
        book=book,
        artifacts=artifacts,
        shelf=Shelf(book, artifacts, options["artifacts"]),
        candidates=candidates,
        policy=task.policy(),
        proposers=proposers,
        refunds=RefundPolicy(stalls=task.stall.after, refunds_per_lineage=task.stall.refunds),
        propose_s=task.stall.propose,
        live=folder / "live",
        # Spreads retries out; nothing depends on it being hard to guess.
        draw=random.Random().random,  # noqa: S311
        pruning=make_pruning(task, parts.ranking, book.state),
        models=models,
        pooling=pooling,
        at_once=changes_at_once(options, task),
        asks=bool(options["ask"]),
        threshold=options["novelty"],
        walk=options["walk"],
        hints=hints_of(options),
        meta=make_meta(options),
        has_free_arm=has_free_arm(options),
        purse=CampaignPurse(book, site.name, lambda: worst_of_search(parts), parts.door.registry),
        stand_down=site.stand_down,
    )


def make_campaign(bench: Workbench, options: Options, form: Shape, *, resumed: bool) -> Campaign:
    return Campaign(
        bench,
        make_stop(options),
        make_deadline(options),
        RateLimit(options["rate"], burst=max(1, form.width), resumed=resumed),
        form.width,
        make_selection(options, bench.task, bench.ranking, bench.book),
        make_evolving(bench),
        review=bool(options["review"]),
        minimise=bool(options["minimise"]),
    )
