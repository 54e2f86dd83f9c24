"""What a campaign runs with, and where each value comes from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, format_duration, format_size
from orchestrator.wiring.choice import OF_A_SITE, SiteChoice, cascade, choice_of, kept_at, settle

_DEFAULTS: dict[str, Any] = {"proposer": "random", "attempts": 20, "seed": 0, "rate": 20.0, "backend": "docker"}
_DEFAULTS |= {"artifacts": 2 << 30}


@dataclass(frozen=True)
class Flags:
    """What a person said for this one command; None where nothing was said."""

    proposer: str | None = None
    control: str | None = None
    attempts: int | None = None
    tunes: int | None = None
    usd: float | None = None
    tokens: int | None = None
    seconds: float | None = None
    wall: float | None = None
    stall_losses: float | None = None
    artifacts: int | None = None
    patience: int | None = None
    rate: float | None = None
    width: int | None = None
    depth: int | None = None
    seed: int | None = None
    selection: str | None = None
    review: bool | None = None
    ask: bool | None = None
    agent: str | None = None
    backend: str | None = None
    gpu: str | None = None
    infra: str | None = None
    runtime: str | None = None
    standing: int | None = None


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
        if value is None:
            return ""
        if isinstance(value, bool):
            return "on" if value else "off"
        if name in ("usd", "stall_losses"):
            return f"${value:g}"
        if name == "artifacts":
            return format_size(value)
        if name == "rate":
            return f"{value:g}/s" if value >= 1 else f"{value * 60:g}/min"
        return format_duration(value) if name in ("wall", "seconds") else str(value)

    @property
    def site(self) -> SiteChoice:
        return choice_of(self.values)

    def given(self) -> dict[str, Any]:
        """What flags and the campaign said, and where it runs: kept with the run, so that a resume goes on with it."""
        said = {name: self.values[name] for name, source in self.sources.items() if source in ("flag", "campaign")}
        place = {name: self.values[name] for name in OF_A_SITE if self.sources[name] != "task"}
        return said | {name: value for name, value in place.items() if value is not None}


def resolve(flags: Flags, task: Task, settings: Settings, kept: Mapping[str, Any] | None = None) -> Options:
    """A flag wins over what the campaign was started with, that over the task, the user's settings, the default.

    Raises TaskError for a flag that would mean nothing.
    """
    gpu = {"gpu": str(task.limits.gpu)} if task.limits.gpu else {}
    places: list[tuple[str, Mapping[str, Any]]] = [
        ("flag", asdict(flags)),
        ("campaign", kept_at(kept or {}, flags.backend)),
        ("task", {**task.budget.model_dump(), **task.search.model_dump(), **gpu}),
        ("user", settings.model_dump(exclude_unset=True)),
        ("default", _DEFAULTS),
    ]
    values, sources = cascade(asdict(flags), places)
    settle(values, sources)
    if flags.agent is not None and values["proposer"] != "agent":
        raise TaskError(f"--agent means nothing to the proposer {values['proposer']}; use it with --proposer agent")
    return Options(values, sources)


def resolve_site(flags: Flags, settings: Settings, *, anywhere: bool = False) -> SiteChoice:
    """The same for a command that has no task. Raises TaskError like `resolve`."""
    places = [("flag", asdict(flags)), ("user", settings.model_dump(exclude_unset=True)), ("default", _DEFAULTS)]
    values, sources = cascade(OF_A_SITE, places)
    settle(values, sources, anywhere=anywhere)
    return choice_of(values)
