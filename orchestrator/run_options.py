"""The options of a run, each declared once.

From a field here come its flag, its setting (in the file and in the environment), its keyword of `search`, its rows in
docs/commands.md and docs/settings.md, and its part of the line that says where a value came from.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from orchestrator import choices, registry
from orchestrator.units import format_duration, format_size, parse_duration, parse_money, parse_rate, parse_size


class Scope(Enum):
    """Which commands take an option, and for how long it holds."""

    RUN = "`run` alone: it holds for the whole run"
    CAP = "`run` and `resume`: another session can have another value"
    SITE = "every command that runs a candidate; it stays with the run, whatever said it"


@dataclass(frozen=True)
class Text:
    """What a value is. `metavar` stands for it in the help."""

    metavar: str | None = None

    def parse(self, text: str) -> object:
        """The value of what people write."""
        return text

    def check(self, value: Any) -> None:
        """Raises ValueError for a value that a setting may not have; that of a flag is checked where it is typed."""

    def shown(self, value: Any) -> str:
        """As people write it."""
        return str(value)


@dataclass(frozen=True)
class Number(Text):
    """A whole one."""

    least: int | None = None
    most: int | None = None

    def check(self, value: Any) -> None:
        if self.least is not None and not value >= self.least:
            raise PydanticKnownError("greater_than_equal", {"ge": self.least})
        if self.most is not None and not value <= self.most:
            raise PydanticKnownError("less_than_equal", {"le": self.most})


@dataclass(frozen=True)
class Quantity(Text):
    """A number with a unit. `read` and `write` are how people write it; a setting of nothing may be refused."""

    noun: str = field(kw_only=True)
    read: Callable[[object], object] = field(kw_only=True)
    write: Callable[[float], str] = field(kw_only=True)
    more_than_nothing: bool = False

    def parse(self, text: str) -> object:
        return self.read(text)

    def check(self, value: Any) -> None:
        if self.more_than_nothing and not value > 0:
            raise PydanticKnownError("greater_than", {"gt": 0})
        if not value >= 0:
            raise PydanticKnownError("greater_than_equal", {"ge": 0})

    def shown(self, value: Any) -> str:
        return self.write(value)


@dataclass(frozen=True)
class Switch(Text):
    """On or off."""

    def shown(self, value: Any) -> str:
        return "on" if value else "off"


@dataclass(frozen=True)
class Choice(Text):
    """One of a closed list."""

    names: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True)
class Share(Text):
    """A share above 0 and up to 1, or one of some words."""

    words: tuple[str, ...] = field(kw_only=True)

    def parse(self, text: str) -> object:
        if text in self.words:
            return text
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not 0 < found <= 1:
            raise ValueError(f'"{text}" is no share; write {registry.listed(self.words)}, or a number like 0.95')
        return found


@dataclass(frozen=True)
class Named(Text):
    """One of a kind, built in or brought by a package. `others`: the task may say what an unknown name means."""

    kind: registry.Kind = field(kw_only=True)
    others: bool = False

    def check(self, value: Any) -> None:
        self.kind.find(value)


@dataclass(frozen=True)
class Names(Text):
    """Several, with commas between them."""

    def parse(self, text: str) -> object:
        if names := tuple(name.strip() for name in text.split(",") if name.strip()):
            return names
        raise ValueError(f'"{text}" names nothing; write names with commas between them')

    def shown(self, value: Any) -> str:
        return ", ".join(value)


def _per(rate: float) -> str:
    return f"{rate:g}/s" if rate >= 1 else f"{rate * 60:g}/min"


_ONE_OR_MORE = Number(least=1)
_COUNT = Number(least=0)
_MONEY = Quantity(noun="money", read=parse_money, write=lambda usd: f"${usd:g}")
_DURATION = Quantity(noun="duration", read=parse_duration, write=format_duration, more_than_nothing=True)
_SIZE = Quantity(noun="size", read=parse_size, write=format_size)
_RATE = Quantity(noun="rate", read=parse_rate, write=_per)
_CONTROLS = Choice(names=tuple(choices.PROPOSERS.with_trait("is_control")))


@dataclass(frozen=True)
class Option:
    """`help` is what people read of it, everywhere. `default` holds where nobody says anything; without one, `unset`
    tells what happens then.
    """

    help: str
    kind: Text
    scope: Scope
    default: Any = None
    unset: str = ""


class UserOptions(BaseModel):
    """Those that are settings, too: a user sets them once for all campaigns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proposer: Annotated[
        str | None, Option("Where changes come from.", Named(kind=choices.PROPOSERS), Scope.RUN, default="random")
    ] = None
    attempts: Annotated[int | None, Option("Maximum number of attempts.", _ONE_OR_MORE, Scope.CAP, default=20)] = None
    usd: Annotated[float | None, Option('Maximum spend in dollars, like "$5".', _MONEY, Scope.CAP)] = None
    wall: Annotated[float | None, Option('Maximum wall-clock time, like "8h".', _DURATION, Scope.CAP)] = None
    artifacts: Annotated[
        int | None,
        Option(
            'Maximum size of all kept outputs, like "2GiB"; the oldest discarded ones go first.',
            _SIZE,
            Scope.CAP,
            default=2 << 30,
        ),
    ] = None
    width: Annotated[
        int | None, Option("Number of attempts to run at a time.", _ONE_OR_MORE, Scope.CAP, unset="chosen")
    ] = None
    backend: Annotated[
        str | None,
        Option(
            "Where candidates run; the judge stays on this machine.",
            Named(kind=choices.BACKENDS),
            Scope.SITE,
            choices.OWN_ENGINE,
        ),
    ] = None
    gpu: Annotated[
        str | None,
        Option(
            'GPU for a candidate, kind and count, like A10 or A100-80GB:2; "none" for no GPU.', Text("KIND"), Scope.SITE
        ),
    ] = None
    infra: Annotated[
        str | None,
        Option("With skypilot: where to rent, like aws, gcp/us-central1 or slurm/cluster.", Text("WHERE"), Scope.SITE),
    ] = None
    runtime: Annotated[str | None, Option("Container runtime: runc or runsc (gVisor).", Text(), Scope.SITE)] = None
    standing: Annotated[
        int | None,
        Option(
            "Number of rented sandboxes or clusters to keep warm between trials; they cost money.",
            Number(least=0, most=64),
            Scope.SITE,
        ),
    ] = None

    @field_validator("*", mode="before")
    @classmethod
    def _parse(cls, value: object, info: ValidationInfo) -> object:
        option = OPTIONS.get(info.field_name or "")
        return option.kind.parse(value) if option and isinstance(value, str) else value


