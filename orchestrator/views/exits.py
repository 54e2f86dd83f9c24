"""Exit codes, the same for every command."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    NOT_GOOD = 1
    BAD_INPUT = 2
    NO_ENGINE = 3
    INTERRUPTED = 130
