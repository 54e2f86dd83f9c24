"""Words of programs and of other models, made fit for a prompt: data that cannot leave its frame.

A frame is a pair of tags whose name ends with a mark. The mark stands nowhere inside it, so what is inside can neither
close the frame nor open another; it is the same for the same text, so that a prompt can be cached.
"""

import hashlib
import json
from collections.abc import Iterable

from orchestrator.text import printable_lines, short

DIGITS = 4
_BYTES_A_TOKEN = 3
_MARK = 10


def tokens(text: str) -> int:
    """How many tokens a text has at most, about: English and code have fewer, other scripts hardly more."""
    raw = len(text.encode())
    plain = sum(map(str.isascii, text)) if not text.isascii() else raw
    return -(-plain // _BYTES_A_TOKEN) + raw - plain


def figure(value: float) -> str:
    """A score as a model may know it: enough to see a difference, too little to read single bits of the gold from."""
    return f"{value:.{DIGITS}g}"


def quoted(text: str, limit: int) -> str:
    """Somebody's words as one line in quotes. No tag, no fence and no quote of theirs is left in it."""
    shown = json.dumps(short(text, limit), ensure_ascii=False)
    return "".join(_INSTEAD.get(one, one) for one in shown)


def mark_for(base: str, texts: Iterable[str]) -> str:
    """A mark that is in none of the texts; the same as for other texts, unless somebody wrote it there.

    Then it comes from the texts themselves, which cannot hold what they are hashed to.
    """
    inside = list(texts)
    for number in range(sum(map(len, inside)) + 1):
        mark = hashlib.sha256(f"{base}/{number}".encode()).hexdigest()[:_MARK]
        if not any(mark in text for text in inside):
            return mark
        base = hashlib.sha256("\0".join((base, *inside)).encode("utf-8", "surrogatepass")).hexdigest()
    raise AssertionError("a text cannot hold more marks than it has letters")


def framed(name: str, mark: str, body: str, about: str = "") -> str:
    return f"<{name}-{mark}{f' {about}' if about else ''}>\n{body.removesuffix(chr(10))}\n</{name}-{mark}>"


def shown_file(data: bytes) -> tuple[str, int] | None:
    """A file's lines as they can be shown, and how many of them are not as they stand; None for what is no text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    shown = list(printable_lines(text)) or [""]
    return "\n".join(shown), sum(one != other for one, other in zip(lines, shown, strict=True))


_INSTEAD = {"<": "\\u003c", ">": "\\u003e", "`": "\\u0060"}
