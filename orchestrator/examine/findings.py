"""What `check` finds, one row a truth: good, worth a look, or broken, with what to do about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Sign(StrEnum):
    """`note` tells something that is neither good nor bad."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "fail"


class Section(StrEnum):
    """In the order in which they are examined."""

    WIRING = "wiring"
    NOISE = "noise"
    COST = "cost"
    PROFILE = "profile"
    CHEATS = "cheats"
    JUDGE = "judge's code"
    GOLD = "gold"


@dataclass(frozen=True)
class Row:
    """`log` is what a program said, raw: a view that shows it escapes it. `facts` are for machines."""

    section: Section
    sign: Sign
    text: str
    advice: str = ""
    log: bytes = b""
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass
class Findings:
    """All rows so far; `heard` is told of each as it comes, `doing` of what takes a while."""

    heard: Callable[[Row], None] = lambda _: None
    doing: Callable[[str], None] = lambda _: None
    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        section: Section,
        sign: Sign,
        text: str,
        advice: str = "",
        *,
        log: bytes = b"",
        facts: Mapping[str, object] | None = None,
    ) -> None:
        row = Row(section, sign, text, advice, log, facts or {})
        self.rows.append(row)
        self.heard(row)

    def count(self, sign: Sign) -> int:
        return sum(row.sign is sign for row in self.rows)

    @property
    def good(self) -> bool:
        """Whether nothing is broken; a warning breaks nothing."""
        return not self.count(Sign.FAIL)
