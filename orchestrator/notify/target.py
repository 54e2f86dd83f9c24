"""`webhook=https://…` or `webhook:champion,stopped=https://…`: who is told, what of, and where.

What stands after the `=` is often a secret: no message repeats it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from orchestrator.choices import NOTIFIERS
from orchestrator.notify.base import USUAL, Topic
from orchestrator.registry import ChoiceError, listed

FORM = "write NAME=WHERE, like webhook=https://example.org/hook or command=./tell.sh"


@dataclass(frozen=True)
class Target:
    name: str
    where: str = field(repr=False)
    topics: frozenset[Topic]
    variables: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with one line for a person. Loads the notifier, but not the library that it uses."""
        head, equals, where = text.partition("=")
        name, colon, topics = head.partition(":")
        if not (equals and name.strip() and where.strip()) or "//" in head:
            raise ValueError(FORM)
        try:
            factory = NOTIFIERS.load(name.strip())
        except ChoiceError as error:
            raise ValueError(f"the notifier {error}" if "must be" in str(error) else str(error)) from None
        check: Callable[[str], None] | None = getattr(factory, "check", None)
        if check:
            check(where.strip())
        asked = _topics(topics) if colon else frozenset(getattr(factory, "topics", USUAL))
        return cls(name.strip(), where.strip(), asked, tuple(getattr(factory, "variables", ())))


def _topics(text: str) -> frozenset[Topic]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in list(Topic):
            raise ValueError(f'a topic must be {listed(list(Topic))}, not "{name}"')
    return frozenset(Topic(name) for name in names)
