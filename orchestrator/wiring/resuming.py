"""What a run was begun with: what of it holds on a resume, and what may have changed since."""

import json
from pathlib import Path

from orchestrator.choices import OWN_ENGINE
from orchestrator.domain.records import Run
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts
from orchestrator.loop.workbench import Parts
from orchestrator.proposers import Proposer
from orchestrator.run_options import OF_A_STAGE, OPTIONS, Flags, Scope
from orchestrator.settings import Settings
from orchestrator.task import Snapshot, Task, diff_of, load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.beginning import How
from orchestrator.wiring.choice import SiteChoice
from orchestrator.wiring.combining import base_run, with_pool
from orchestrator.wiring.ledgers import has_ledger
from orchestrator.wiring.options import Options, resolve
from orchestrator.wiring.parts import make_parts
from orchestrator.wiring.plugins import refuse_missing
from orchestrator.wiring.reading import Reading, campaign_folder, read_campaign, task_folder_of
from orchestrator.wiring.site import Site

# Of a task, what may change while a run goes on: it says how much and how fast, not what is measured.
_MAY_CHANGE = ("budget", "search", "stall", "model", "agent", "roles", "playbook", "combine")
_MAY_NOT = ("search.archive",)
_OF_COMBINE_ALONE = ("workspace", "editable", "hidden", "exclude", "trial", "parameters", "tune", "members")
# What held where nobody said anything, in runs that were begun before every option of a run was kept with it.
_AT_FIRST = {
    "selection": "champion",
    "novelty": "off",
    "meta": "off",
    "credit": "lift",
    "price": "none",
    "hints": "off",
}


class CannotOpen(Exception):
    """The campaign cannot be opened as it was asked; the message is one line for a person."""


class NoRoom(CannotOpen):
    """The caps of the campaign leave nothing for combinations."""


def kept_of(state: State, how: How, base: Run | None, artifacts: Artifacts) -> dict[str, object]:
    if how is How.COMBINE and base:
        return stage_kept_by(base)
    if how is not How.RESUME:
        return {}
    said = task_of(state.run, artifacts).search.model_dump(include=set(_AT_FIRST), exclude_none=True)
    return {**_AT_FIRST, **said, **kept_by(state.run)}


def stage_kept_by(run: Run) -> dict[str, object]:
    """What of a run holds for combinations of its nodes: they are measured where those were, under the same caps."""
    return {name: value for name, value in kept_by(run).items() if name in OF_A_STAGE}


def kept_by(run: Run) -> dict[str, object]:
    """What a run was begun with: options of the whole run, what flags said, where it runs. It goes on so."""
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
            kept = stage_kept_by(base) if how is How.COMBINE else kept_by(reading.state.run)
            return resolve(flags, stage, settings, kept).site
        if proposer is None:
            refuse_missing(reading.state.run, backend=flags.backend)
        task = load_task(task_folder_of(folder), searches=proposer is None)
        return site_of_run(reading.state.run, task, flags, settings)


def site_of_run(run: Run, task: Task, flags: Flags, settings: Settings) -> SiteChoice:
    """Where a run is gone on with: where it was begun, unless a flag says otherwise."""
    return resolve(flags, task, settings, kept_by(run)).site


def check_unchanged(run: Run, artifacts: Artifacts, task: Task, taken: Snapshot, without: tuple[str, ...] = ()) -> None:
    begun = task_of(run, artifacts)
    changed = diff_of(begun, task)
    keys = [key for key in changed if key.split(".")[0] not in _MAY_CHANGE or key.startswith(_MAY_NOT)]
    ignored = ("task", *without)
    files = [name for name, digest in taken.digests.items() if name not in ignored and run.digests.get(name) != digest]
    if keys or files:
        named = keys if run.combine is None else [_of_stage(key) for key in keys]
        what = ", ".join([*named, *(f"the files of {name}" for name in files)])
        begins = "run --new-run" if run.combine is None else "combine"
        back = f"put it back (`apply {run.root}` takes out what was applied)" if "workspace" in files else "put it back"
        if keys == ["certify.rule"] and not files and task.rule_by_default:  # nobody changed it: the default is another
            back = f'write `rule = "{begun.certify.rule}"` under [certify], which it was begun with'
        raise CannotOpen(f"the task changed since run {run.number} began ({what}); {back}, or use `{begins}`")


def _of_stage(key: str) -> str:
    """What the task file calls a key of a combination stage. Its statement tells how many members there may be."""
    if key == "statement":
        return "statement or combine.pool"
    return f"combine.{key}" if key.split(".")[0] in _OF_COMBINE_ALONE else key


def refuse_another(run: Run, options: Options) -> None:
    if options["proposer"] != run.proposer:
        own = f"run {run.number} was begun with the proposer {run.proposer}"
        raise CannotOpen(f"{own}, not {options['proposer']}; go on with that one, or begin a new run")


def task_of(run: Run, artifacts: Artifacts) -> Task:
    return Task.from_canonical(artifacts.get(run.task).decode())


def overruled(options: Options, old: Task, new: Task) -> tuple[str, ...]:
    """What was changed in the task file since the run began and does not count, for the run was begun with another."""
    before, now = ({**task.budget.model_dump(), **task.search.model_dump()} for task in (old, new))
    found = []
    for name, source in options.sources.items():
        changed = now.get(name) is not None and before.get(name) != now[name] != options[name]
        if source == "campaign" and changed:
            is_fixed = OPTIONS[name].scope is Scope.RUN
            how = "`run --new-run` begins" if is_fixed else f"`resume --{name.replace('_', '-')}` goes on"
            stays = options.shown(name) or OPTIONS[name].unset
            found.append(f"{name} stays {stays}, which the run was begun with; {how} with another")
    return tuple(found)


async def parts_of_run(task_folder: Path, reading: Reading, run: int, site: Site) -> Parts:
    """What a run was made of, once more. Raises CannotOpen when its task is no longer what it was."""
    task_folder = task_folder_of(task_folder)
    task, record = load_task(task_folder, searches=False), reading.state.runs[str(run)]
    whole = task
    if record.combine:
        task = task.combination()
    taken = snapshot(task, task_folder)
    # A candidate is read from its commit: the workspace may have been changed since, for instance by `apply`.
    check_unchanged(record, reading.artifacts, task, taken, without=("workspace",))
    parts = await make_parts(task, taken, site)
    if record.combine is None:
        return parts
    return with_pool(parts, whole, record, reading.artifacts, reading.candidates, site)
