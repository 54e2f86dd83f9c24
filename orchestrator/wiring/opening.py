"""From a task folder to a campaign that is ready to run: started, resumed, or given a new run."""

import json
import random
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.awake import Awake
from orchestrator.budget import Account, RateLimit, RefundPolicy
from orchestrator.change import Tree
from orchestrator.choices import OWN_ENGINE
from orchestrator.domain.records import Role, Run
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Aim
from orchestrator.git import Candidates
from orchestrator.ledger import Artifacts, CampaignLock, Ledger, LedgerError, Missing
from orchestrator.loop.book import Book
from orchestrator.loop.campaign import Campaign
from orchestrator.loop.granting import least_of_attempt
from orchestrator.loop.guards import guard_record
from orchestrator.loop.metrics_file import MetricsFile
from orchestrator.loop.models import Models
from orchestrator.loop.money import worst_of_attempt, worst_of_search
from orchestrator.loop.pool import candidates as candidates_of_pool
from orchestrator.loop.pool import fill_pool, refuse_too_few
from orchestrator.loop.purse import CampaignPurse
from orchestrator.loop.shelf import Shelf
from orchestrator.loop.width import Shape, shape, side_by_side
from orchestrator.loop.workbench import Parts, PoolFailed, Workbench
from orchestrator.proposers import Proposer
from orchestrator.proposers.arms import Arms
from orchestrator.run_options import OPTIONS, Flags, Scope
from orchestrator.settings import Settings
from orchestrator.task import Snapshot, Task, diff_of, load_task, snapshot
from orchestrator.wiring.beginning import How, begin
from orchestrator.wiring.choice import OF_A_SITE, SiteChoice
from orchestrator.wiring.combining import (
    base_run,
    combining_of,
    make_pooling,
    refuse_no_attempts,
    refuse_no_stage,
    with_pool,
)
from orchestrator.wiring.fitting import ceiling_of
from orchestrator.wiring.least import check_cap
from orchestrator.wiring.ledgers import forget_ledger, has_ledger, has_records, take_ledger
from orchestrator.wiring.models import asks_a_model, has_free_arm, open_models, worst_of_asking
from orchestrator.wiring.options import Options, resolve
from orchestrator.wiring.parts import make_deadline, make_meta, make_parts, make_pruning, make_selection, make_stop
from orchestrator.wiring.playbooks import make_evolving, task_pages, with_playbooks
from orchestrator.wiring.plugins import changed_since, faults, lent, name_of, refuse_missing
from orchestrator.wiring.proposers import changes_at_once, make_proposer, make_ranking, make_searcher
from orchestrator.wiring.reading import Reading, campaign_folder, read_campaign, remember_task, task_folder_of
from orchestrator.wiring.secrets import refuse_secrets
from orchestrator.wiring.site import Site

# Of a task, what may change while a run goes on: it says how much and how fast, not what is measured.
_MAY_CHANGE = ("budget", "search", "stall", "model", "agent", "roles", "playbook", "combine")


class CannotOpen(Exception):
    """The campaign cannot be opened as it was asked; the message is one line for a person."""


@dataclass(frozen=True)
class Opened:
    """`notes` are for a person: what the task file says and does not count."""

    campaign: Campaign
    bench: Workbench
    options: Options
    shape: Shape
    notes: tuple[str, ...]


