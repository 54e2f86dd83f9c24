"""What a person told agents to do otherwise. One line each; only a person adds or removes one, and no version that
comes later is without it.
"""

from orchestrator.playbook.pages import CORRECTIONS, Pages, PlaybookError, checked

LONGEST = 500
_MARK = "- "


def corrections_of(pages: Pages) -> list[str]:
    """Every line that says something, without its mark."""
    lines = (line.strip().removeprefix(_MARK).strip() for line in pages.get(CORRECTIONS, "").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def corrected(pages: Pages, text: str, *, drop: bool = False) -> dict[str, str]:
    """With one correction more, or without it. Raises PlaybookError, also where that changes nothing."""
    line = " ".join(text.split())
    if not line or len(line) > LONGEST or not line.isprintable() or line.startswith("#"):
        raise PlaybookError(f"a correction is one line of 1 to {LONGEST} characters, and no heading")
    line = line.removeprefix(_MARK).strip()
    known = corrections_of(pages)
    if drop == (line not in known):
        raise PlaybookError(
            f'there is no correction "{line}"; blastdoor playbook show has them'
            if drop
            else f'"{line}" is a correction already'
        )
    kept = [it for it in known if it != line] if drop else [*known, line]
    return checked({**pages, CORRECTIONS: _written(kept)})


def carried(pages: Pages, present: Pages, before: Pages) -> dict[str, str]:
    """Pages that take the place of the present ones: they get the corrections that were pinned since `before`, the
    pages that the present ones came from.
    """
    own, pinned = corrections_of(pages), corrections_of(present)
    first = corrections_of(before)
    more = [it for it in pinned if it not in first and it not in own]
    return checked({**pages, CORRECTIONS: _written([*own, *more])}) if more else dict(pages)


def pinned(pages: Pages, present: Pages) -> dict[str, str]:
    """Older pages, to be used again, with the corrections of now."""
    return checked({**pages, CORRECTIONS: present.get(CORRECTIONS, "")}) if _differ(pages, present) else dict(pages)


def _differ(pages: Pages, present: Pages) -> bool:
    return corrections_of(pages) != corrections_of(present)


def _written(corrections: list[str]) -> str:
    return "".join(f"{_MARK}{line}\n" for line in corrections)
