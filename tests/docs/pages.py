"""Our Markdown pages as data: their code, tables, links and headings. Knows just as much Markdown as we write."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
# What is promised about commands, flags and keys stands here; the change log tells of what was.
GUIDES = [README, *DOCS]
OTHERS = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "deploy/README.md", "images/README.md")
DECISIONS = sorted((ROOT / "docs" / "adr").glob("*.md"))
PAGES = [*GUIDES, *(ROOT / name for name in OTHERS), *DECISIONS]

_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Fence:
    language: str
    text: str


@dataclass(frozen=True)
class Table:
    """`heading` is the last one above it, as it is written."""

    heading: str
    header: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> list[str]:
        return [row[self.header.index(name)] for row in self.rows]


def split(page: Path) -> tuple[list[Fence], list[str]]:
    """The fenced blocks of a page, and its other lines."""
    fences: list[Fence] = []
    lines: list[str] = []
    open_fence: tuple[str, list[str]] | None = None
    for line in page.read_text(encoding="utf-8").split("\n"):
        if line.startswith("```"):
            if open_fence:
                fences.append(Fence(open_fence[0], "\n".join(open_fence[1]) + "\n"))
                open_fence = None
            else:
                open_fence = (line[3:].strip(), [])
        elif open_fence:
            open_fence[1].append(line)
        else:
            lines.append(line)
    assert open_fence is None, f"{page.name}: a fence is not closed"
    return fences, lines


def fences(page: Path, language: str) -> list[str]:
    return [fence.text for fence in split(page)[0] if fence.language == language]


def spans(page: Path) -> list[str]:
    """Inline code."""
    return [match[1] for line in split(page)[1] for match in _SPAN.finditer(line)]


def code_of(cell: str) -> list[str]:
    return [match[1] for match in _SPAN.finditer(cell)]


def links(page: Path) -> list[str]:
    return [match[1] for line in split(page)[1] for match in _LINK.finditer(_SPAN.sub("", line))]


def anchors(page: Path) -> set[str]:
    """The names that a heading can be linked by."""
    titles = (line.lstrip("#").strip() for line in split(page)[1] if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def tables(page: Path) -> Iterator[Table]:
    heading, rows = "", list[list[str]]()
    for line in [*split(page)[1], ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if rows:
            yield Table(heading, rows[0], rows[2:])
            rows = []
        if line.startswith("#"):
            heading = line.lstrip("#").strip()


def table(page: Path, *header: str) -> Table:
    """The one table that begins with these columns."""
    [found] = [it for it in tables(page) if it.header[: len(header)] == list(header)]
    return found


def calls(page: Path) -> Iterator[list[str]]:
    """The words behind `blastdoor` wherever a page shows a call of it, up to the shell's next command."""
    blocks, _ = split(page)
    shown = [fence.text for fence in blocks if fence.language == "sh"]
    shown += ["\n".join(re.findall(r"^\$ (.*)$", fence.text, re.MULTILINE)) for fence in blocks if not fence.language]
    for text in [*shown, *spans(page)]:
        for line in text.replace("\\\n", " ").split("\n"):
            yield from _calls_in(line)


def _calls_in(line: str) -> Iterator[list[str]]:
    if not re.search(r"(?:^|[\s/])blastdoor(?:\s|$)", line):
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    for at, word in enumerate(words):
        if word.rpartition("/")[2] == "blastdoor":
            rest = words[at + 1 :]
            end = next(
                (at for at, other in enumerate(rest) if set(other) <= set("|&;<>()") or other == "--"), len(rest)
            )
            # A chamber's first word is `blastdoor 1`, which is no call.
            if not rest[:1] or not rest[0].isdigit():
                yield rest[:end]
