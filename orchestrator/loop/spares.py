"""Changes that were offered together and are tried next to each other. Pure: a resume finds the same ones.

One answer of a model may hold several changes. The attempt that asked takes the first; the others wait, as drafts in
the ledger, for the next attempts on the same parent, which then need not ask.
"""

from collections.abc import Iterator

from orchestrator.domain.node import child_of
from orchestrator.domain.records import Draft, Node, Phase, Role
from orchestrator.domain.state import State


def next_spare(state: State, parent: str) -> Draft | None:
    """The oldest one that nobody took up."""
    return next(spares(state, parent), None)


def is_one_left(state: State, parent: str, to: str = "") -> bool:
    """Whether one more attempt on this parent would need no asking, whatever those at work on it do first.

    `to` is that attempt, if it is there already.
    """
    others = (node for node in _children(state, parent) if node.id != to)
    undecided = sum(not node.drafts and node.phase is not Phase.ENDED for node in others)
    return sum(1 for _ in spares(state, parent)) > undecided


def spares(state: State, parent: str) -> Iterator[Draft]:
    """Those that nobody took up; none that was offered before a person's last instruction."""
    siblings = list(_children(state, parent))
    taken = {
        draft.tree for node in siblings for draft in state.drafts(node.id) if draft.origin or _is_own(state, draft)
    }
    told = len(state.campaign.steering)
    for node in siblings:
        for draft in state.drafts(node.id) if node.role is Role.SEARCH else ():
            if _is_spare(draft) and draft.steered == told and draft.tree not in taken:
                yield draft


def _children(state: State, parent: str) -> Iterator[Node]:
    for number in range(1, state.next_child(parent)):
        if (found := state.nodes.get(child_of(parent, number))) and found.role is not Role.CONTROL:
            yield found


def _is_spare(draft: Draft) -> bool:
    return draft.tree is not None and draft.refused is None and not draft.tried and draft.origin is None


def _is_own(state: State, draft: Draft) -> bool:
    """Whether its node has become this draft, or will: without tuning, the first that can be used is promoted."""
    promoted = state.nodes[draft.node].promoted
    if promoted is None:
        promoted = next((it.number for it in state.drafts(draft.node) if _is_spare(it)), None)
    return draft.number == promoted
