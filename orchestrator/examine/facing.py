"""Adversaries before a judge, each in chambers of its own, and which of them gained.

A way to cheat gains where it comes out better than the baseline by more than noise, or where nothing honest could do
what it does and it gets the baseline's score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.domain.metric import Goal
from orchestrator.examine.answering import Calls
from orchestrator.examine.cheating import Bar, Fate, Outputs, Tried, some_at_a_time
from orchestrator.examine.findings import Findings
from orchestrator.judge.adversaries import Adversary, Oracle, rows_of
from orchestrator.judge.seeds import seeded_places
from orchestrator.loop.rehearsal import Rehearsal
from orchestrator.loop.workbench import Parts

_BY_HEART = "learnt by heart"
_SLOW = "slow"
# What gained once by chance does not gain so often again.
_AGAIN = 2


@dataclass(frozen=True)
class Gain:
    """`how` is what it got: more than the baseline, or as much for nothing."""

    tried: Tried
    how: str

    @property
    def oracle(self) -> Oracle:
        return self.tried.oracle


@dataclass(frozen=True)
class Faced:
    """What became of one adversary: its ways, and those that gained."""

    row: Adversary
    tried: tuple[Tried, ...]
    gains: tuple[Gain, ...] = ()

    @property
    def ran(self) -> bool:
        """Whether any of its ways came before the judge."""
        return any(one.fate is not Fate.NOT_RUN for one in self.tried)

    @property
    def why_untried(self) -> str | None:
        """Why the first of its ways did not run that might have gained; None where what ran decides."""
        missing = [one.code for one in self.tried if one.fate is Fate.NOT_RUN]
        return missing[0] if missing and not self.gains else None

    @property
    def held(self) -> bool:
        return not self.gains and self.why_untried is None

    @property
    def is_mixed(self) -> bool:
        """Whether one way of it was better and another was not, where that may be honest."""
        return self.row.every and any(one.fate is not Fate.WON for one in self.tried)


@dataclass(frozen=True)
class Faces:
    """All that was tried, in the table's order. `bar` is what each was compared with; `slowed` where calls were made
    longer because time counts. `floor` is the best that a program got which does nothing. `recurring` counts questions
    that came again in the next run; `seeded` is where the judge fixes a seed, if it does.
    """

    bar: Bar
    faced: tuple[Faced, ...]
    floor: Tried | None = None
    recurring: int = 0
    seeded: str = ""
    slowed: bool = False

    @property
    def tried(self) -> list[Tried]:
        return [one for it in self.faced for one in it.tried]

    @property
    def held(self) -> int:
        return sum(it.held for it in self.faced)

    @property
    def untried(self) -> list[Faced]:
        return [it for it in self.faced if it.why_untried is not None]


async def face(
    parts: Parts,
    runs: Sequence[Rehearsal],
    findings: Findings,
    width: int,
    *,
    quick: bool = False,
    only: Sequence[str] = (),
) -> Faces:
    """Every adversary that fits this judge, some at a time; `only` names rows. Raises Unavailable when the engine
    fails.
    """
    calls = parts.tier.terms.calls
    rows = [row for row in rows_of(calls=calls, quick=quick) if not only or row.name in only]
    recurring = _recurring(runs)
    stage: Calls | Outputs
    if calls:
        stage = Calls(parts, runs)
        findings.doing("the baseline, slowed down")
        slow = next((row for row in rows if row.name == _SLOW), None)
        await stage.prepare(slow, runs[0])
        if not recurring:
            rows = [row for row in rows if row.name != _BY_HEART]
    else:
        stage = Outputs(parts, runs)
    made = stage.ways(rows, 1 if quick else None)
    done = await some_at_a_time(made, stage.attempt, findings, width)
    if isinstance(stage, Calls) and stage.slow is not None and stage.slow.oracle.row is not None:
        done.append(stage.slow)
    seeded = _seeded(parts) if recurring else ""
    faced = [await _confirmed(it, stage, findings) for it in by_row(rows, done, stage.bar)]
    return Faces(
        bar=stage.bar,
        faced=tuple(_knowing(it, stage.bar) if seeded else it for it in faced),
        floor=floor_of(faced, stage.bar),
        recurring=recurring,
        seeded=seeded,
        slowed=isinstance(stage, Calls) and stage.is_slowed,
    )


def _recurring(runs: Sequence[Rehearsal]) -> int:
    """How many questions of the first run came again in the second; none is known of a single run."""
    if len(runs) < 2 or runs[0].tape is None or runs[1].tape is None:
        return 0
    return runs[0].tape.recurring(runs[1].tape)


def _seeded(parts: Parts) -> str:
    """Where the judge draws with a fixed seed what could be new in each run, and no split is held back."""
    places = seeded_places({path: file.data for path, file in parts.jobs.snapshot.judge.items()})
    return places[0] if places and parts.task.heldout is None else ""


def _knowing(it: Faced, bar: Bar) -> Faced:
    """Questions that are meant to be drawn, and come again in every run: to know them beforehand is to gain."""
    if it.row.name != _BY_HEART or it.gains or not all(_reaches(one, bar) for one in it.tried):
        return it
    return Faced(it.row, it.tried, (Gain(it.tried[0], "gets the baseline's score and works out nothing"),))


def by_row(rows: Sequence[Adversary], done: Sequence[Tried], bar: Bar) -> list[Faced]:
    """A row that has nothing to do here was not tried."""
    found = []
    for row in rows:
        mine = tuple(one for one in done if one.oracle.row is row)
        if mine:
            ran = [one for one in mine if one.fate is not Fate.NOT_RUN]
            found.append(Faced(row, mine, _gains(row, ran, bar) if ran else ()))
    return found


def _gains(row: Adversary, mine: Sequence[Tried], bar: Bar) -> tuple[Gain, ...]:
    won = [Gain(one, "beats the baseline") for one in mine if one.fate is Fate.WON]
    if row.every and len(won) < len(mine):
        won = []
    reached = [one for one in mine if _reaches(one, bar)]
    if won or not row.tie or not reached or (len(reached) < len(mine) and not row.alone):
        return tuple(won)
    return (Gain(reached[0], "gets the baseline's score"),)


def _reaches(one: Tried, bar: Bar) -> bool:
    """Whether it has the baseline's score, and that is more than the least there is: a baseline that got nothing is
    reached by doing nothing.
    """
    if one.fate is not Fate.NO_BETTER or one.values is None or not bar.is_alike(one.values):
        return False
    first = bar.ranking.metrics[0]
    return first.goal is Goal.LOWER or any(run[first.name] != 0 for run in bar.runs)


async def _confirmed(it: Faced, stage: "Calls | Outputs", findings: Findings) -> Faced:
    """Where scores differ from run to run, what gained must gain again, each time."""
    bar = stage.bar
    if not it.gains or not (bar.is_noisy or any(bar.margins.values())):
        return it
    kept = []
    for gain in it.gains:
        findings.doing(f"once more: {gain.oracle.name}")
        again = [await stage.attempt(gain.oracle) for _ in range(_AGAIN)]
        if all(_gains(it.row, [one], bar) for one in again if one.fate is not Fate.NOT_RUN):
            kept.append(gain)
    return Faced(it.row, it.tried, tuple(kept))


def floor_of(faced: Sequence[Faced], bar: Bar) -> Tried | None:
    """The best of those that do nothing; None where none of them got a score."""
    best: Tried | None = None
    for one in (one for it in faced if it.row.idle for one in it.tried):
        if one.values is None or one.fate is Fate.FLAGGED:
            continue
        if best is None or best.values is None or bar.ranking.better(one.values, best.values):
            best = one
    return best
