"""What tools leave behind in a workspace, and nobody means as a change: one list, for what an agent hands in.

A file that was there before is none, whatever it is called; nor is one that the task names: an editable path or glob in
which the name itself is written, `.aider.conf.yml` or `**/__pycache__/**`. That `**` reaches it is not enough.
"""

from collections.abc import Container

from orchestrator.change import Policy
from orchestrator.change.patterns import matches

# Folders that can be large. An agent's chamber does not even look into them.
CACHES = (
    *(".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
    *("node_modules", ".npm", ".cache", ".venv", ".tox", ".nox"),
)
# Names of files, and of folders with all that is in them.
LEFTOVERS = (
    *(".aider*", ".claude", ".codex", ".cursor", ".gemini", ".opencode", ".swe-agent", ".mini-swe-agent"),
    *("*.pyc", "*.pyo", ".coverage", ".coverage.*", ".idea", ".vscode", ".DS_Store", "Thumbs.db"),
    *("*~", "*.swp", "*.swo", "#*#", ".#*", "*.orig", "*.rej"),
)


def is_litter(path: str, before: Container[str], policy: Policy) -> bool:
    if path in before or not any(map(_is_name_of_litter, path.split("/"))):
        return False
    return not any(matches(pattern, path) for pattern in policy.patterns if _names_litter(pattern))


def unwalked(policy: Policy) -> list[str]:
    """The caches that the task does not name."""
    named = {part for pattern in policy.patterns for part in pattern.split("/")}
    return [name for name in CACHES if name not in named]


def _names_litter(pattern: str) -> bool:
    return any(map(_is_name_of_litter, pattern.split("/")))


def _is_name_of_litter(name: str) -> bool:
    return name in CACHES or any(matches(it, name) for it in LEFTOVERS)
