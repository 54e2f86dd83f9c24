"""The limits of a trial's and a judge's chamber as they are opened, and all chambers that an attempt may need.

In relay mode both live while either works.
"""

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.domain.records import Role, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.tariff import Tariff
from orchestrator.task import Task
from sandbox import Limits

# What nobody's turn is: frames on their way, chambers that start, an event loop that is late.
_BETWEEN_S = 30.0
_LONGEST_S = 86_400.0 * 7
# How often a proposer that costs something is asked for a proposal, when all that it offers is known.
PAID_ROUNDS = 2
# In front of a candidate's answer, the judge is told what it was and how long it took.
_STAMP_BYTES = 64
# Frames that the judge does not ask for: loading, and empty calls.
_OURS = 64


class Walls(NamedTuple):
    """A chamber by what bounds its life; `away` where candidates run, else at home."""

    limits: Limits
    builds: bool = False
    away: bool = False


def relays(task: Task) -> bool:
    """Whether the judge calls the candidate, so that both are there at the same time."""
    return task.judge.mode == "relay"


def side_by_side(task: Task) -> Limits:
    """What one attempt holds of the machine at a time, as the limits of a single chamber."""
    own, judge = task.limits, task.judge.limits
    if not relays(task):
        return own
    return own.model_copy(update={"cpus": own.cpus + judge.cpus, "memory": own.memory + judge.memory})


def chamber_limits(task: Task, mode: Mode) -> tuple[Limits, Limits]:
    """Of the candidate's chamber, and of the judge's. Whose turns took too long is held apart from these walls."""
    own, judge = task.target(mode).limits, task.judge.limits
    if not relays(task):
        return own, judge
    both = own.wall + judge.wall + _BETWEEN_S
    # The judge's chamber is there first, and waits until the candidate's is opened and built.
    waits = task.stall.provision + (own.build if task.trial.build else 0.0)
    frame = max(judge.frame_bytes, own.frame_bytes + _STAMP_BYTES)
    return (
        # How many calls there are is the judge's to say: a candidate must not pay for a cap that its judge reached.
        own.model_copy(update={"wall": min(both, _LONGEST_S), "frames": max(own.frames, judge.frames) + _OURS}),
        judge.model_copy(update={"wall": min(both + waits, _LONGEST_S), "frame_bytes": frame}),
    )


def walls_of_trial(task: Task, mode: Mode) -> list[Walls]:
    """The trial and two judgings: the second is on the baseline, should the first break."""
    return _walls_of_run(task, mode) + _walls_of_doubt(task, mode)


def _walls_of_run(task: Task, mode: Mode) -> list[Walls]:
    """A trial and its judging."""
    own, judge = chamber_limits(task, mode)
    if task.judge.mode == "shared":
        # What runs as the trial is the judge's command, which builds nothing; its result is read here.
        return [Walls(judge, away=True)]
    return [Walls(own, bool(task.trial.build), away=True), Walls(judge)]


def _walls_of_doubt(task: Task, mode: Mode) -> list[Walls]:
    """A judging of the baseline, where a judge broke that is not beside the candidate. Whatever it says, nothing more
    is run in the attempt.
    """
    own, judge = chamber_limits(task, mode)
    if task.judge.mode == "shared":
        return []
    # Where the judge calls, this needs the baseline itself, not what it left.
    return [Walls(own, bool(task.trial.build), away=True), Walls(judge)] if relays(task) else [Walls(judge)]


def walls_of_asking(task: Task) -> list[Walls]:
    """One trial on the held-out split and one judging; nothing where the task has none."""
    if task.heldout is None:
        return []
    own, judge = chamber_limits(task, Mode.HELDOUT)
    return [Walls(own, bool(task.trial.build), away=True), Walls(judge)]


def walls_of_guard(limits: Limits, place: str) -> Walls:
    """One that is run beside the judge stays where the judge is."""
    return Walls(limits, away=place != "judge")


def walls_of_attempt(task: Task, role: Role, guards: Sequence[Walls]) -> list[Walls]:
    """What an attempt reserves when it is opened: the trial, the same for a replay, every guard, and held-out. A judge
    that breaks is asked about the baseline once, since that ends the attempt; about a baseline never.
    """
    replays = role in (Role.SEARCH, Role.INJECTED) and task.certify.certify().replays
    walls = _walls_of_run(task, Mode.SUBMIT) * (2 if replays else 1)
    if role is not Role.BASELINE:
        walls += _walls_of_doubt(task, Mode.SUBMIT)
    if role is not Role.CONTROL:
        walls += [*guards, *walls_of_asking(task)]
    return walls


def walls_of_agent(task: Task) -> list[Walls]:
    """What an attempt reserves for a coding agent: it is asked again where all that it hands in is known."""
    return [Walls(task.agent.limits)] * PAID_ROUNDS


def walls_of_search(task: Task) -> list[list[Walls]]:
    """All that one attempt of the search reserves in its life, a list for each reservation: its own, and one for each
    trial of its tuning. Repeats are not in it.
    """
    tuning = [walls_of_trial(task, Mode.TUNE)] * (task.tune.trials if task.tune else 0)
    guards = [walls_of_guard(guard.limits, guard.place) for guard in task.guards]
    return [walls_of_attempt(task, Role.SEARCH, guards), *tuning]


def worst_of_walls(tariff: Tariff, walls: Sequence[Walls], *, away: bool) -> Spent:
    """What those at one of the two places cost at most; they are all of one attempt."""
    return tariff.worst_in_turn([(it.limits, it.builds) for it in walls if it.away == away])