class Flags(UserOptions):
    """What a person said for this one command; None where nothing was said.

    Quantities are numbers (dollars, seconds, bytes, times a second), or text as on the command line: `wall="8h"`.
    """

    control: Annotated[
        str | None, Option("Control to run beside the proposer, on the same budget.", _CONTROLS, Scope.RUN)
    ] = None
    agent: Annotated[
        str | None,
        Option("With --proposer agent: name of the agent.", Named(kind=choices.AGENTS, others=True), Scope.RUN),
    ] = None
    seed: Annotated[
        int | None,
        Option(
            "Seed of the search; at width 1 and with hints off, the same seed gives the same campaign.",
            Number(),
            Scope.RUN,
            default=0,
        ),
    ] = None
    depth: Annotated[int | None, Option("Number of steps in a branch.", _ONE_OR_MORE, Scope.RUN)] = None
    selection: Annotated[
        str | None,
        Option(
            "Where branches start: at the champion, or at a node that this rule chooses.",
            Named(kind=choices.PARENTS),
            Scope.RUN,
            default="champion",
        ),
    ] = None
    arms: Annotated[
        tuple[str, ...] | None,
        Option(
            "With --proposer hybrid: the proposers to search with, like tpe,operators,llm.", Names("LIST"), Scope.RUN
        ),
    ] = None
    novelty: Annotated[
        float | str | None,
        Option(
            "Share from which on a change is too much like another to be run.",
            Share("SHARE", words=("off", "learn")),
            Scope.RUN,
            default="off",
        ),
    ] = None
    walk: Annotated[
        int | None,
        Option(
            "Number of attempts that keep nothing after which a branch walks on over neutral changes.",
            _ONE_OR_MORE,
            Scope.RUN,
            unset="never",
        ),
    ] = None
    meta: Annotated[
        str | None,
        Option(
            "How the search learns which of its own choices pay.",
            Choice(names=("off", "lift", "gradient")),
            Scope.RUN,
            default="off",
        ),
    ] = None
    credit: Annotated[
        str | None,
        Option(
            "Who earns by a gain: the attempt alone, or its ancestors, too.",
            Choice(names=("lift", "lineage")),
            Scope.RUN,
            default="lift",
        ),
    ] = None
    price: Annotated[
        str | None,
        Option(
            "What a gain is set against: attempts, dollars or seconds in chambers.",
            Choice(names=("none", "usd", "seconds")),
            Scope.RUN,
            default="none",
        ),
    ] = None
    hints: Annotated[
        str | None,
        Option(
            "With operators: what one more run of the baseline tells of its code, to look there first.",
            Choice(names=("auto", "hot", "reached", "off")),
            Scope.RUN,
            default="auto",
        ),
    ] = None
    islands: Annotated[
        int | None,
        Option("Number of populations that search apart.", Number(least=1, most=1000), Scope.RUN, default=1),
    ] = None
    migrate: Annotated[
        int | None,
        Option("With islands: attempts until each gets its neighbour's best.", _ONE_OR_MORE, Scope.RUN, default=25),
    ] = None
    combine: Annotated[
        bool | None,
        Option(
            "When it is over, combine the best candidates in a stage of its own, with budget.combination attempts.",
            Switch(),
            Scope.RUN,
        ),
    ] = None
    tunes: Annotated[int | None, Option("Maximum number of tune trials.", _COUNT, Scope.CAP)] = None
    minimise: Annotated[
        bool | None,
        Option("Take the best apart at the end, and leave out what does nothing for its score.", Switch(), Scope.CAP),
    ] = None
    minimisation: Annotated[
        int | None, Option("Maximum number of trials that minimising may take.", _COUNT, Scope.CAP, default=100)
    ] = None
    tokens: Annotated[int | None, Option("Maximum number of tokens.", _COUNT, Scope.CAP)] = None
    seconds: Annotated[float | None, Option('Maximum total time in chambers, like "2h".', _DURATION, Scope.CAP)] = None
    stall_losses: Annotated[float | None, Option("Maximum dollars lost to stalls.", _MONEY, Scope.CAP)] = None
    patience: Annotated[
        int | None, Option("Stop after this many attempts without improvement.", _ONE_OR_MORE, Scope.CAP)
    ] = None
    rate: Annotated[
        float | None, Option('Maximum rate of new attempts, like "30/min".', _RATE, Scope.CAP, default=20.0)
    ] = None
    review: Annotated[bool | None, Option("Stop after each round so that you can review it.", Switch(), Scope.CAP)] = (
        None
    )
    ask: Annotated[bool | None, Option("Ask a person before a candidate becomes the best.", Switch(), Scope.CAP)] = None

    def of_a_stage(self) -> Self:
        """What holds for the combination stage as well."""
        return type(self)(**{name: getattr(self, name) for name in OF_A_STAGE})

    def but(self, **said: Any) -> Self:
        """The same with other values."""
        return type(self)(**{**dict(self), **said})


def _declared() -> Iterator[tuple[str, Option]]:
    found = {
        name: next(it for it in declared.metadata if isinstance(it, Option))
        for name, declared in Flags.model_fields.items()
    }
    for scope in Scope:
        yield from ((name, option) for name, option in found.items() if option.scope is scope)


# By name, those of a whole run first, then its caps, then where it runs: the order of flags and of what is said.
OPTIONS = MappingProxyType(dict(_declared()))


def options_of(scope: Scope) -> tuple[str, ...]:
    return tuple(name for name, option in OPTIONS.items() if option.scope is scope)


# What is said for a search holds for the combinations of what it found, too: all but its attempts, its patience and its
# way to search, which a combination stage has of its own, and whether somebody looks on between rounds.
_OWN_OF_A_STAGE = ("attempts", "patience", "review")
OF_A_STAGE = (
    "seed",
    *(name for name in options_of(Scope.CAP) if name not in _OWN_OF_A_STAGE),
    *options_of(Scope.SITE),
)