@asynccontextmanager
async def open_campaign(
    task_folder: Path,
    site: Site,
    *,
    how: How = How.START,
    flags: Flags | None = None,
    settings: Settings | None = None,
    start: str | None = None,
    lower_tier: bool = False,
    folder: Path | None = None,
    aim: Aim = Aim.BETTER,
    proposer: Proposer | None = None,
) -> AsyncIterator[Opened]:
    """Take the campaign over and make its parts. Raises TaskError, LedgerError, CannotOpen; nothing is lost then.

    `start` is the node whose tree a new run begins with; `folder` is where the campaign is kept, if not in the task.
    `aim` is what candidates are kept for. `proposer` is an instance to search with, in the place of one by its name.
    """
    settings, flags = settings or Settings(), flags or Flags()
    folder = folder or campaign_folder(task_folder)
    task_folder = task_folder_of(task_folder)
    task = load_task(task_folder, searches=proposer is None)
    taken = snapshot(task, task_folder)
    async with AsyncExitStack() as stack:
        stack.enter_context(lent(proposer))
        if proposer is not None:
            flags = flags.but(proposer=name_of(proposer))
        has_nothing = stack.enter_context(_campaign_place(folder))
        ledger = _ledger(folder, how, settings)
        try:
            artifacts = Artifacts(folder / "artifacts", deferred=True)
            book = Book(ledger, artifacts)
            how = _checked_how(book, folder, how)
            whole, base = task, base_run(book.state, how)
            if base:
                task = whole.combination()
                taken = _combined(whole, task, taken, task_folder, book.state, artifacts, base, how)
            options = resolve(flags, task, settings, _kept(book, how, base))
            if how is How.COMBINE:
                refuse_no_attempts(options)
            elif options["combine"]:
                refuse_no_stage(task)
            notes = tuple(faults())
            if how is How.RESUME:
                refuse_missing(book.state.run, backend=flags.backend)
                _refuse_another(book.state.run, options)
                _check_unchanged(book.state.run, artifacts, task, taken)
                notes += _overruled(options, _task_of(book.state.run, artifacts), task)
                notes += tuple(changed_since(book.state.run))
            searcher = make_searcher(options, task, taken.tree)
            notes += _without_effect(options, searcher)
            if asks_a_model(options):
                refuse_secrets(task, taken.tree, task_pages(task, task_folder))
            ceiling = ceiling_of(task, site, agent="agent" in options.proposers)
            form = shape_of(task, options, searcher, ceiling)
            # Logs of chambers that died with their orchestrator; nobody else writes any while we hold the lock.
            shutil.rmtree(folder / "live", ignore_errors=True)
            candidates = Candidates(folder / "candidates.git")
            start = _start_of(book, start, how)
            root = _root(candidates, taken, start)
            awake = Awake(waited=lambda: ledger.waited_s)
            models = await stack.enter_async_context(open_models(task, options, settings, book, folder, awake))
            of = whole if base else None
            bench = await _bench(
                task, taken, book, artifacts, candidates, site, options, folder, root, models, awake, of
            )
            if how is not How.RESUME:
                check_cap(_least(bench, options), options, site.name)
            probes = side_by_side(options["width"], task.search.saturates, ceiling)
            bench = replace(bench, aim=aim, probes=probes)
            if models:
                bench = with_playbooks(bench, task_folder)
            begin(book, bench, task, site, options, form, taken, how, start, lower_tier, combining_of(whole, base))
            has_nothing = False
            remember_task(folder, task_folder)
            if bench.purse:
                site.paid_by(bench.purse)
                stack.callback(bench.purse.close)
            await bench.shelf.open()
            if bench.pooling and book.state.run.pool:
                await fill_pool(bench, bench.pooling)
            book.observers.append(MetricsFile(folder / "metrics.csv", bench.ranking, book.state).on_event)
            book.observers += [past.on_event for past in bench.pasts.values()]
            if bench.pruning:
                book.observers.append(bench.pruning.on_event)
            if bench.novelty:
                book.observers.append(bench.novelty.on_event)
            campaign = _campaign(bench, options, form, resumed=how is How.RESUME)
            yield Opened(campaign, bench, options, form, notes)
        except BaseException:  # a stop, too: what was never begun leaves nothing
            if has_nothing:
                with suppress(LedgerError):  # one that is away keeps an empty place, which the next run takes
                    forget_ledger(folder, ledger)
            raise
        finally:
            ledger.close()


def _least(bench: Workbench, options: Options) -> int:
    """Micro-dollars without which the campaign would end before its first attempt."""
    baseline = worst_of_attempt(bench, Role.BASELINE, [])[Account.USD]
    if options["attempts"] == 0:
        return baseline
    guards = [guard_record(spec) for spec in bench.task.guards]
    return max(baseline, least_of_attempt(bench, guards)[Account.USD])


