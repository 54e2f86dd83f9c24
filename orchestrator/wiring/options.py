"""What a campaign runs with, and where each value comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.choices import PROPOSERS
from orchestrator.registry import UnknownName
from orchestrator.run_options import OPTIONS, Flags, Scope, options_of
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError
from orchestrator.wiring.choice import OF_A_SITE, SiteChoice, cascade, choice_of, kept_at, settle

ARMED = "hybrid"  # the proposer that has arms
_PLACES = ("flag", "campaign", "task", "user", "default")
_IN_SHAPE = ("width", "depth")  # what is said of them has a line of its own, with the reason
DEFAULTS = {name: option.default for name, option in OPTIONS.items()}
# Options of the whole run that mean something where nobody sets them: a run that was begun without one stays so.
_UNSET = tuple(name for name in options_of(Scope.RUN) if OPTIONS[name].unset)


@dataclass(frozen=True)
class Options:
    """The value of each option, and the name of the place that it was inherited from."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def shown(self, name: str) -> str:
        """The value as people write it; nothing where none is set."""
        value = self.values[name]
        return "" if value is None else OPTIONS[name].kind.shown(value)

    def inherited(self) -> list[str]:
        """One line for each place that a value was inherited from, what was said closest first."""
        lines: dict[str, list[str]] = {place: [] for place in _PLACES}
        for name, source in self.sources.items():
            if self.shown(name) and name not in _IN_SHAPE:
                lines[source].append(f"{name} {self.shown(name)}")
        return [f"{place}: {', '.join(said)}" for place, said in lines.items() if said]

    @property
    def arms(self) -> tuple[str, ...]:
        """What was named for a search with several proposers."""
        return tuple(self.values["arms"] or ())

    @property
    def proposers(self) -> tuple[str, ...]:
        """All that the search may ask."""
        return (self.values["proposer"], *self.arms)

    @property
    def site(self) -> SiteChoice:
        return choice_of(self.values)

    def given(self) -> dict[str, Any]:
        """What flags and the campaign said, what holds for the whole run, and where it runs: kept with the run, so that
        a resume goes on with it, whatever a task, a setting or a default says by then.
        """
        said = {name: self.values[name] for name, source in self.sources.items() if source in ("flag", "campaign")}
        place = {name: self.values[name] for name in OF_A_SITE if self.sources[name] != "task"}
        whole = {name: self.values[name] for name in options_of(Scope.RUN)} | {"arms": list(self.arms)}
        kept = {name: value for name, value in (place | whole).items() if value is not None}
        return said | kept | {name: None for name in _UNSET if self.values[name] is None}


def resolve(
    flags: Flags, task: Task, settings: Settings, kept: Mapping[str, Any] | None = None, *, runs: bool = True
) -> Options:
    """A flag wins over what the campaign was started with, that over the task, the user's settings, the default.

    Raises TaskError for a flag that would mean nothing. Where nothing `runs`, the backend need not be there.
    """
    gpu = {"gpu": str(task.limits.gpu)} if task.limits.gpu else {}
    places: list[tuple[str, Mapping[str, Any]]] = [
        ("flag", dict(flags)),
        ("campaign", kept_at(kept or {}, flags.backend)),
        ("task", {**task.budget.model_dump(), **task.search.model_dump(), **gpu}),
        ("user", settings.model_dump(exclude_unset=True)),
        ("default", DEFAULTS),
    ]
    values, sources = cascade(OPTIONS, places)
    for name in _UNSET:
        if sources[name] != "flag" and kept and name in kept and kept[name] is None:
            values[name], sources[name] = None, "campaign"
    if runs:
        settle(values, sources)
    options = Options(values, sources)
    if runs:
        _check_arms(options)
    if flags.agent is not None and "agent" not in options.proposers:
        raise TaskError(f"--agent means nothing to the proposer {values['proposer']}; use it with --proposer agent")
    return options


def _check_arms(options: Options) -> None:
    """Before an engine is looked for. Raises TaskError for one that nothing has."""
    for name in options.arms:
        try:
            PROPOSERS.find(name)
        except UnknownName as error:
            raise TaskError(f"search.arms: {error}") from None


def resolve_site(flags: Flags, settings: Settings, *, anywhere: bool = False) -> SiteChoice:
    """The same for a command that has no task. Raises TaskError like `resolve`."""
    places = [("flag", dict(flags)), ("user", settings.model_dump(exclude_unset=True)), ("default", DEFAULTS)]
    values, sources = cascade(OF_A_SITE, places)
    settle(values, sources, anywhere=anywhere)
    return choice_of(values)
