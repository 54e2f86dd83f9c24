"""From a task folder to a campaign that is ready to run: started, resumed, or given a new run."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from orchestrator.awake import Awake
from orchestrator.budget import Account, Shortage, limits_of
from orchestrator.budget.stops import Progress
from orchestrator.change import Tree
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Role, Run
from orchestrator.domain.state import State, no_collection
from orchestrator.domain.verdict import Aim
from orchestrator.git import Candidates, GitError
from orchestrator.ledger import Artifacts, CampaignLock, Ledger, LedgerError, Missing
from orchestrator.loop.book import Book
from orchestrator.loop.campaign import Campaign
from orchestrator.loop.granting import least_of_attempt
from orchestrator.loop.guards import guard_record
from orchestrator.loop.metrics_file import MetricsFile
from orchestrator.loop.money import worst_of_attempt
from orchestrator.loop.pool import candidates as candidates_of_pool
from orchestrator.loop.pool import fill_pool, refuse_too_few
from orchestrator.loop.width import Shape, shape, side_by_side
from orchestrator.loop.workbench import PoolFailed, Workbench
from orchestrator.proposers import Proposer
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Snapshot, Task, TaskError, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.assembling import make_bench, make_campaign
from orchestrator.wiring.beginning import How, begin
from orchestrator.wiring.combining import (
    base_run,
    combining_of,
    refuse_no_attempts,
    refuse_no_stage,
    refuse_other_members,
)
from orchestrator.wiring.fitting import ceiling_of
from orchestrator.wiring.least import check_cap
from orchestrator.wiring.ledgers import check_head, forget_ledger, has_records, keep_head, take_ledger
from orchestrator.wiring.models import asks_a_model, open_models, ready_models
from orchestrator.wiring.options import Options, resolve
from orchestrator.wiring.parts import make_deadline
from orchestrator.wiring.playbooks import task_pages, with_playbooks
from orchestrator.wiring.plugins import changed_since, faults, lent, name_of, refuse_missing
from orchestrator.wiring.proposers import make_proposer, make_ranking, make_searcher
from orchestrator.wiring.reading import campaign_folder, remember_task, task_folder_of
from orchestrator.wiring.resuming import (
    CannotOpen,
    NoRoom,
    check_unchanged,
    kept_of,
    overruled,
    refuse_another,
    task_of,
)
from orchestrator.wiring.secrets import refuse_secrets
from orchestrator.wiring.site import Site
from sandbox import remove_tree

_log = structlog.get_logger()

# The baseline of a combination stage, and a combination that is to be kept.
_QUERIES_OF_A_STAGE = 2


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
    by: str = "",
) -> AsyncIterator[Opened]:
    """Take the campaign over and make its parts. Raises TaskError, LedgerError, CannotOpen; nothing is lost then.

    `start` is the node whose tree a new run begins with; `folder` is where the campaign is kept, if not in the task.
    `aim` is what candidates are kept for. `proposer` is an instance to search with, in the place of one by its name.
    `by` says who asked for it, where that was not the one who started this process.
    """
    settings, flags = settings or Settings(), flags or Flags()
    folder = folder or campaign_folder(task_folder)
    task_folder = task_folder_of(task_folder)
    task = load_task(task_folder, searches=proposer is None)
    taken = snapshot(task, task_folder)
    async with AsyncExitStack() as stack:
        opening = stack.enter_context(ExitStack())
        opening.enter_context(no_collection())
        stack.enter_context(lent(proposer))
        if proposer is not None:
            flags = flags.but(proposer=name_of(proposer))
        has_nothing = stack.enter_context(_campaign_place(folder))
        ledger = _ledger(folder, how, settings)
        stack.callback(ledger.close)
        stack.push_async_callback(asyncio.to_thread, keep_head, folder, ledger)
        try:
            check_head(folder, ledger)
            artifacts = Artifacts(folder / "artifacts", deferred=True)
            book = Book(ledger, artifacts)
            stack.push_async_callback(book.close)
            how = _checked_how(book, folder, how)
            whole, base = task, base_run(book.state, how)
            if base:
                task = whole.combination()
                taken = _combined(whole, task, taken, task_folder, book.state, artifacts, base, how)
            options = resolve(flags, task, settings, kept_of(book.state, how, base, artifacts))
            if how is How.COMBINE:
                refuse_no_attempts(options)
            elif options["combine"]:
                refuse_no_stage(task)
                refuse_no_search(task, task_folder, flags, settings)
            notes = tuple(faults())
            if how is How.RESUME:
                refuse_missing(book.state.run, backend=flags.backend)
                refuse_another(book.state.run, options)
                refuse_other_members(book.state.run, whole)
                check_unchanged(book.state.run, artifacts, task, taken)
                notes += overruled(options, task_of(book.state.run, artifacts), task)
                notes += tuple(changed_since(book.state.run))
            if how is How.NEW_RUN and (waiting := _waiting(book.state)):
                notes += (f"{waiting} waited for your word and is dropped; --from {waiting} begins with its files",)
            searcher = make_searcher(options, task, taken.tree)
            notes += _without_effect(options, searcher)
            if asks_a_model(options):
                refuse_secrets(task, taken.tree, task_pages(task, task_folder))
            ceiling = ceiling_of(task, site, agent="agent" in options.proposers)
            form = shape_of(task, options, searcher, ceiling)
            # Logs of chambers that died with their orchestrator; nobody else writes any while we hold the lock.
            notes += _what_is_left_of(folder / "live")
            candidates = Candidates(folder / "candidates.git")
            start = _start_of(book, start, how)
            root = _root(candidates, taken, book.state, start)
            awake = Awake(held=book.late_s)
            models = await stack.enter_async_context(open_models(task, options, settings, book, folder, awake))
            of = whole if base else None
            bench = await make_bench(
                task, taken, book, artifacts, candidates, site, options, folder, root, models, awake, of
            )
            if how is not How.RESUME:
                check_cap(_least(bench, options), options, site.name)
            if how is How.COMBINE:
                _refuse_no_room(bench, options)
            probes = side_by_side(options["width"], task.search.saturates, ceiling, timed=_is_timed(task))
            bench = replace(bench, aim=aim, probes=probes)
            if models:
                bench = with_playbooks(bench, task_folder)
            combine = combining_of(whole, base)
            begin(book, bench, task, site, options, form, taken, how, start, lower_tier, combine, by)
            await book.durable()
            has_nothing = False
            await asyncio.to_thread(keep_head, folder, ledger)
            remember_task(folder, task_folder)
            if bench.purse:
                site.paid_by(bench.purse)
                stack.callback(bench.purse.close)
            await bench.shelf.open()
            if bench.pooling and book.state.run.pool:
                await fill_pool(bench, bench.pooling)
            book.observers.append(MetricsFile(folder / "metrics.csv", bench.ranking, book.state).on_event)
            book.listeners += [past.on_event for past in bench.pasts.values()]
            if bench.pruning:
                book.listeners.append(bench.pruning.on_event)
            if bench.novelty:
                book.listeners.append(bench.novelty.on_event)
            campaign = make_campaign(bench, options, form, resumed=how is How.RESUME)
            book.state.forget_lines()
            opening.close()
            yield Opened(campaign, bench, options, form, notes)
        except BaseException:  # a stop, too: what was never begun leaves nothing
            if has_nothing:
                ledger.give_up()  # what is still being written has the turn until then
                with suppress(LedgerError):  # one that is away keeps an empty place, which the next run takes
                    forget_ledger(folder, ledger)
            raise


def _least(bench: Workbench, options: Options) -> int:
    """Micro-dollars without which the campaign would end before its first attempt."""
    baseline = worst_of_attempt(bench, Role.BASELINE, [])[Account.USD]
    if options["attempts"] == 0:
        return baseline
    guards = [guard_record(spec) for spec in bench.task.guards]
    return max(baseline, least_of_attempt(bench, guards)[Account.USD])


def refuse_no_search(task: Task, task_folder: Path, flags: Flags, settings: Settings) -> None:
    """Before a run that combinations are to follow: what keeps them from being searched for is told now, not when the
    base stage is over. Raises TaskError.
    """
    stage = task.combination()
    try:
        options = resolve(flags.of_a_stage(), stage, settings, runs=False)
        make_searcher(options, stage, snapshot(stage, task_folder).tree)
        if options["control"]:
            make_proposer(options["control"], stage, control=True)
        if asks_a_model(options):
            ready_models(stage, options, settings)
    except TaskError as error:
        raise TaskError(f"combinations could not be searched for: {error}") from None


def _refuse_no_room(bench: Workbench, options: Options) -> None:
    """A stage that can do nothing is not begun: it would end what is open in the base stage. Nor is one that would
    cancel what waits for a person. Raises NoRoom.
    """
    state, accounts, spec = bench.state, bench.book.accounts, bench.task.heldout
    late = make_deadline(options).reason(Progress.of(accounts, elapsed_s=state.campaign.elapsed_s))
    reason = f"{late}; raise the cap to go on" if late else ""
    if waiting := _waiting(state):
        reason = (
            f"{waiting} waits for your word; `accept {waiting}` or `decline {waiting}`, then `resume` the run first"
        )
    baseline = worst_of_attempt(bench, Role.BASELINE, [])
    for account, cap in limits_of(usd=options["usd"], tokens=options["tokens"], seconds=options["seconds"]).items():
        left = cap - accounts.used(account)
        if not reason and left < baseline[account]:
            reason = str(Shortage(account, baseline[account], left, could_fit_later=False))
    if not reason and spec and spec.gate and state.campaign.asked + _QUERIES_OF_A_STAGE > spec.queries:
        asked = f"the held-out split was asked {state.campaign.asked} of {spec.queries} times (heldout.queries)"
        reason = f"{asked}, and a stage asks for its baseline and for what it keeps"
    if reason:
        raise NoRoom(f"combinations are not begun: {reason}")


def _waiting(state: State) -> str | None:
    """A node that waits for a person's word."""
    return next((name for name in state.unfinished if state.nodes[name].waits_for_person), None)


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
                    for left in _what_is_left_of(folder):
                        _log.warning("left behind", what=left)
            raise


