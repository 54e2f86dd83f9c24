"""Changes to code that need no model: small operators on a concrete syntax tree, and on lines where there is none.

A file is parsed and never run. What was tried before decides which operator comes next, where, and with what step.
"""

from orchestrator.proposers.operators.files import editable_texts
from orchestrator.proposers.operators.proposer import Operators

__all__ = ["Operators", "editable_texts"]
