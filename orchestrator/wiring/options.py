"""What a campaign runs with, and where each value comes from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, format_duration

_DEFAULTS: dict[str, Any] = {"proposer": "random", "attempts": 20, "seed": 0, "rate": 20.0}


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
    patience: int | None = None
    rate: float | None = None
    width: int | None = None
    depth: int | None = None
    seed: int | None = None
    selection: str | None = None
    review: bool | None = None
    ask: bool | None = None
    agent: str | None = None


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
        if name == "rate":
            return f"{value:g}/s" if value >= 1 else f"{value * 60:g}/min"
        return format_duration(value) if name in ("wall", "seconds") else str(value)

    def given(self) -> dict[str, Any]:
        """What flags and the campaign said: it is kept with the run, so that a resume goes on with it."""
        return {name: self.values[name] for name, source in self.sources.items() if source in ("flag", "campaign")}


def resolve(flags: Flags, task: Task, settings: Settings, kept: Mapping[str, Any] | None = None) -> Options:
    """A flag wins over what the campaign was started with, that over the task, the user's settings, the default.

    Raises TaskError for a flag that would mean nothing.
    """
    places: list[tuple[str, Mapping[str, Any]]] = [
        ("flag", asdict(flags)),
        ("campaign", kept or {}),
        ("task", {**task.budget.model_dump(), **task.search.model_dump()}),
        ("user", settings.model_dump()),
        ("default", _DEFAULTS),
    ]
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in asdict(flags):
        found = next(((place, it[name]) for place, it in places if it.get(name) is not None), ("default", None))
        sources[name], values[name] = found
    if flags.agent is not None and values["proposer"] != "agent":
        raise TaskError(f"--agent means nothing to the proposer {values['proposer']}; use it with --proposer agent")
    return Options(values, sources)
