"""Names as git writes them in a diff: in C quotes where they hold anything but plain characters."""

from orchestrator.change.refusal import Reason, Refusal
from orchestrator.text import shown

_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPES = {code: f"\\{letter}" for letter, code in _LETTERS.items()}


def quoted(name: str) -> str:
    """The name itself, or in quotes where it could be read as another."""
    if name.isprintable() and not any(character in name for character in '"\\'):
        return name
    raw = name.encode("utf-8", "surrogatepass")
    return (
        '"' + "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in raw) + '"'
    )


def unquoted(name: str) -> str:
    """Without its quotes. Raises Refusal for what goes on after them, which git would leave away."""
    if not name.startswith('"'):
        return name
    if len(name) < 2 or not name.endswith('"'):
        raise Refusal(Reason.NAME_UNSAFE, shown(name))
    body, raw, at = name[1:-1], bytearray(), 0
    while at < len(body):
        if body[at] == '"':
            raise Refusal(Reason.NAME_UNSAFE, shown(name))
        if body[at] != "\\":
            raw += body[at].encode()
            at += 1
            continue
        code, width = _escape(body[at + 1 : at + 4])
        if not width:
            raise Refusal(Reason.NAME_UNSAFE, shown(name))
        raw.append(code)
        at += 1 + width
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Refusal(Reason.NAME_UNSAFE, shown(name)) from None


def _escape(following: str) -> tuple[int, int]:
    """The byte that an escape stands for and the characters it takes; a width of zero means there is none."""
    if following[:1] in _LETTERS:
        return _LETTERS[following[0]], 1
    if len(following) == 3 and following[0] in "0123" and all(digit in "01234567" for digit in following):
        return int(following, 8), 3
    return 0, 0
