"""Where the next change is tried: branches side by side, each a few steps deep. Pure: a resume goes on alike."""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import parent_of
from orchestrator.domain.proposal import Drawn
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State
from orchestrator.domain.verdict import better
from orchestrator.loop.selection import SLOT, Population
from orchestrator.loop.spares import next_spare
from orchestrator.meta.chooser import Chooser

_AT_WORK = (Phase.OPEN, Phase.QUEUED)


@dataclass(frozen=True)
class Opening:
    parent: str
    role: Role
    branch: int = 0
    step: int = 0
    injection: int | None = None
    island: int = 0
    drawn: Drawn | None = None


def next_opening(
    state: State,
    ranking: Ranking,
    *,
    branching: bool,
    width: int,
    selection: Population | None = None,
    several: bool = False,
    walk: int | None = None,
    choosing: Callable[[int], Chooser] = lambda _: Chooser(),
) -> Opening | None:
    """The next step of a branch that waits, else a new branch; None when as many branches work as may.

    A new branch starts at the champion, or where the selection says; branches are dealt out to islands in turn. A
    branch goes on with what it was offered together with its last change, where `several` are, before it builds on any
    of them. In a search that kept nothing for `walk` attempts, a branch goes on over neutral changes.
    `choosing` makes the chooser for a branch, for a selection that asks one.
    """
    run = state.run
    at_work = 0
    for branch, members in state.branches.items():
        last = state.nodes[members[-1]]
        if last.phase is Phase.ENDED:
            parent = _best_of(state, members, ranking, walk) if branching else run.root
            if several and last.parent and next_spare(state, last.parent):
                parent = last.parent
            drawn = _start_of(state.nodes[members[0]])
            return Opening(parent, Role.SEARCH, branch, last.step + 1, island=last.island, drawn=drawn)
        at_work += last.phase in _AT_WORK
    if at_work >= width:
        return None
    number = state.campaign.branches + 1
    if not branching:
        return Opening(run.root, Role.SEARCH, number, 1)
    island = 1 + (number - 1) % run.islands if run.islands > 1 else 0
    chooser = choosing(number) if selection and selection.chooses else None
    start = selection.start_of(number, island, chooser) if selection else None
    champion = state.champion(run)
    parent = start or (champion.id if champion else run.root)
    return Opening(parent, Role.SEARCH, number, 1, island=island, drawn=chooser.drawn if chooser else None)


def _start_of(first: Node) -> Drawn | None:
    """The rule by which its branch began: what every later step brings, it made possible."""
    arm = first.drawn.arms.get(SLOT) if first.drawn else None
    return Drawn(arms={SLOT: arm}) if arm else None


def control_is_due(state: State) -> bool:
    """The control grows with the campaign: one attempt of its own for each of the proposer's."""
    return state.run.control is not None and state.count_paid(Role.CONTROL) < state.count_paid(Role.SEARCH)


def _best_of(state: State, members: list[str], ranking: Ranking, walk: int | None) -> str:
    """The best node of a branch; what it started from where nothing in it is as good.

    Of several that are equally good it is the first. Where the search walks it is the last of a chain of them, each
    built on the one before: what needs several neutral steps is never reached else.
    """
    start = state.nodes[parent_of(members[0]) or state.run.root]
    walks = walk is not None and state.campaign.since_improvement >= walk
    best: Node | None = None
    for node in (*(state.nodes[name] for name in members), start):
        if not _comparable(node, state.run.cohort):
            continue
        if best is None or _beats(node, best, ranking) or (walks and _is_neutral(node, best, ranking)):
            best = node
    return best.id if best else start.id


def _comparable(node: Node, cohort: str | None) -> bool:
    verdict = node.verdict
    return bool(verdict and verdict.valid and not verdict.suspect and verdict.cohort == cohort)


def _beats(node: Node, other: Node, ranking: Ranking) -> bool:
    return bool(node.verdict and other.verdict and better(node.verdict, other.verdict, ranking))


def _is_neutral(node: Node, on: Node, ranking: Ranking) -> bool:
    """Whether it is a change of that node which left every metric as it was."""
    if node.parent != on.id or not node.verdict or not on.verdict:
        return False
    return ranking.merits(node.verdict.metrics) == ranking.merits(on.verdict.metrics)