@contextmanager
def _campaign_place(folder: Path) -> Iterator[bool]:
    """The campaign's folder, locked, and whether it is new: then it goes again where an error came before anything was
    begun in it.
    """
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with CampaignLock(folder / "lock"):
        try:
            yield is_new
        except BaseException:
            with suppress(LedgerError):  # nobody can tell what is in it, so it stays
                if is_new and not has_records(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            raise


def _campaign(bench: Workbench, options: Options, form: Shape, *, resumed: bool) -> Campaign:
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


def shape_of(task: Task, options: Options, proposer: Proposer, ceiling: int) -> Shape:
    return shape(
        width=options["width"],
        depth=options["depth"],
        serial=proposer.serial,
        branching=proposer.branching,
        saturates=task.search.saturates,
        ceiling=ceiling,
        wall_s=task.limits.wall,
    )


def _ledger(folder: Path, how: How, settings: Settings) -> Ledger:
    """One that was made but never used, by somebody who died at once, counts as none."""
    try:
        return take_ledger(folder, settings, make=how is How.START)
    except Missing:
        raise CannotOpen(f"there is no campaign in {folder}; start one with `run`") from None


def _checked_how(book: Book, folder: Path, how: How) -> How:
    """A campaign that never came to a score is no loss: starting it again gives it a new run."""
    if book.state.opened and how is How.START:
        if any(node.verdict for node in book.state.nodes.values()):
            raise CannotOpen(
                f"{folder} has a campaign; go on with `resume`, or begin its next run with `run --new-run`"
            )
        return How.NEW_RUN
    if not book.state.opened and how is not How.START:
        raise CannotOpen(f"there is no campaign in {folder}; start one with `run`")
    return how


def _combined(
    whole: Task,
    stage: Task,
    taken: Snapshot,
    task_folder: Path,
    state: State,
    artifacts: Artifacts,
    base: Run,
    how: How,
) -> Snapshot:
    """What a combination stage is bound to. Before its pool is chosen, nothing of the base stage may have changed but
    the workspace, which an earlier winner may have been applied to.
    """
    if how is How.COMBINE:
        _check_unchanged(base, artifacts, whole, taken, without=("workspace",))
        try:
            refuse_too_few(state, base, len(candidates_of_pool(state, base, make_ranking(whole), {})))
        except PoolFailed as error:
            raise CannotOpen(str(error)) from None
    return snapshot(stage, task_folder)


def _kept(book: Book, how: How, base: Run | None) -> dict[str, object]:
    if how is How.COMBINE and base:
        return site_kept_by(base)
    return kept_by(book.state.run) if how is How.RESUME else {}


def site_kept_by(run: Run) -> dict[str, object]:
    """Where a run was begun: combinations of its nodes are measured where those were."""
    return {name: value for name, value in kept_by(run).items() if name in OF_A_SITE}


def kept_by(run: Run) -> dict[str, object]:
    """What a run was begun with: by flags, where it runs, its proposer and control. It goes on as it was begun."""
    kept = {"backend": OWN_ENGINE, **json.loads(run.options)}
    populations = {"islands": run.islands, "migrate": run.migrate or None}
    return {**kept, **populations, "proposer": run.proposer, "control": run.control}


def site_of_campaign(
    folder: Path,
    how: How,
    flags: Flags,
    settings: Settings,
    proposer: Proposer | None = None,
    kept_in: Path | None = None,
) -> SiteChoice:
    """Where its candidates are to run, before anything of it is opened. `kept_in` is the campaign's folder, if not in
    the task. Raises TaskError, LedgerError.
    """
    if how not in (How.RESUME, How.COMBINE) or not has_ledger(kept_in or campaign_folder(folder)):
        return resolve(flags, load_task(task_folder_of(folder)), settings).site
    with read_campaign(kept_in or folder, settings) as reading:
        if base := base_run(reading.state, how):
            stage = load_task(task_folder_of(folder)).combination()
            kept = site_kept_by(base) if how is How.COMBINE else kept_by(reading.state.run)
            return resolve(flags, stage, settings, kept).site
        if proposer is None:
            refuse_missing(reading.state.run, backend=flags.backend)
        task = load_task(task_folder_of(folder), searches=proposer is None)
        return site_of_run(reading.state.run, task, flags, settings)


def site_of_run(run: Run, task: Task, flags: Flags, settings: Settings) -> SiteChoice:
    """Where a run is gone on with: where it was begun, unless a flag says otherwise."""
    return resolve(flags, task, settings, kept_by(run)).site


def _check_unchanged(
    run: Run, artifacts: Artifacts, task: Task, taken: Snapshot, without: tuple[str, ...] = ()
) -> None:
    keys = [key for key in diff_of(_task_of(run, artifacts), task) if key.split(".")[0] not in _MAY_CHANGE]
    ignored = ("task", *without)
    files = [name for name, digest in taken.digests.items() if name not in ignored and run.digests.get(name) != digest]
    if keys or files:
        what = ", ".join([*keys, *(f"the files of {name}" for name in files)])
        raise CannotOpen(f"the task changed since run {run.number} began ({what}); put it back, or use `run --new-run`")


def _refuse_another(run: Run, options: Options) -> None:
    if options["proposer"] != run.proposer:
        own = f"run {run.number} was begun with the proposer {run.proposer}"
        raise CannotOpen(f"{own}, not {options['proposer']}; go on with that one, or begin a new run")


def _task_of(run: Run, artifacts: Artifacts) -> Task:
    return Task.from_canonical(artifacts.get(run.task).decode())


def _overruled(options: Options, old: Task, new: Task) -> tuple[str, ...]:
    """What was changed in the task file since the run began and does not count, for the run was begun with another."""
    before, now = ({**task.budget.model_dump(), **task.search.model_dump()} for task in (old, new))
    found = []
    for name, source in options.sources.items():
        changed = now.get(name) is not None and before.get(name) != now[name] != options[name]
        if source == "campaign" and changed:
            is_fixed = OPTIONS[name].scope is Scope.RUN
            how = "`run --new-run` begins" if is_fixed else f"`resume --{name.replace('_', '-')}` goes on"
            found.append(f"{name} stays {options.shown(name)}, which the run was begun with; {how} with another")
    return tuple(found)


def _without_effect(options: Options, searcher: Proposer) -> tuple[str, ...]:
    """What was said and means nothing to a proposer that starts every change at the root."""
    said = [name for name in ("selection", "islands") if options[name] not in ("champion", 1)]
    return (
        ()
        if searcher.branching
        else tuple(f"{name} has no effect; {options['proposer']} starts every change at the baseline" for name in said)
    )


async def parts_of_run(task_folder: Path, reading: Reading, run: int, site: Site) -> Parts:
    """What a run was made of, once more. Raises CannotOpen when its task is no longer what it was."""
    task_folder = task_folder_of(task_folder)
    task, record = load_task(task_folder, searches=False), reading.state.runs[str(run)]
    if record.combine:
        task = task.combination()
    taken = snapshot(task, task_folder)
    # A candidate is read from its commit: the workspace may have been changed since, for instance by `apply`.
    _check_unchanged(record, reading.artifacts, task, taken, without=("workspace",))
    parts = await make_parts(task, taken, site)
    return with_pool(parts, record, reading.artifacts, site) if record.combine else parts


def _root(candidates: Candidates, taken: Snapshot, start: str | None) -> Tree:
    """The tree that the run begins with: the workspace, or an earlier node's."""
    return taken.tree if start is None else candidates.read(start)


def _start_of(book: Book, start: str | None, how: How) -> str | None:
    """The node that the run begins with; `best` is the champion of the run before."""
    if how is How.RESUME:
        return book.state.run.start
    if start == "best" and book.state.opened and (champion := book.state.champion()):
        return champion.id
    if start is not None and (not book.state.opened or start not in book.state.nodes):
        raise CannotOpen(f"there is no node {start} to begin with (blastdoor tree shows those that are)")
    return start


async def _bench(
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
    parts = await make_parts(task, taken, site, awake)
    pooling = make_pooling(whole, parts, site, folder) if whole else None
    if pooling:
        parts = replace(parts, jobs=replace(parts.jobs, pool=pooling.delivered))
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
        **vars(parts),
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
        meta=make_meta(options),
        has_free_arm=has_free_arm(options),
        purse=CampaignPurse(book, site.name, lambda: worst_of_search(parts)),
        stand_down=site.stand_down,
    )
