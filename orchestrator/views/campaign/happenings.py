"""One readable line for every event, and the node it is about."""

from orchestrator.domain import events as e
from orchestrator.text import short

LONGEST = 200


def line_of(event: e.Event) -> str:
    """What happened, in words: escaped, and never more than one line."""
    return short(event.said, LONGEST)


def node_of(event: e.Event) -> str | None:
    """The node that an event is about; None for one about the whole campaign, or about money alone."""
    if node := getattr(event, "node", None):
        return str(node)
    trial = str(getattr(event, "trial", ""))
    return trial.rpartition("-")[0] or None
