"""Places in the tree, written with dots: `1` is the baseline of run 1, `1.3` the third change on it."""

import re

_SHAPE = re.compile(r"[1-9][0-9]{0,8}(\.[1-9][0-9]{0,8}){0,127}")

NodeId = str


def parse_node(text: str) -> NodeId:
    """A node id that a person wrote. Raises ValueError with a line that says how to write one."""
    if not _SHAPE.fullmatch(text):
        raise ValueError(f"{text!r} is not a node; write it like 1.3.2 (blastdoor tree shows them)")
    return text


def parent_of(node: NodeId) -> NodeId | None:
    return node.rpartition(".")[0] or None


def child_of(node: NodeId, number: int) -> NodeId:
    return f"{node}.{number}"


def run_of(node: NodeId) -> int:
    return int(node.split(".", 1)[0])


def path_to(node: NodeId) -> list[NodeId]:
    """From the root to the node, both included."""
    parts = node.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def order_of(node: NodeId) -> tuple[int, ...]:
    """Sorts `1.2` before `1.10`."""
    return tuple(map(int, node.split(".")))


def count_key(run: int | str, role: str) -> str:
    """Under which attempts of a role are counted, apart for each run."""
    return f"{run}/{role}"


def dropped_key(run: int | str, role: str) -> str:
    """Under which those of them are counted that were cancelled, and cost nothing."""
    return f"{count_key(run, role)}/dropped"
