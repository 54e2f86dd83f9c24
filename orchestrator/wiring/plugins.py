"""What a run works with that is not built in: kept with it, so that a resume can say which package is missing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.choices import AGENTS, BACKENDS, IMPORTERS, PARENTS, PROPOSERS, PRUNERS
from orchestrator.domain.records import Brought, Run
from orchestrator.proposers import PluginFailed, Proposer
from orchestrator.registry import ChoiceError, Kind, UnknownName, told
from orchestrator.task import Task, TaskError
from orchestrator.wiring.options import Options

_KINDS = (PROPOSERS, AGENTS, PARENTS, PRUNERS, BACKENDS)


def make_by_name(kind: Kind, name: str, context: object, outside: Callable[[Any, str], Any]) -> Any:
    """What the factory of that name makes; where others wrote it, in a shell that says whose fault things are.

    Raises TaskError for a name that nothing has, and for what cannot be made.
    """
    try:
        entry, made = kind.find(name), kind.load(name)
    except UnknownName as error:
        raise TaskError(f"{kind.noun}: {error}") from None
    except ChoiceError as error:
        raise TaskError(str(error)) from None
    if not entry.is_outside:
        return made(context)
    who = f'the {kind.noun} "{name}"{entry}'
    try:
        return outside(made if entry.lent is not None else made(context), who)
    except (TaskError, PluginFailed) as error:
        raise TaskError(str(error)) from error
    except Exception as error:  # whatever somebody else's code does: nothing has begun yet
        raise TaskError(f"{who} cannot be made ({told(error)}); mend or remove it") from error


def brought_by_others(options: Options, task: Task) -> tuple[Brought, ...]:
    """For a run that begins now."""
    found = [(kind, name, kind.find(name)) for kind, name in _chosen(options, task)]
    return tuple(
        Brought(kind=kind.noun, name=name, package=entry.package, version=entry.version)
        for kind, name, entry in found
        if entry.is_outside
    )


def _chosen(options: Options, task: Task) -> Iterator[tuple[Kind, str]]:
    for name in options.proposers:
        yield PROPOSERS, name
    agent = options["agent"] or task.agent.name
    if "agent" in options.proposers and (task.agent.command is None or agent != task.agent.name):
        yield AGENTS, agent
    yield PARENTS, options["selection"]
    if task.pruning:
        yield PRUNERS, task.pruning.rule
    yield BACKENDS, options["backend"]


def refuse_missing(run: Run, *, backend: str | None = None, searches: bool = True) -> None:
    """Raises TaskError where what the run was begun with is not here, and says who would bring it.

    With another `backend` that of the run is not needed; where nobody `searches`, nothing but the backend is.
    """
    for it in run.brought:
        if backend not in (None, it.name) if it.kind == BACKENDS.noun else not searches:
            continue
        what = f'run {run.number} was begun with the {it.kind} "{it.name}"'
        kind = next(kind for kind in _KINDS if kind.noun == it.kind)
        try:
            now = kind.find(it.name)
        except ChoiceError as error:
            if it.package:
                text = f"of the package {it.package} {it.version}, which cannot be used here ({_short(error)})"
                raise TaskError(f"{what} {text}; install it, then resume") from None
            now = None
        if not it.package and (now is None or now.lent is None):
            how = "go on from Python with search(…, how=How.RESUME, proposer=…)"
            raise TaskError(f"{what}, an instance that a program handed over; {how}")


def _short(error: ChoiceError) -> str:
    return "it is not installed" if isinstance(error, UnknownName) else str(error)


def changed_since(run: Run) -> list[str]:
    """Notes for a person: a package is there in another version, or what brings a name is another package."""
    notes = []
    for it in run.brought:
        kind = next(kind for kind in _KINDS if kind.noun == it.kind)
        if it.name not in kind.names():
            continue  # the run goes on elsewhere, or with what was handed over again
        now = kind.find(it.name)
        if it.package and (now.package, now.version) != (it.package, it.version):
            was, present = f"{it.package} {it.version}", f"{now.package} {now.version}".strip() or "this program itself"
            notes.append(
                f'the {it.kind} "{it.name}" was that of {was} when the run began, and is that of {present} now'
            )
    return notes


def faults() -> list[str]:
    """What installed packages announce and nobody can use."""
    return [line for kind in (*_KINDS, IMPORTERS) for line in kind.faults()]


def name_of(proposer: Proposer) -> str:
    """Of an instance: its own `name`, else that of its class."""
    own = getattr(proposer, "name", None)
    return own if isinstance(own, str) and own else type(proposer).__name__


@contextmanager
def lent(proposer: Proposer | None) -> Iterator[None]:
    """An instance is known by its name meanwhile. Raises TaskError for a name that another one has."""
    if proposer is None:
        yield
        return
    try:
        with PROPOSERS.lend(name_of(proposer), proposer):
            yield
    except ChoiceError as error:
        raise TaskError(str(error)) from None
