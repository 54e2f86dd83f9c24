"""All chambers that an attempt may need. Which a trial and its judging need, the judge's mode tells."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.domain.records import Role, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.tariff import Tariff
from orchestrator.task import Task
from sandbox import Limits

if TYPE_CHECKING:
    from orchestrator.loop.judge_modes import JudgeMode

# How often a proposer that costs something is asked for a proposal, when all that it offers is known.
PAID_ROUNDS = 2


class Walls(NamedTuple):
    """A chamber by what bounds its life; `away` where candidates run, else at home."""

    limits: Limits
    builds: bool = False
    away: bool = False


def walls_of_trial(judge_mode: "JudgeMode", task: Task, mode: Mode) -> list[Walls]:
    """The trial and two judgings: the second is on the baseline, should the first break."""
    return judge_mode.walls_of_run(task, mode) + judge_mode.walls_of_doubt(task, mode)


def walls_of_asking(judge_mode: "JudgeMode", task: Task) -> list[Walls]:
    """One trial on the held-out split and one judging; nothing where the task has none."""
    if task.heldout is None:
        return []
    return judge_mode.walls_of_run(task, Mode.HELDOUT)


def walls_of_guard(limits: Limits, place: str) -> Walls:
    """One that is run beside the judge stays where the judge is."""
    return Walls(limits, away=place != "judge")


def walls_of_attempt(judge_mode: "JudgeMode", task: Task, role: Role, guards: Sequence[Walls]) -> list[Walls]:
    """What an attempt reserves when it is opened: the trial, the same for a replay, every guard, and held-out. A judge
    that breaks is asked about the baseline once, since that ends the attempt; about a baseline never.
    """
    replays = role in (Role.SEARCH, Role.INJECTED) and task.certify.certify().replays
    walls = judge_mode.walls_of_run(task, Mode.SUBMIT) * (2 if replays else 1)
    if role is not Role.BASELINE:
        walls += judge_mode.walls_of_doubt(task, Mode.SUBMIT)
    if role is not Role.CONTROL:
        walls += [*guards, *walls_of_asking(judge_mode, task)]
    return walls


def walls_of_agent(task: Task) -> list[Walls]:
    """What an attempt reserves for a coding agent: it is asked again where all that it hands in is known."""
    return [Walls(task.agent.limits)] * PAID_ROUNDS


def walls_of_search(judge_mode: "JudgeMode", task: Task) -> list[list[Walls]]:
    """All that one attempt of the search reserves in its life, a list for each reservation: its own, and one for each
    trial of its tuning. Repeats are not in it.
    """
    tuning = [walls_of_trial(judge_mode, task, Mode.TUNE)] * (task.tune.trials if task.tune else 0)
    guards = [walls_of_guard(guard.limits, guard.place) for guard in task.guards]
    return [walls_of_attempt(judge_mode, task, Role.SEARCH, guards), *tuning]


def worst_of_walls(tariff: Tariff, walls: Sequence[Walls], *, away: bool) -> Spent:
    """What those at one of the two places cost at most; they are all of one attempt."""
    return tariff.worst_in_turn([(it.limits, it.builds) for it in walls if it.away == away])
