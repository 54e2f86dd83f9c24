"""What an evolver is shown, and what is made of its answer. It can change a few pages, a person's corrections never."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources

from orchestrator.change import Caps, Policy, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.canonical import difference
from orchestrator.domain.records import Node, Phase, PlaybookVersion, Role
from orchestrator.domain.state import State
from orchestrator.playbook.corrections import corrections_of
from orchestrator.playbook.pages import (
    NOTES,
    PAGE_BYTES,
    PROMPTS,
    TOTAL_BYTES,
    Pages,
    PlaybookError,
    checked,
    pages_of,
    raw_of,
)
from orchestrator.playbook.results import Tally
from orchestrator.text import printable_lines, short

_FILES = 4
_POLICY = Policy(
    editable=(*PROMPTS, NOTES, "skills/*.md"),
    caps=Caps(text_bytes=64 * 1024, files=_FILES, hunks=64, file_bytes=PAGE_BYTES, total_bytes=TOTAL_BYTES),
)
_WHY = "Why:"
_LONGEST_WHY = 200
# What is shown of the past: enough to learn from, and bounded however long a campaign is.
_VERSIONS = 12
_DIFFS = 4
_DIFF_LINES = 60
_ATTEMPTS = 30


@dataclass(frozen=True)
class Past:
    """A version with what was made with it. `pages` is None for one that is only named."""

    record: PlaybookVersion
    tally: Tally
    pages: Pages | None = None
    parent: Pages | None = None


def instructions() -> str:
    """They are ours, and no part of the playbook: its editor does not write its own rules."""
    return (resources.files("orchestrator.playbook") / "evolver.md").read_text(encoding="utf-8")


def request(statement: str, pages: Pages, pasts: Sequence[Past], attempts: Sequence[str]) -> str:
    """The same for the same past, to the letter."""
    corrections = corrections_of(pages)
    parts = [
        _part("The task of the users, as a person wrote it", printable_lines(statement)),
        *(_page(name, text) for name, text in pages.items()),
        _part("A person's corrections, which stay as they are", [f"- {it}" for it in corrections] or ["none"]),
        _part("Versions so far, and what attempts with each brought", [_version_line(it) for it in pasts[-_VERSIONS:]]),
        *(_change(it) for it in pasts if it.pages is not None and it.parent is not None),
        _part("The last attempts: version, ending, what was tried", attempts or ["none"]),
        "Write the next version of the playbook now, in the form that you were told.",
    ]
    return "\n\n".join(parts)


def shown_in_full(versions: Sequence[PlaybookVersion]) -> list[PlaybookVersion]:
    """The last few that changed another: how they did so is shown."""
    return [it for it in versions if it.parent is not None][-_DIFFS:]


def attempt_lines(state: State) -> list[str]:
    """What users tried last, in one line each: words of a model, made fit to be shown to another as data."""
    root = f"{state.campaign.run}."
    ended = [node for node in state.nodes.values() if _is_users(node) and node.id.startswith(root)]
    ended.sort(key=lambda node: (node.ended_place, node.number))
    return [_attempt_line(node) for node in ended[-_ATTEMPTS:]]


def rewritten(pages: Pages, answer: str) -> tuple[dict[str, str], str]:
    """The next pages, and why. Raises PlaybookError with what is wrong with the answer."""
    before = Tree.of(raw_of(pages))
    try:
        after = apply_text(before, _without_why(answer), _POLICY)
    except Refusal as refusal:
        raise PlaybookError(str(refusal)) from None
    changed = pages_of({name: file.data for name, file in after.items()})
    if gone := [name for name in pages if name in PROMPTS and name not in changed]:
        raise PlaybookError(f"{gone[0]} was removed; prompts can be changed, not removed")
    return checked(changed), _why(answer)


def _is_users(node: Node) -> bool:
    return node.role is Role.SEARCH and node.phase is Phase.ENDED and node.ending is not None and node.ending.charged


def _attempt_line(node: Node) -> str:
    made = f"version {node.playbook}" if node.playbook is not None else "no playbook"
    kept = "kept" if node.kept else "not kept"
    flagged = f", the verifier says {node.finding}" if node.finding in ("hold", "flag") else ""
    return f"- {made}: {node.ending}, {kept}{flagged}: {short(node.description, 160)}"


def _page(name: str, text: str) -> str:
    return _part(f"The page {name}", text.splitlines())


def _part(title: str, lines: Iterable[str]) -> str:
    """Indented, so that nothing in it can pass for a title of ours."""
    return "\n".join([f"# {title}", *(f"    {line}" for line in lines)])


def _version_line(past: Past) -> str:
    it = past.record
    whence = f" from {it.parent}" if it.parent is not None else ""
    fate = f"; {short(it.fate, 160)}" if it.fate else ""
    return f"- {it.number}, by {it.by}{whence} ({short(it.why, 200)}): {past.tally.words}{fate}"


def _change(past: Past) -> str:
    old, new = (Tree.of(raw_of(pages or {})) for pages in (past.parent, past.pages))
    lines = difference(old, new).splitlines()
    more = [f"… and {len(lines) - _DIFF_LINES} lines more"] if len(lines) > _DIFF_LINES else []
    return _part(f"What version {past.record.number} changed", [*lines[:_DIFF_LINES], *more])


def _why(answer: str) -> str:
    line = next((it for it in answer.splitlines() if it.strip().startswith(_WHY)), "")
    return short(line.strip().removeprefix(_WHY), _LONGEST_WHY) or "no reason given"


def _without_why(answer: str) -> str:
    """The line is ours, and must not be taken for the label of a block."""
    return "\n".join(line for line in answer.splitlines() if not line.strip().startswith(_WHY))
