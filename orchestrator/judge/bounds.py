"""How large a judge's result may be, and the ways in which it can be wrong: a closed list.

A judge is trusted, but it has just read what a candidate wrote: its result is bounded like anything else that comes
through the door. Only the code of a refusal may reach an agent. The detail can quote the judge, and the judge knows
the answers, so the detail is for the user.
"""

from dataclasses import dataclass
from enum import StrEnum


class ResultFault(StrEnum):
    MISSING = "no result"
    EMPTY = "result claimed but never written"
    TOO_LARGE = "result too large"
    NOT_UTF8 = "result is not UTF-8"
    NOT_JSON = "result is not JSON"
    TOO_DEEP = "result nested too deeply"
    DUPLICATE_KEY = "result has a key twice"
    NUMBER_TOO_LONG = "number too long"
    NOT_FINITE = "number not finite"
    NOT_OBJECT = "result is not an object"
    NO_SCORE = "no score"
    SCORE_NOT_NUMBER = "score is not a number"
    SCORE_NOT_FINITE = "score is not finite"
    BAD_FIELD = "a field of the result is wrong"
    BAD_METRICS_CSV = "metrics.csv is wrong"


class ResultRefused(Exception):
    """What the judge gave back is no result. `where` is the path of keys to the culprit, as far as it is known."""

    def __init__(self, code: ResultFault, detail: str, where: tuple[str, ...] = ()) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.where = where


@dataclass(frozen=True)
class Caps:
    """Of one result. Counts of characters where text is kept, of bytes where it is read."""

    result_bytes: int = 1 << 20
    depth: int = 32
    digits: int = 400
    name_characters: int = 200
    metrics: int = 256
    tasks: int = 10_000
    notes_characters: int = 4_000
    traces: int = 1_000
    trace_bytes: int = 256 << 10
    traces_bytes: int = 8 << 20
    log_characters: int = 20_000
    csv_bytes: int = 4 << 20
    csv_rows: int = 100_000
    csv_columns: int = 64


DEFAULT_CAPS = Caps()
