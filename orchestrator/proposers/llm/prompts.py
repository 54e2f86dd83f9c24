"""The texts that say how to work. They come from the playbook; where it has none, from those that we ship.

What a prompt says is advice. What must hold, like the form of an answer, is said by the code beside it.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePosixPath as Path

from orchestrator.playbook import CORRECTIONS, NOTES, default_pages
from orchestrator.proposers.base import Brief, Playbook

SYSTEM, DRAFT, IMPROVE, DEBUG, PARAMS = (
    f"prompts/{name}.md" for name in ("system", "draft", "improve", "debug", "params")
)
SKILLS = "skills/"


def prompt(playbook: Playbook | None, name: str) -> str:
    given = playbook.files.get(name) if playbook else None
    return (_defaults()[name] if given is None else given).strip()


def chosen(brief: Brief, name: str) -> str:
    """The page to ask with: where the search learns, it learns which of a prompt's variants pays."""
    stem = name.removesuffix(".md")
    texts: Mapping[str, str] = brief.playbook.files if brief.playbook else {}
    others = sorted(it for it in texts if it.startswith(f"{stem}-") and texts[it].strip())
    if not others or not brief.chooser.learns:
        return name
    pages = {Path(it).stem: it for it in (name, *others)}
    return pages[brief.chooser.choose("prompt", dict.fromkeys(pages, 1.0)) or Path(name).stem]


def guidance(playbook: Playbook | None) -> list[tuple[str, str]]:
    """What there is beside the prompts: skills, notes, and last the user's corrections, which win."""
    texts: Mapping[str, str] = playbook.files if playbook else {}
    names = [*sorted(name for name in texts if name.startswith(SKILLS)), NOTES, CORRECTIONS]
    return [(name, texts[name].strip()) for name in names if texts.get(name, "").strip()]


@lru_cache
def _defaults() -> Mapping[str, str]:
    return default_pages()