def _what_is_left_of(folder: Path) -> tuple[str, ...]:
    """Remove it; where that fails, a line for a person. A stranger's repository may bring one of any depth."""
    try:
        remove_tree(folder)
    except OSError as error:
        return (f"{folder} could not be removed ({error.strerror}); remove it yourself",)
    return ()


def shape_of(task: Task, options: Options, proposer: Proposer, ceiling: int) -> Shape:
    return shape(
        width=options["width"],
        depth=options["depth"],
        serial=proposer.serial,
        branching=proposer.branching,
        saturates=task.search.saturates,
        ceiling=ceiling,
        wall_s=task.limits.wall,
        timed=_is_timed(task),
    )


def _is_timed(task: Task) -> bool:
    return any(metric.timing for metric in task.metrics)


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
        check_unchanged(base, artifacts, whole, taken, without=("workspace",))
        try:
            refuse_too_few(state, base, len(candidates_of_pool(state, base, make_ranking(whole), {})))
        except PoolFailed as error:
            raise CannotOpen(str(error)) from None
    return snapshot(stage, task_folder)


def _without_effect(options: Options, searcher: Proposer) -> tuple[str, ...]:
    """What was said and means nothing to a proposer that starts every change at the root."""
    said = [name for name in ("selection", "islands") if options[name] not in ("champion", 1)]
    return (
        ()
        if searcher.branching
        else tuple(f"{name} has no effect; {options['proposer']} starts every change at the baseline" for name in said)
    )


def _root(candidates: Candidates, taken: Snapshot, state: State, start: str | None) -> Tree:
    """The tree that the run begins with: the workspace, or an earlier node's by its commit on record."""
    if start is None:
        return taken.tree
    if commit := state.nodes[start].commit:
        return candidates.read(commit)
    raise GitError(f"node {start} has no candidate (blastdoor tree shows those that have)")


def _start_of(book: Book, start: str | None, how: How) -> str | None:
    """The node that the run begins with; `best` is the champion of the run before."""
    if how is How.RESUME:
        return book.state.run.start
    if start == "best" and book.state.opened and (champion := book.state.champion()):
        start = champion.id
    if start is not None and (not book.state.opened or start not in book.state.nodes):
        raise CannotOpen(f"there is no node {start} to begin with (blastdoor tree shows those that are)")
    if start is not None and (combine := book.state.runs[str(run_of(start))].combine):
        best = book.state.champion(book.state.runs[str(combine.base)])
        other = f", like {best.id}, the best of run {combine.base}" if best else ""
        raise CannotOpen(f"{start} is a combination, with files of another workspace; begin with a base{other}")
    return start
