"""From an agent's text to a new tree: policy first, then parse, then apply; the whole change or none of it.

Free of I/O. Raises Refusal, with a reason from a closed list and a message that the agent can act on, and nothing else.
"""

from orchestrator.change.applying import apply, apply_text, check_sizes
from orchestrator.change.canonical import Comparison, Size, compare, difference
from orchestrator.change.edits import Change, Form
from orchestrator.change.effort import Effort
from orchestrator.change.forms import parse
from orchestrator.change.policy import Caps, Policy
from orchestrator.change.refusal import Reason, Refusal, shown
from orchestrator.change.tree import File, Tree

__all__ = [
    "Caps",
    "Change",
    "Comparison",
    "Effort",
    "File",
    "Form",
    "Policy",
    "Reason",
    "Refusal",
    "Size",
    "Tree",
    "apply",
    "apply_text",
    "check_sizes",
    "compare",
    "difference",
    "parse",
    "shown",
]
