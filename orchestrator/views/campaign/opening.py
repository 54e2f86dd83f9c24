"""How every command of this folder starts: which campaign, which run, which node; and what they have in common."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.minimal import minimal_of, smaller_of
from orchestrator.domain.node import parse_node, run_of
from orchestrator.domain.records import Node, Role, Run
from orchestrator.domain.state import State
from orchestrator.ledger import LedgerError
from orchestrator.settings import Settings
from orchestrator.task import StoredTask, TaskError
from orchestrator.task.errors import AUDIT
from orchestrator.text import printable
from orchestrator.views.campaign.screen import prepare_streams
from orchestrator.views.campaign.sections.material import Material, typed
from orchestrator.wiring.reading import Reading, read_campaign, task_folder_of

if TYPE_CHECKING:
    from orchestrator.domain.audit import AuditRecord
    from orchestrator.task import Task

task_argument = click.argument("task", default=".", type=click.Path(path_type=Path), metavar="[TASK]")


def _named_node(context: click.Context, _: click.Parameter, value: str) -> str:
    """One who names only the task forgot the node: the error is about that, not about a campaign elsewhere."""
    if value != "best" and not _is_node(value) and Path(value).is_dir():
        example = typed(Path(value), context.info_name or "", "best")
        raise click.UsageError(f"{printable(value)} is a folder; name a node before it, like {example}", context)
    return value


node_argument = click.argument("node", metavar="NODE", callback=_named_node)
# For node_and_task, where the node may be left out.
words_argument = click.argument("words", nargs=-1, metavar="[NODE] [TASK]")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
run_option = click.option("--run", "number", type=int, metavar="N", help="Run to show; defaults to the current one.")


def _unreadable() -> tuple[type[Exception], ...]:
    """Asked only when something was raised: git's library takes a tenth of what most commands take."""
    from orchestrator.git import GitError

    return LedgerError, GitError, TaskError


class CampaignCommand(click.Command):
    """A command about a campaign: what cannot be read becomes one line, like any other bad input."""

    def invoke(self, ctx: click.Context) -> Any:
        prepare_streams()
        try:
            return super().invoke(ctx)
        except _unreadable() as error:
            raise click.UsageError(printable(" ".join(str(error).split())), ctx) from error


@contextmanager
def open_campaign(task: Path, *, glance: bool = False, dotted: bool = False) -> Iterator[Reading]:
    """Raises click's UsageError where there is no campaign, or none that has begun. With `glance`, not all is read, and
    with `dotted`, what is drawn of every node.
    """
    if not task.is_dir():
        raise click.UsageError(f"{task} is not a folder; name the folder of a task")
    with read_campaign(task, given_settings(), glance=glance, dotted=dotted) as reading:
        if not reading.state.opened or not reading.state.runs:
            raise click.UsageError(f"nothing was run in {task} yet; {typed(task, 'run')} starts a campaign")
        yield reading


def given_settings() -> Settings | None:
    """Those of this command, flags included; None outside of one."""
    context = click.get_current_context(silent=True)
    return context.find_object(Settings) if context else None


def chosen_run(state: State, number: int | None) -> Run:
    if number is None:
        return state.run
    if str(number) not in state.runs:
        raise click.UsageError(f"there is no run {number}; runs are {', '.join(state.runs)}")
    return state.runs[str(number)]


def chosen_node(state: State, text: str) -> Node:
    """A node that a person named; `best` is the champion of the present run."""
    if text == "best":
        champion = state.champion()
        if champion is None:
            raise click.UsageError(f"nothing is kept yet, so there is no best node{_best_before(state)}")
        return champion
    try:
        name = parse_node(text)
    except ValueError as error:
        raise click.UsageError(printable(str(error))) from None
    if name not in state.nodes:
        raise click.UsageError(f"there is no node {name}; blastdoor tree --all shows them")
    return state.nodes[name]


def _best_before(state: State) -> str:
    """That of the last run that has one: a run whose baseline failed hides it."""
    bests = ((run.number, state.champion(run)) for run in reversed(list(state.runs.values())))
    found = next(((number, best.id) for number, best in bests if best), None)
    return f" of run {state.campaign.run}; that of run {found[0]} is {found[1]}" if found else ""


