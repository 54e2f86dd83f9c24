"""Long texts of others, a page at a time: logs of any length, answers of models, differences of trees.

A page is cut where a line ends, and told in bytes, so that a gigabyte costs no more than a screen of it.
"""

from collections.abc import Callable
from typing import Any

import click

from orchestrator.text import printable_lines
from orchestrator.views.campaign.diff import diff_of
from orchestrator.views.page.followed import Followed, NotThere
from orchestrator.views.page.live_logs import live_part

PAGE = 1 << 16
_DIFF_PAGE = 1 << 18
_LONGEST_LINE = 4000
_FARTHEST = 1 << 50

Part = Callable[[int, int], tuple[bytes, int]]


def log_page(it: Followed, what: str, name: str, start: int, *, last: bool = False) -> dict[str, Any]:
    """`what` is a trial's log, an agent's, the text of a draft like `1.3#2`, or that of a chamber at work. `last` asks
    for the page with its end. Raises NotThere, and LedgerErrors for bytes that are gone.
    """
    if not 0 <= start < _FARTHEST:
        raise NotThere("a page begins at a byte from 0 on")
    part = _part_of(it, what, name)
    if last:
        _, size = part(0, 0)
        start = max(0, size - PAGE)
    data, size = part(start, PAGE)
    begins = start
    if last and start and (cut := data.find(b"\n") + 1):
        data, begins = data[cut:], start + cut
    if begins + len(data) < size:
        data = data[: data.rfind(b"\n") + 1] or data
    return {"start": begins, "end": begins + len(data), "size": size, "lines": shown_lines(data)}


def _part_of(it: Followed, what: str, name: str) -> Part:
    if what == "live":
        return _live(it, name)
    digest = _digest(it, what, name)
    if digest is None:
        raise NotThere(f"no {what} of it is stored")
    return lambda start, size: it.reading.artifacts.get_part(digest, start, size)


def _digest(it: Followed, what: str, name: str) -> str | None:
    state = it.reading.state
    if what == "agent":
        return it.node(name).agent_log
    if what == "trial":
        return state.trials[name].log if name in state.trials else None
    if what == "draft":
        draft = state.draft(name)
        return draft.change if draft else None
    raise NotThere("logs are of a trial, of an agent, of a draft, or live")


def _live(it: Followed, name: str) -> Part:
    def read(start: int, size: int) -> tuple[bytes, int]:
        found = live_part(it.reading.folder / "live", name, start, size)
        if found is None:
            raise NotThere("that chamber is at work no more")
        return found

    return read


def diff_page(it: Followed, node: str, base: str | None, number: int) -> dict[str, Any]:
    """Against the parent, or any other node."""
    found, other = it.node(node), it.node(base) if base else None
    try:
        text = diff_of(it.reading, found, other).encode("utf-8", "backslashreplace")
    except click.UsageError as error:
        raise NotThere(error.message) from None
    pages = _pages(text)
    if not 0 <= number < max(1, len(pages)):
        raise NotThere(f"this difference has {len(pages)} pages")
    lines = shown_lines(pages[number]) if pages else []
    return {"node": found.id, "from": other.id if other else found.parent, "pages": len(pages), "lines": lines}


def _pages(text: bytes) -> list[bytes]:
    """Each ends with a line, where one is not longer than a page itself."""
    found, at = [], 0
    while at < len(text):
        end = at + _DIFF_PAGE
        if end < len(text):
            end = text.rfind(b"\n", at, end) + 1 or end
        found.append(text[at:end])
        at = end
    return found


def shown_lines(data: bytes) -> list[str]:
    """Harmless to the eye, and none so long that a browser stands still over it."""
    lines = printable_lines(data)
    return [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} … ({len(line):,} long)" for line in lines]
