"""Which nodes were taken apart, and what is known of them."""

from collections.abc import Iterator

from orchestrator.domain.node import order_of, parent_of
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.domain.state import State


def takings_apart(state: State, winner: Node) -> Iterator[Node]:
    """The minimised nodes of a node, from the first on."""
    names = [name for name in state.notable_names(Role.MINIMISED) if parent_of(name) == winner.id]
    return (state.nodes[name] for name in sorted(names, key=order_of))


def minimal_of(state: State, winner: Node) -> Node | None:
    """The minimised node that ended with nothing left to try; None where another one could find more."""
    ended = [it for it in takings_apart(state, winner) if it.phase is Phase.ENDED and it.ending]
    whole = [it for it in ended if it.minimal and it.minimal.complete and it.ending and it.ending.charged]
    return whole[-1] if whole else None


def smaller_of(state: State, winner: Node) -> Node | None:
    """The smallest change that is as good as a node's, where one was found and passed all that the node had to pass."""
    kept = [it for it in takings_apart(state, winner) if it.kept]
    return min(kept, key=lambda it: (it.size or 0, it.size_bytes or 0, it.id)) if kept else None
