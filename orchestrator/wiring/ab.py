"""A comparison of two ways to search, on disk: what was asked, before anything runs, and what ended since.

Each campaign has a folder of its own below the comparison's, with its ledger. What is on record here is only what no
ledger can know: what was asked for, whose turn it is in each pair, and which campaigns are over.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.budget import Account
from orchestrator.domain.ab import Outcome, Pair, Scale, outcome_of
from orchestrator.domain.metric import Ranking
from orchestrator.domain.state import State
from orchestrator.ledger import LedgerError, Missing
from orchestrator.settings import Settings
from orchestrator.wiring.ledgers import has_ledger, write_durably
from orchestrator.wiring.reading import AB_FILE as FILE
from orchestrator.wiring.reading import read_campaign

SIDES = ("a", "b")


class Ended(BaseModel):
    """How a campaign ended: `why` in its own words; `failed` where it came to no baseline. The rest is how far it was
    then: one who goes on with it by hand changes nothing of the comparison. Older ones do not say that.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: str
    failed: bool = False
    gave_up: bool = False
    run: int = 0
    attempts: int | None = None
    usd: int = 0
    cohort: str = ""


class Asked(BaseModel):
    """`options` are what was said for both sides, `sides` for one of them, `values` what each side runs with in all:
    settings and the task say the rest, and must not change on the way. `first` has the side that begins, pair by pair.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    task: str
    options: dict[str, Any]
    sides: dict[str, dict[str, Any]]
    seeds: tuple[int, ...]
    target: float | None
    scale: Scale
    values: dict[str, dict[str, Any]]
    digests: dict[str, str]
    first: tuple[str, ...]
    ended: dict[str, Ended] = {}

    @property
    def said(self) -> dict[str, Any]:
        """What a person asked for, as it is read back; a resume that asks for anything must ask for the same."""
        said = {"seeds": self.seeds, "target": self.target, "both": self.options, **self.sides}
        found: dict[str, Any] = json.loads(json.dumps(said))
        return found

    @property
    def attempts(self) -> int | None:
        """The cap of each campaign."""
        found: int | None = self.values["a"]["attempts"]
        return found

    def with_ended(self, name: str, ended: Ended) -> "Asked":
        return self.model_copy(update={"ended": {**self.ended, name: ended}})

    def turns(self) -> Iterator["Turn"]:
        """All campaigns, in the order in which they run."""
        for number, (seed, first) in enumerate(zip(self.seeds, self.first, strict=True), 1):
            for side in (first, *(it for it in SIDES if it != first)):
                yield Turn(number, seed, side)


@dataclass(frozen=True)
class Turn:
    """One campaign: of which pair, with which seed, of which side."""

    pair: int
    seed: int
    side: str

    @property
    def name(self) -> str:
        return f"{self.pair:02d}{self.side}"


@dataclass(frozen=True)
class Comparing:
    """A comparison as far as it has come. `open` is how many pairs have a campaign that is not over."""

    asked: Asked
    pairs: Sequence[Pair]
    open: int


def read_asked(folder: Path) -> Asked | None:
    """None where nothing was asked yet. Raises LedgerError."""
    path = folder / FILE
    try:
        return Asked.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError):
        raise LedgerError(f"{path} is not what blastdoor ab wrote; put it back, or begin in another --folder") from None
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error


def write_asked(folder: Path, asked: Asked) -> None:
    """Raises LedgerError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(f"{folder}: {error.strerror}; check rights and free space") from error
    write_durably(folder / FILE, json.dumps(asked.model_dump(mode="json"), indent=1) + "\n")


def ended_in(folder: Path, why: str, settings: Settings, *, gave_up: bool) -> Ended:
    """How a campaign ended that has come to a score. Raises LedgerError."""
    with read_campaign(folder, settings) as reading:
        state, usd = reading.state, reading.accounts.used(Account.USD)
        found = outcome_of(state, reading.stored.criteria.order, usd)
    run, how_far = state.run.number, {"attempts": found.attempts, "usd": usd, "cohort": found.cohort}
    return Ended(why=why, gave_up=gave_up, run=run, **how_far)


def is_begun(folder: Path, settings: Settings) -> bool:
    """Whether a campaign has begun there; one that died before its first record has not."""
    if not has_ledger(folder):
        return False
    try:
        with read_campaign(folder, settings):
            return True
    except Missing:
        return False


def read_comparing(
    folder: Path, settings: Settings | None = None, outcome: Callable[[Path, Ended], Outcome] | None = None
) -> Comparing:
    """`outcome` reads a campaign that ended by its folder, if not as everybody does. Raises LedgerError where there is
    no comparison, or a campaign of it cannot be read.
    """
    asked = read_asked(folder)
    if asked is None:
        raise Missing(f"there is no comparison in {folder}; blastdoor ab begins one")
    read = outcome or partial(outcome_in, settings=settings)
    pairs = []
    for number, seed in enumerate(asked.seeds, 1):
        names = [Turn(number, seed, side).name for side in SIDES]
        if all(name in asked.ended for name in names):
            a, b = (_with_end(read(folder / name, asked.ended[name]), asked.ended[name]) for name in names)
            pairs.append(Pair(seed, a, b))
    return Comparing(asked, pairs, len(asked.seeds) - len(pairs))


def outcome_in(folder: Path, ended: Ended | None = None, settings: Settings | None = None) -> Outcome:
    """Of a campaign as it is, or as it was when it ended."""
    with read_campaign(folder, settings) as reading:
        return outcome_at(reading.state, reading.stored.criteria.order, reading.accounts.used(Account.USD), ended)


def outcome_at(state: State, ranking: Ranking, usd: int, ended: Ended | None) -> Outcome:
    run = state.runs.get(str(ended.run)) if ended else None
    if ended is None or run is None:
        return outcome_of(state, ranking, usd)
    run = run.model_copy(update={"cohort": ended.cohort or None})
    return outcome_of(state, ranking, ended.usd, run, ended.attempts)


def _with_end(outcome: Outcome, ended: Ended) -> Outcome:
    if ended.failed or outcome.final is None:
        return replace(outcome, failed=ended.why, steps=())
    return replace(outcome, note=f"gave up: {ended.why}") if ended.gave_up else outcome
