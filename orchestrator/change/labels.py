"""Fences and the paths that label them, as language models write them."""

from dataclasses import dataclass

_FENCE_LENGTH = 3
_LONGEST_LABEL = 1024
_KEYS = ("path", "file", "filename")


@dataclass(frozen=True, slots=True)
class Fence:
    mark: bytes
    info: str

    def closes(self, opening: "Fence") -> bool:
        return not self.info and self.is_at_least(opening)

    def is_at_least(self, opening: "Fence") -> bool:
        return self.mark[:1] == opening.mark[:1] and len(self.mark) >= len(opening.mark)


def fence(line: bytes) -> Fence | None:
    """The fence in this line: three or more backticks or tildes at its very beginning."""
    for mark in (b"`", b"~"):
        if not line.startswith(mark * _FENCE_LENGTH):
            continue
        rest = line.lstrip(mark)
        length = len(line) - len(rest)
        if mark not in rest:
            return Fence(mark * length, rest.decode().strip())
    return None


def path_in_info(info: str) -> str | None:
    """The path in `python src/x.py`, `src/x.py`, `python:src/x.py` or `python path="src/x.py"`; a bare word is none."""
    _, space, rest = info.partition(" ")
    key, equals, value = rest.strip().partition("=")
    if equals:
        return value.strip("\"'") or None if key in _KEYS else None
    _, colon, after = info.partition(":")
    word = rest.strip() if space else after if colon else info
    return word if _looks_like_path(word) else None


def path_line(line: bytes) -> str | None:
    """The path that this line consists of, with or without decoration; prose has none."""
    if len(line) > _LONGEST_LABEL:
        return None
    text = line.decode().strip().lstrip("#").strip().strip("*").strip()
    key, colon, after = text.partition(":")
    named = bool(colon) and key.strip().lower() in _KEYS
    text = (after if named else text).strip().strip("*").strip().removesuffix(":")
    in_ticks = len(text) > 2 and text[0] == text[-1] == "`"
    text = text[1:-1] if in_ticks else text
    if "`" in text or not text:
        return None
    return text if named or in_ticks or _looks_like_path(text) else None


def _looks_like_path(text: str) -> bool:
    is_one_word = any(map(str.isalnum, text)) and not any(map(str.isspace, text))
    return is_one_word and ("/" in text or "." in text)
