"""Which nodes are best at single tasks, in a line."""

from orchestrator.domain.frontier import frontier_of
from orchestrator.domain.records import Run
from orchestrator.domain.state import State
from orchestrator.text import short

_NODES = 8
_TASKS = 4
_NAME = 24


def best_at(state: State, run: Run) -> dict[str, list[str]]:
    """Empty where verdicts have fewer than two tasks: then who is best at one is the best."""
    found = frontier_of(state, run).best_at
    return found if len({task for tasks in found.values() for task in tasks}) > 1 else {}


def frontier_line(state: State, run: Run) -> str:
    """`1.3 at a, b; 1.5.2 at c`: the nodes that are best at most tasks first."""
    found = sorted(best_at(state, run).items(), key=lambda item: -len(item[1]))
    told = [f"{node} at {_some([short(task, _NAME) for task in tasks], _TASKS, ', ')}" for node, tasks in found]
    return _some(told, _NODES, "; ")


def _some(parts: list[str], most: int, between: str) -> str:
    if len(parts) <= most:
        return between.join(parts)
    return f"{between.join(parts[: most - 1])}{between}and {len(parts) - most + 1} more"
