"""What is told, and the contract of those that tell it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import BaseModel, JsonValue


class Topic(StrEnum):
    """What news can be about."""

    CHAMPION = "champion"
    ATTEMPT = "attempt"
    STOPPED = "stopped"
    WAITING = "waiting"
    BREAKER = "breaker"
    CAP = "cap"


# Without a list of its own, a target gets these: an attempt ends every few seconds.
USUAL = frozenset(Topic) - {Topic.ATTEMPT}


class News(BaseModel, extra="forbid", frozen=True):
    """`text` is one line for a person, `data` the same for a program. `run` and `node` are 0 and empty where it is
    about the campaign as a whole.
    """

    topic: Topic
    at: str
    campaign: str
    task: str
    run: int
    node: str = ""
    text: str
    data: dict[str, JsonValue] = {}


@dataclass(frozen=True)
class NotifierContext:
    """`where` is what stands after the `=`: an address, a command, a folder. It may be a secret."""

    where: str
    campaign: str
    task: str
    run: int


class Notifier(Protocol):
    """One target. It is made, called and closed in a process of its own; what it raises is told once, at the end.

    Its factory takes a NotifierContext. It may have `topics`, the topics that it gets where nobody says which,
    `variables`, names of the environment that it needs (`MLFLOW_*`), and `check(where)`, which raises ValueError with
    one line before the campaign begins.
    """

    def tell(self, news: News) -> None: ...

    def close(self) -> None: ...
