"""The ways in which a chamber's bytes can be wrong: a closed list, so that nothing else ever comes out of a parser."""

from enum import StrEnum


class Fault(StrEnum):
    LOG_OVERFLOW = "log overflow"
    OUT_OF_TURN = "out of turn"
    LINE_TOO_LONG = "line too long"
    ENDED_EARLY = "ended early"
    FRAME_OVERSIZED = "frame oversized"
    FRAME_LATE = "frame late"
    FRAME_EXTRA = "frame extra"
    FRAME_NONCE = "frame with a wrong nonce"
    FRAME_LIMIT = "too many frames"
    ARCHIVE_MALFORMED = "archive malformed"
    ARCHIVE_TRUNCATED = "archive truncated"
    ARCHIVE_TRAILING = "bytes after the archive"
    ENTRY_KIND = "entry that is no plain file"
    ENTRY_NAME = "unsafe entry name"
    ENTRY_TWICE = "entry given twice"
    TOO_MANY_FILES = "too many files"
    TOO_MANY_BYTES = "too many bytes"

    @property
    def is_about_outputs(self) -> bool:
        return self.name.startswith(("ARCHIVE", "ENTRY", "TOO"))


class WireFault(Exception):
    """A chamber sent what it must not send. Always the candidate's doing, never the provider's."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail
