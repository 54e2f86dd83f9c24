"""What agents work with: prompts, skills, notes and a person's corrections, as versions that can be compared."""

from orchestrator.playbook.corrections import carried, corrected, corrections_of, pinned
from orchestrator.playbook.pages import (
    CORRECTIONS,
    NOTES,
    PROMPTS,
    Pages,
    PlaybookError,
    checked,
    default_pages,
    load_pages,
    pages_of,
    raw_of,
)

__all__ = [
    "CORRECTIONS",
    "NOTES",
    "PROMPTS",
    "Pages",
    "PlaybookError",
    "carried",
    "checked",
    "corrected",
    "corrections_of",
    "default_pages",
    "load_pages",
    "pages_of",
    "pinned",
    "raw_of",
]