def offered_node(state: State, text: str, task: Path, *, minimal: bool) -> Node:
    """A node that somebody takes over. Where a smaller change keeps its score, it is that one, or it is said."""
    node = chosen_node(state, text)
    smaller = smaller_of(state, node)
    if minimal and smaller is None:
        if node.role is Role.MINIMISED:
            return node
        if node.parent is None:
            raise click.UsageError(f"{node.id} is the baseline: it has no change to make smaller")
        if minimal_of(state, node):
            advice = typed(task, "show", node.id)
            raise click.UsageError(f"minimising offers nothing smaller than {node.id}; {advice} says why")
        advice = typed(task, "minimise", node.id)
        raise click.UsageError(f"nothing smaller than {node.id} is on record; {advice} looks for it")
    if minimal and smaller:
        return smaller
    if smaller:
        told = f"{smaller.id} keeps the score of {node.id} with a smaller change; --minimal takes that one"
        click.echo(f"note: {told}", err=True)
    return node


def node_and_task(words: tuple[str, ...]) -> tuple[str | None, Path]:
    """One word alone is a node if it looks like one; a folder of that name is written ./1."""
    if len(words) > 2:
        context = click.get_current_context()
        raise click.UsageError(f"too many words: {' '.join(words)}; write {context.info_name} [NODE] [TASK]")
    if len(words) == 1 and words[0] != "best" and not _is_node(words[0]):
        if not Path(words[0]).is_dir():
            raise click.UsageError(f"{printable(words[0])} is neither a node, like 1.3.2 or best, nor a folder")
        return None, Path(words[0])
    return (words[0] if words else None), Path(*words[1:])


def _is_node(text: str) -> bool:
    try:
        parse_node(text)
    except ValueError:
        return False
    return True


def present_node(reading: Reading, text: str) -> Node:
    """A node of the present run: those of another were judged by other criteria, and are over."""
    node = chosen_node(reading.state, text)
    now = reading.state.campaign.run
    if run_of(node.id) != now:
        raise click.UsageError(f"{node.id} belongs to run {run_of(node.id)}, which is over; run {now} is worked on")
    return node


def stored_of(reading: Reading, run: Run) -> StoredTask:
    """The task of a run as it was when the run began; an earlier run may have had other metrics."""
    if run.number == reading.state.campaign.run:
        return reading.stored
    return StoredTask(reading.artifacts.get(run.task).decode("utf-8", "replace"))


def task_of(reading: Reading, run: Run) -> "Task":
    return stored_of(reading, run).whole


def ranking_of(reading: Reading, run: Run | None = None) -> Ranking:
    return stored_of(reading, run or reading.state.run).criteria.order


def metrics_of(reading: Reading, run: Run | None = None) -> Sequence[Metric]:
    return ranking_of(reading, run).metrics


def metrics_for(reading: Reading, node: Node) -> Sequence[Metric]:
    return metrics_of(reading, reading.state.runs[str(run_of(node.id))])


def holder_of(reading: Reading) -> str | None:
    """Who works on it, as text for a person."""
    return printable(str(reading.holder)) if reading.holder else None


def material_of(reading: Reading, run: Run | None = None, *, diff: str = "", reason: str = "") -> Material:
    """All that sections are made from; the present run when left out."""
    chosen = run or reading.state.run
    stored = stored_of(reading, chosen)
    return Material(
        state=reading.state,
        accounts=reading.accounts,
        run=chosen,
        ranking=stored.criteria.order,
        stored=stored,
        folder=reading.named,
        holder=holder_of(reading),
        asked=[request.kind for request in reading.requests()],
        diff=diff,
        reason=reason,
        audit=_audit_of(reading),
    )


def _audit_of(reading: Reading) -> "AuditRecord | None":
    """None also where nothing says which task it is."""
    try:
        folder = task_folder_of(reading.named)
    except TaskError:
        return None
    if not (folder / AUDIT).exists():
        return None
    # Loaded here: most campaigns have none, and need not wait for its model.
    from orchestrator.task.audits import kept_audit

    return kept_audit(folder)


def json_text(record: Any, indent: int | None = 2) -> str:
    """ASCII, so that nothing in it can act on a terminal."""
    return json.dumps(record, indent=indent, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f")


def print_json(record: Any) -> None:
    click.echo(json_text(record))
