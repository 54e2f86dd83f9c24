"""Exit codes, the same for every command but the gate, which has its own."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    NOT_GOOD = 1
    BAD_INPUT = 2
    NO_ENGINE = 3
    INTERRUPTED = 130


# The table of docs/commands.md.
MEANINGS = {
    Exit.OK: (
        "all is well: a rule stopped the campaign, the task is ready, the score stands, every row holds,"
        " every attack was blocked, the judge held"
    ),
    Exit.NOT_GOOD: (
        "the answer is no: too many attempts in a row ended free, the task is not ready, the score does not stand,"
        " a guard does not pass, the chain is broken, an attack succeeded, a judge can be cheated; or the reader of our"
        " output closed it before the end"
    ),
    Exit.BAD_INPUT: (
        "bad input, or our own policy refused: the line says what to change; or a fault of our own, with its trace"
    ),
    Exit.NO_ENGINE: (
        "no engine or provider answers, or it does not let us in; or it failed part-way, for example when `reap`"
        " could not remove something"
    ),
    Exit.INTERRUPTED: "interrupted",
}
