"""Read whole files: fenced blocks that each carry a path, or the one file that the task lets an agent write.

A fence inside a file ends the block too early, and nobody can tell where; whatever hints at that is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.change.edits import Edit, Kind
from orchestrator.change.labels import Fence, fence, path_in_info, path_line
from orchestrator.change.refusal import Reason, Refusal
from orchestrator.text import shown


@dataclass(frozen=True)
class Block:
    path: str | None
    info: str
    content: Sequence[bytes]


def parse_whole(lines: Sequence[bytes], only: str | None) -> tuple[Edit, ...]:
    blocks = read_blocks(lines)
    if not blocks:
        if only is None:
            raise Refusal(Reason.NO_PATH, "no fenced block with a path")
        return (_write(only, lines),)
    labelled = [block for block in blocks if block.path is not None]
    if not labelled:
        if only is None:
            raise Refusal(Reason.NO_PATH, "no fenced block has a path")
        if len(blocks) > 1:
            raise Refusal(Reason.AMBIGUOUS, f"{len(blocks)} fenced blocks, and none has a path")
        return (_write(only, blocks[0].content),)
    if any(block.path is None and not block.info for block in blocks):
        raise Refusal(Reason.AMBIGUOUS, "a fenced block without path or language", _LONGER)
    edits = {block.path: _write(block.path, block.content) for block in labelled if block.path is not None}
    if len(edits) != len(labelled):
        raise Refusal(Reason.PATH_TWICE, "two fenced blocks have the same path")
    return tuple(edits.values())


def whole_file(path: str, text: str) -> str:
    """A file as a change that this module reads back, whatever fences it holds."""
    inside = max((len(mark) for mark in re.findall(r"^`+", text, re.MULTILINE)), default=0)
    around = "`" * max(3, inside + 1)
    return f"file: {path}\n{around}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{around}\n"


_LONGER = "label every block, and where a file holds fences itself put a longer one around it"


def read_blocks(lines: Sequence[bytes]) -> list[Block]:
    """Every fenced block with its label, which stands behind the fence or alone on the line above."""
    blocks: list[Block] = []
    label: str | None = None
    at = 0
    while at < len(lines):
        opening = fence(lines[at])
        if opening is None:
            label = path_line(lines[at]) if lines[at].strip() else label
            at += 1
            continue
        end = _closing(lines, at, opening)
        path = path_in_info(opening.info)
        if path and label and path != label:
            raise Refusal(Reason.AMBIGUOUS, f"line {at + 1}: labelled {shown(label)} and {shown(path)}")
        blocks.append(Block(path or label, opening.info, lines[at + 1 : end]))
        label, at = None, end + 1
    return blocks


def _closing(lines: Sequence[bytes], start: int, opening: Fence) -> int:
    for at in range(start + 1, len(lines)):
        inner = fence(lines[at])
        if inner is None or not inner.is_at_least(opening):
            continue
        if inner.closes(opening):
            return at
        raise Refusal(Reason.AMBIGUOUS, f"line {at + 1}: a fence inside a fence", _LONGER)
    raise Refusal(Reason.MALFORMED, f"line {start + 1}: a fenced block without its end")


def _write(path: str, content: Sequence[bytes]) -> Edit:
    return Edit(Kind.WRITE, path, data=b"".join(line + b"\n" for line in content))
