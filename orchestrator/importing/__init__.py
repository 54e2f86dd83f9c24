"""Tasks that were written for other public systems, read, and written as a task of ours.

What is read is never imported nor run here: Python is parsed, YAML is loaded as plain values, and the rest is copied.
"""

from orchestrator.importing.base import Imported, ImportRequest
from orchestrator.importing.writing import write_task

__all__ = ["ImportRequest", "Imported", "write_task"]
