"""Which names a change may use at all, whatever the task allows.

A name that is harmless here may be another one on the next machine: file systems that ignore case, trailing dots or
invisible characters, short names, streams and devices of Windows. Such names are refused everywhere.
"""

import unicodedata

from orchestrator.change.refusal import Reason, Refusal, shown_path
from orchestrator.text import is_plain, shown

PART_BYTES = 255

_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"]
)
_SPECIAL = frozenset(
    [
        ".gitmodules",
        ".gitattributes",
        ".gitignore",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
    ]
)
_LOADED_UNASKED = frozenset(["conftest", "sitecustomize", "usercustomize"])
_SUFFIXES = (".pth", "._pth")


def folded(path: str) -> str:
    """One spelling for all that a file system without case, or with another normal form, takes for the same."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", path).casefold())


def check_name(path: str) -> None:
    """Refuse a path that could leave the tree, or be another than it looks, on any machine."""
    parts = path.split("/")
    safe = is_plain(path) and unicodedata.is_normalized("NFC", path) and all(map(_is_safe_part, parts))
    if not safe:
        raise Refusal(Reason.NAME_UNSAFE, shown_path(path))
    if any(_is_repository(part) for part in parts):
        raise Refusal(Reason.NAME_RESERVED, shown(path))


def is_special(path: str) -> bool:
    """Whether some tool reads or runs a file of this name unasked; only its exact path makes it editable."""
    return any(_is_special_part(folded(part)) for part in path.split("/"))


def is_attributes(path: str) -> bool:
    return folded(path.rpartition("/")[2]) == ".gitattributes"


def _is_safe_part(part: str) -> bool:
    stem = folded(part.partition(".")[0].rstrip(" "))
    return (
        part not in ("", ".", "..")
        and not part.startswith(("-", " "))
        and not part.endswith((".", " "))
        and not any(character in part for character in "\\:")
        and stem not in _DEVICES
        and len(part.encode()) <= PART_BYTES
    )


def _is_repository(part: str) -> bool:
    """`.git`, or a short name that Windows may have given to it or to one of its companions (GIT~1, GI7EBA~1)."""
    name = folded(part)
    return name == ".git" or (name.startswith("gi") and "~" in name)


def _is_special_part(name: str) -> bool:
    return name in _SPECIAL or name.partition(".")[0] in _LOADED_UNASKED or name.endswith(_SUFFIXES)
