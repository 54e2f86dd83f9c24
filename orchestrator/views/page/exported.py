"""All that the page would be told of some campaigns, in one file that opens from a disk: for artifacts of CI.

The answers are those of the server, recorded. What a file of a bounded size has no room for is said to be missing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.domain.node import path_to
from orchestrator.domain.records import Run
from orchestrator.llm.secrets import kind_of_secret
from orchestrator.settings import Settings
from orchestrator.text import printable
from orchestrator.views.page import pages, texts
from orchestrator.views.page.bundle import as_block, one_page
from orchestrator.views.page.files import static_files
from orchestrator.views.page.finding import Found, find_campaigns
from orchestrator.views.page.followed import UNREADABLE, Followed, NotThere
from orchestrator.views.page.overview import Row, row_of, unreadable_row

# Of a campaign: nodes with all that is known of them, the best first; and letters of the file for them.
MOST_NODES = 500
MOST_LETTERS = 16 << 20
_TOGETHER = 25
_LINES = "lines"
_SHORTEST_SECRET = 12
_VIEWS = (*pages.VIEWS, "credit", "report")

Answer = tuple[str, Any]
# An element of the file, and the paths of the answers in it.
Block = tuple[str, list[str]]


def export_page(folders: Sequence[Path], settings: Settings | None) -> str:
    """The whole file."""
    rows, blocks, where = [], [], {}  # type: list[Row], list[str], dict[str, str]
    for one in find_campaigns(folders).values():
        row, made = _campaign(one, settings)
        rows.append(row)
        for block, paths in made:
            where |= dict.fromkeys(paths, str(len(blocks)))
            blocks.append(block)
    index = {"campaigns": _without_secrets(rows), "where": where, "at": time.time()}
    return one_page(static_files(), "".join([as_block("index", index)[0], *blocks]))


def _campaign(found: Found, settings: Settings | None) -> tuple[Row, list[Block]]:
    """Where it stands, and all of it; of one that cannot be read to its end, why."""
    row = row_of(found, settings)
    if row["status"] == "not readable":
        return row, []
    try:
        return row, list(_blocks(found, settings))
    except Exception as error:  # noqa: BLE001  a folder of somebody else may hold anything; the others are written
        return unreadable_row(found, error), []


def _blocks(found: Found, settings: Settings | None) -> Iterator[Block]:
    """The first has all views."""
    it = Followed(found, settings)
    try:
        made, _ = _block(found, list(_views(it)))
        yield made
        left, names = MOST_LETTERS, _chosen(it)
        for start in range(0, len(names), _TOGETHER):
            answers = [answer for name in names[start : start + _TOGETHER] for answer in _of_node(it, name)]
            made, size = _block(found, answers)
            left -= size
            if left < 0:
                return
            yield made
    finally:
        it.close()


def _block(found: Found, answers: Sequence[Answer]) -> tuple[Block, int]:
    told = {f"campaign/{found.id}{path}": _without_secrets(value) for path, value in answers}
    first = next(iter(told))
    block, size = as_block(first, told)
    return (block, list(told)), size


def _views(it: Followed) -> Iterator[Answer]:
    yield "", {**it.summary(), "said": list(it.said)}
    yield "/live", {"logs": {}, "pulses": {}}
    chain = it.walk()
    while not chain["broken"] and chain["verified"] < chain["head"]:
        chain = it.walk()
    yield "/chain", chain
    for run in it.reading.state.runs.values():
        yield from _of_run(it, run)


def _of_run(it: Followed, run: Run) -> Iterator[Answer]:
    board = it.board_of(run)
    told = f"?run={run.number}"
    present = run.number == it.board.run
    yield f"/board{told}", {**board.whole(), "seq": it.seq, "present": present}
    for name in _VIEWS:
        yield f"/view/{name}{told}", pages.view(it, name, run.number)
    yield f"/parameters{told}", pages.parameters(it, run.number)
    names = board.names()[-pages.MOST_FOUND :]
    chunks = (names[at : at + pages.MOST_ROWS] for at in range(0, len(names), pages.MOST_ROWS))
    yield f"/rows{told}", {name: row for chunk in chunks for name, row in pages.rows(it, chunk).items()}


def _chosen(it: Followed) -> list[str]:
    """The way to the best of each run, what was kept, then the newest."""
    found: dict[str, None] = {}
    for run in reversed(list(it.reading.state.runs.values())):
        board = it.board_of(run)
        best = it.reading.state.champion(run)
        for name in (*(path_to(best.id) if best else ()), *reversed(board.kept()), *reversed(board.names())):
            found.setdefault(name)
    return list(found)[:MOST_NODES]


def _of_node(it: Followed, name: str) -> Iterator[Answer]:
    told = pages.node_page(it, name)
    yield f"/node/{name}", told
    yield f"/compare/{name}", pages.compare(it, [name])["nodes"][0]
    best = it.reading.state.champion(it.run_numbered(told["run"]))
    for base in dict.fromkeys(["", str(told["run"]), best.id if best else ""]):
        if told["has_diff"] and base != name:
            make = partial(texts.diff_page, it, name, base or None, 0)
            yield from _tried(f"/diff?node={name}&from={base}", make)
    for text in told["texts"]:
        what, of = text["what"], text["name"]
        yield from _tried(f"/text?what={what}&name={of}", partial(texts.log_page, it, what, of, 0))


def _tried(path: str, make: Callable[[], Any]) -> Iterator[Answer]:
    """What was let go, or was never stored, is told as it would be by a server."""
    try:
        yield path, make()
    except (NotThere, *UNREADABLE) as error:
        yield path, {"error": printable(str(error))[:500]}


def _without_secrets(value: Any, name: str = "") -> Any:
    """A file is handed on, which a server's page is not. Of a text in lines all are left out: a key can go over many,
    and only its first one tells what it is.
    """
    match value:
        case str():
            kind = _secret(value)
            return _left_out(kind) if kind else value
        case dict():
            return {_without_secrets(key): _without_secrets(one, key) for key, one in value.items()}
        case list() | tuple() if name == _LINES:
            kind = _secret("\n".join(map(str, value)))
            return [_left_out(kind)] if kind else list(value)
        case list() | tuple():
            return [_without_secrets(one) for one in value]
        case _:
            return value


def _secret(text: str) -> str | None:
    """Its kind, as in a file of settings: there a value stands without quotes."""
    return kind_of_secret(text.encode("utf-8", "replace"), ".env") if len(text) >= _SHORTEST_SECRET else None


def _left_out(kind: str) -> str:
    return f"(left out: it looks like {kind})"
