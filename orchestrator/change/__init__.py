"""From an agent's text to a new tree: policy first, then parse, then apply; the whole change or none of it.

Free of I/O. Raises Refusal, with a reason from a closed list and a message that the agent can act on, and nothing else.
These are its words; what does the work (`forms`, `applying`, `canonical`) is used by its name, so that reading a task
does not load it.
"""

from orchestrator.change.effort import Effort
from orchestrator.change.policy import Caps, Policy
from orchestrator.change.refusal import Reason, Refusal
from orchestrator.change.tree import File, Tree
from orchestrator.text import shown

__all__ = ["Caps", "Effort", "File", "Policy", "Reason", "Refusal", "Tree", "shown"]
