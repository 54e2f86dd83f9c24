"""The ways in which an agent's change can be wrong: a closed list, each with what to do about it.

The agent reads the message, and so do people, so whatever it quotes of the agent's text is escaped and short.
"""

import unicodedata
from enum import StrEnum

from orchestrator.text import shown


class Reason(StrEnum):
    TEXT_TOO_LONG = "text too long"
    NOT_TEXT = "not text"
    NOTHING_FOUND = "no change found"
    AMBIGUOUS = "ambiguous"
    MALFORMED = "malformed"
    NO_PATH = "no path given"
    BINARY = "binary change"
    SYMLINK = "symbolic link"
    SUBMODULE = "submodule"
    MODE = "mode not allowed"
    TOO_MANY_FILES = "too many files"
    TOO_MANY_HUNKS = "too many hunks"
    PATH_TOO_LONG = "path too long"
    PATH_TWICE = "path given twice"
    NAME_UNSAFE = "unsafe name"
    NAME_RESERVED = "reserved name"
    NOT_EDITABLE = "not editable"
    FILE_MISSING = "no such file"
    FILE_EXISTS = "file exists"
    CONTEXT_MISSING = "lines not found"
    CONTEXT_AMBIGUOUS = "lines found more than once"
    OVERLAP = "hunks overlap"
    DELETION_INCOMPLETE = "deletion leaves lines"
    FILE_AND_FOLDER = "both file and folder"
    CASE_COLLISION = "name differs by case only"
    ATTRIBUTE_FILTER = "attributes that run programs"
    FILE_TOO_LARGE = "file too large"
    TOO_MANY_BYTES = "too many bytes"
    TOO_MANY_LINES = "too many lines"
    TOO_COSTLY = "too costly"
    NO_EFFECT = "change has no effect"
    NO_POINT = "no point of the space"

    @property
    def advice(self) -> str:
        return _ADVICE[self]


_ADVICE = {
    Reason.TEXT_TOO_LONG: "send a smaller change",
    Reason.NOT_TEXT: "send UTF-8 text without NUL",
    Reason.NOTHING_FOUND: "send a unified diff, search/replace blocks or whole files, as you were asked",
    Reason.AMBIGUOUS: "send one form only, and write it so that it can be read in one way",
    Reason.MALFORMED: "check the form and send the change again, complete",
    Reason.NO_PATH: "write the file's path alone on the line above the block",
    Reason.BINARY: "change text files only",
    Reason.SYMLINK: "write a plain file",
    Reason.SUBMODULE: "write plain files",
    Reason.MODE: "leave the file's mode as it is",
    Reason.TOO_MANY_FILES: "touch fewer files",
    Reason.TOO_MANY_HUNKS: "send fewer hunks, or the whole file",
    Reason.PATH_TOO_LONG: "choose a shorter path",
    Reason.PATH_TWICE: "name each file once",
    Reason.NAME_UNSAFE: "use a plain relative path inside the workspace",
    Reason.NAME_RESERVED: "tools read files of this name on their own; choose another",
    Reason.NOT_EDITABLE: "choose an editable path",
    Reason.FILE_MISSING: "name an existing file, or create this one",
    Reason.FILE_EXISTS: "change the file that is there, or choose another path",
    Reason.CONTEXT_MISSING: "copy the old lines exactly as they stand in the file before this change",
    Reason.CONTEXT_AMBIGUOUS: "give more of the unchanged lines around the change",
    Reason.OVERLAP: "join the hunks that touch the same lines",
    Reason.DELETION_INCOMPLETE: "delete every line, or leave out the hunks",
    Reason.FILE_AND_FOLDER: "choose a path that is not a file and a folder at once",
    Reason.CASE_COLLISION: "use the spelling that is there, or another name",
    Reason.ATTRIBUTE_FILTER: "leave out filter, diff, merge and encoding attributes",
    Reason.FILE_TOO_LARGE: "write a smaller file",
    Reason.TOO_MANY_BYTES: "write less in one change",
    Reason.TOO_MANY_LINES: "send a smaller change, or one of files with fewer lines",
    Reason.TOO_COSTLY: "send a smaller change",
    Reason.NO_EFFECT: "change something",
    Reason.NO_POINT: "propose values of parameters.space",
}


class Refusal(Exception):
    """The change was not taken. Always the agent's doing; nothing was changed."""

    def __init__(self, reason: Reason, about: str, advice: str = "") -> None:
        """`about` and `advice` must be ours, or have gone through `shown`."""
        super().__init__(f"{reason}: {about}; {advice or reason.advice}")
        self.reason = reason
        self.about = about


def shown_path(path: str) -> str:
    """A path as it is written, and its first character that only looks like one of a keyboard's."""
    place, strange = next(((at, one) for at, one in enumerate(path, 1) if not one.isascii()), (0, ""))
    if not strange:
        return shown(path)
    name = unicodedata.name(strange, "a character without a name")
    return f"{shown(path)} (character {place} is not ASCII: U+{ord(strange):04X}, {name})"
