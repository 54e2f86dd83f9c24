"""What can go wrong with what is kept. The message is one line for a person.

LedgerError
├─ Missing        nothing is there yet, or no longer
├─ Exists         something is there already
├─ NotALedger     it was not written by us
├─ NewerVersion   it was written by a later version of us
├─ Replaced       it is another one than was looked at
├─ Corrupt        it is not what was written
│  ├─ ChainBroken   a record, and what is wrong with it
│  └─ Forged        rows are not what the events add up to
├─ Fenced         another orchestrator took the campaign over
├─ Held           another orchestrator works on the campaign
├─ Busy           another process keeps the database locked
├─ Away           the database cannot be reached; what was written before is whole
├─ ReadOnly       it cannot be written
└─ Full           no space is left; what was written before is whole
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LedgerError(Exception):
    """Base of all errors of this package."""


class Missing(LedgerError):
    """Nothing is there yet, or no longer."""


class Exists(LedgerError):
    """Something is there already."""


class NotALedger(LedgerError):
    """It was not written by us."""


class NewerVersion(LedgerError):
    """It was written by a later version of us."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(
            f"{what} was written by a newer version (schema {found}, this one knows {known}); upgrade blastdoor"
        )


class Replaced(LedgerError):
    """It is another one than was looked at."""


class Corrupt(LedgerError):
    """It is not what was written."""


class ChainBroken(Corrupt):
    """The first record that is not what was written, or is not there."""

    def __init__(self, seq: int, why: str) -> None:
        super().__init__(f"the ledger was changed or damaged at record {seq}: {why}; keep it, and go back to a copy")
        self.seq = seq
        self.why = why


class Forged(Corrupt):
    """Rows are not what the events add up to: somebody changed them beside the chain."""


class Fenced(LedgerError):
    """Another orchestrator took the campaign over; this one must stop."""


class Held(LedgerError):
    """Another orchestrator works on the campaign."""


class Busy(LedgerError):
    """Another process keeps the database locked."""


class Away(LedgerError):
    """The database cannot be reached, or went away and did not come back in time."""


class ReadOnly(LedgerError):
    """It cannot be written."""


class Full(LedgerError):
    """No space is left. What was being written is not there; what was written before is whole."""

    def __init__(self, where: Path | str) -> None:
        super().__init__(f"no space left for {where}: free some and resume; nothing was lost")


@contextmanager
def translating_os_errors(where: Path) -> Iterator[None]:
    """A full disk is `Full`; all else that the operating system refuses is a LedgerError."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise Full(where) from error
        raise LedgerError(f"{where}: {error.strerror or error}") from error
