"""Which site a person chose for the candidates: the backend, and what only some backends have to be told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.choices import BACKENDS, OWN_ENGINE
from orchestrator.registry import ChoiceError, UnknownName, told
from orchestrator.run_options import Scope, options_of
from orchestrator.task import TaskError
from sandbox import Gpu

# Kept with a run whatever said them, so that a resume goes on where it was begun.
OF_A_SITE = options_of(Scope.SITE)
NO_GPU = "none"


@dataclass(frozen=True)
class SiteChoice:
    """`infra` is SkyPilot's word for where, `standing` how much of what is rented stays between trials, paid for.

    `without_gpu`: somebody said so, also against the task.
    """

    backend: str = OWN_ENGINE
    gpu: Gpu | None = None
    infra: str | None = None
    runtime: str | None = None
    standing: int = 0
    without_gpu: bool = False


Places = Sequence[tuple[str, Mapping[str, Any]]]


def cascade(names: Iterable[str], places: Places) -> tuple[dict[str, Any], dict[str, str]]:
    """The first value that is said for each name, and the name of the place that said it."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in names:
        found = next(((place, it[name]) for place, it in places if it.get(name) is not None), ("default", None))
        sources[name], values[name] = found
    return values, sources


def kept_at(kept: Mapping[str, Any], backend: str | None) -> dict[str, Any]:
    """Of what a run was begun with, what still holds at this backend: not what another one was told."""
    if backend is None or kept.get("backend") in (None, backend):
        return dict(kept)
    return {name: value for name, value in kept.items() if name == "backend" or name not in OF_A_SITE}


def settle(values: dict[str, Any], sources: Mapping[str, str], *, anywhere: bool = False) -> None:
    """Take out what the backend has no use for. Raises TaskError for a flag that would mean nothing, or one that is
    missing; `anywhere` where no place has to be named.
    """
    backend = values["backend"]
    try:
        entry, provider = BACKENDS.find(backend), BACKENDS.load(backend)
    except UnknownName:
        raise TaskError(f"backend {backend} is not known; use one of {', '.join(BACKENDS.names())}") from None
    except ChoiceError as error:
        raise TaskError(str(error)) from None
    try:
        _settle_with(provider, values, sources, anywhere=anywhere)
    except TaskError:
        raise
    except Exception as error:
        if not entry.is_outside:
            raise
        raise TaskError(f'the backend "{backend}"{entry} failed: {told(error)}') from error


def _settle_with(provider: Any, values: dict[str, Any], sources: Mapping[str, str], *, anywhere: bool) -> None:
    # A factory of another package may be a function, and then takes whatever is said.
    for name, line in getattr(provider, "meaningless", {}).items():
        if values[name] is not None:
            if sources[name] == "flag":
                raise TaskError(line)
            values[name] = None
    choice = choice_of(values)
    if admit := getattr(provider, "admit", None):
        admit(choice, anywhere=anywhere)


def choice_of(values: Mapping[str, Any]) -> SiteChoice:
    """Raises TaskError for a GPU that is none."""
    without = values["gpu"] == NO_GPU
    try:
        gpu = Gpu.parse(values["gpu"]) if values["gpu"] and not without else None
    except ValueError:
        raise TaskError(f"gpu {values['gpu']!r} is not kind and count; write it like A100:8") from None
    return SiteChoice(values["backend"], gpu, values["infra"], values["runtime"], values["standing"] or 0, without)
