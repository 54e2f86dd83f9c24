"""What proposers are shown, for tests: attempts that ended and that run."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from orchestrator.change import Tree
from orchestrator.domain.metric import Metric, Ranking, Rule
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.proposers import Brief, Proposer, Tried
from orchestrator.task import Parameter
from tests.orchestrator.proposers.test_proposers import brief

ONE = Ranking((Metric(),))

Score = Callable[[Mapping[str, Value]], tuple[float, ...] | None]


def tried(number: int, params: Mapping[str, Value] | None, merits: tuple[float, ...] | None = None) -> Tried:
    return Tried(
        node=f"1.{number}",
        number=number,
        parent="1",
        operator="x",
        description="x",
        params=params,
        merits=merits,
        parent_merits=None,
    )


class Shown:
    """A past that a test fills."""

    def __init__(self, ended: Sequence[Tried] = (), running: Sequence[Tried] = ()) -> None:
        self.ended, self.running = list(ended), list(running)

    def knows(self, digest: str) -> bool:
        raise NotImplementedError

    def tree(self, node: str) -> Tree:
        raise NotImplementedError


def asked(number: int, past: Shown, seed: int = 7, **changes: object) -> Brief:
    return brief(number, past=past, seed=seed, **changes)


async def searched(proposer: Proposer, score: Score, attempts: int, seed: int = 7) -> Shown:
    """A campaign of one attempt at a time."""
    past = Shown()
    for number in range(1, attempts + 1):
        (proposal,) = await proposer.propose(asked(number, past, seed))
        past.ended.append(tried(number, point_of(proposal), score(point_of(proposal))))
    return past


def point_of(proposal: Proposal) -> dict[str, Value]:
    return dict(proposal.params or {})


def middle(past: Shown, last: int = 20) -> float:
    """The median of the last draws that have a score."""
    return median(it.merits[0] for it in past.ended[-last:] if it.merits is not None)


def ranked(rule: Rule, *weights: float) -> Ranking:
    return Ranking(tuple(Metric(name=f"m{at}", weight=weight) for at, weight in enumerate(weights)), rule)


Space = dict[str, Parameter]
