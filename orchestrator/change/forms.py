"""From an agent's text to a change. Linear in the text, and its bytes and lines have caps that are
asked before anything else."""

from collections.abc import Sequence

from orchestrator.change.blocks import REPLACE, SEARCH, parse_blocks
from orchestrator.change.edits import Change, Edit, Form
from orchestrator.change.headers import starts_section
from orchestrator.change.labels import fence
from orchestrator.change.policy import DEFAULT_CAPS, Caps
from orchestrator.change.refusal import Reason, Refusal
from orchestrator.change.unified import parse_unified
from orchestrator.change.whole import parse_whole, read_blocks
from orchestrator.units import format_size


def parse(
    text: str | bytes,
    form: Form = Form.AUTO,
    *,
    caps: Caps = DEFAULT_CAPS,
    only: str | None = None,
    exact: bool = False,
) -> Change:
    """What the text says; `only` is the file that a block without a path means. With `exact`, the counts of a diff must
    be right, as they are where a machine wrote it. Raises Refusal and nothing else.
    """
    lines = _lines(text, caps)
    if form is Form.AUTO:
        form = _detect(lines, only)
    if exact and form is Form.UNIFIED:
        lines = _lines(text, caps, as_it_is=True)
    elif exact and any(starts_section(lines, at) for at in range(len(lines))):
        raise Refusal(Reason.AMBIGUOUS, f"git would read a diff within the {form}")
    edits: tuple[Edit, ...]
    match form:
        case Form.UNIFIED:
            if exact and text[-1:] not in ("\n", b"\n"):
                raise Refusal(Reason.MALFORMED, "the text ends within a line; it may be cut off")
            edits = parse_unified(lines, caps.hunks, exact=exact)
        case Form.BLOCKS:
            edits = parse_blocks(lines, caps.hunks, only)
        case _:
            edits = parse_whole(lines, only)
    if not edits:
        raise Refusal(Reason.NOTHING_FOUND, f"no {form} in the text")
    if len(edits) > caps.files:
        raise Refusal(Reason.TOO_MANY_FILES, f"{len(edits)} files, at most {caps.files} are allowed")
    return Change(form, edits)


def _lines(text: str | bytes, caps: Caps, *, as_it_is: bool = False) -> list[bytes]:
    cap = caps.text_bytes
    if len(text) > cap:
        raise Refusal(Reason.TEXT_TOO_LONG, f"more than {format_size(cap)}")
    try:
        raw = text.encode() if isinstance(text, str) else text
        raw.decode()
    except UnicodeError:
        raise Refusal(Reason.NOT_TEXT, "the text is not UTF-8") from None
    if len(raw) > cap:
        raise Refusal(Reason.TEXT_TOO_LONG, f"more than {format_size(cap)}")
    if b"\0" in raw:
        raise Refusal(Reason.NOT_TEXT, "the text has a NUL in it")
    if (count := raw.count(b"\n")) > caps.text_lines:
        raise Refusal(Reason.TOO_MANY_LINES, f"{count} lines of text, at most {caps.text_lines} are allowed")
    raw = raw if as_it_is else raw.removeprefix(b"\xef\xbb\xbf")  # to git it is a part of the first line
    if not raw.strip():
        raise Refusal(Reason.NOTHING_FOUND, "the text is empty")
    if raw.count(b"\n") == raw.count(b"\r\n") and not as_it_is:
        raw = raw.replace(b"\r\n", b"\n")  # some transport's doing: a diff of such a file still has plain headers
    lines = raw.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _detect(lines: Sequence[bytes], only: str | None) -> Form:
    found = {form for form in (Form.BLOCKS, Form.UNIFIED) if _has_marker(lines, form)}
    try:
        if _has_whole_files(lines, only):
            found.add(Form.WHOLE)
    except Refusal:
        if not found:  # a fence that goes wrong around another form does no harm
            raise
    if not found:
        raise Refusal(Reason.NOTHING_FOUND, "no diff, no search/replace block and no fenced file with a path")
    if len(found) > 1:
        raise Refusal(Reason.AMBIGUOUS, f"it could be {' or '.join(sorted(found))}")
    return found.pop()


def _has_marker(lines: Sequence[bytes], form: Form) -> bool:
    """Whether a block starts somewhere, or, outside all blocks, a diff."""
    inside = False
    for at, line in enumerate(lines):
        if line.rstrip() == SEARCH:
            if form is Form.BLOCKS:
                return True
            inside = True
        elif line.rstrip() == REPLACE:
            inside = False
        elif form is Form.UNIFIED and not inside and _starts_diff(lines, at):
            return True
    return False


def _starts_diff(lines: Sequence[bytes], at: int) -> bool:
    return starts_section(lines, at) or lines[at].startswith((b"@@ -", b"GIT binary patch"))


def _has_whole_files(lines: Sequence[bytes], only: str | None) -> bool:
    """Whether a labelled block holds a file, and not a change in another form."""
    if not any(fence(line) for line in lines):
        return False
    if any(line.rstrip() == SEARCH for line in lines):
        lines = _outside_blocks(lines)
    blocks = read_blocks(lines)
    single = only is not None and len(blocks) == 1
    return any((single or block.path is not None) and _holds_file(block.content) for block in blocks)


def _outside_blocks(lines: Sequence[bytes]) -> list[bytes]:
    outside: list[bytes] = []
    inside = False
    for line in lines:
        if line.rstrip() == SEARCH:
            inside = True
            outside.append(line)
        elif line.rstrip() == REPLACE:
            inside = False
        elif not inside:
            outside.append(line)
    return outside


def _holds_file(content: Sequence[bytes]) -> bool:
    first = next((at for at, line in enumerate(content) if line.strip()), None)
    return first is None or not (content[first].rstrip() == SEARCH or _starts_diff(content, first))
