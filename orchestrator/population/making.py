"""How each parent rule is made."""

import structlog

from orchestrator.population.archive import Archive
from orchestrator.population.base import Member, ParentContext, ParentRule
from orchestrator.population.rules import Best, BestAtTasks, Novelty, Several, Tournament
from orchestrator.registry import told

_log = structlog.get_logger()


def champion(_: ParentContext) -> ParentRule:
    return Best()


def tasks(_: ParentContext) -> ParentRule:
    return BestAtTasks()


def tournament(_: ParentContext) -> ParentRule:
    return Tournament()


def novelty(_: ParentContext) -> ParentRule:
    return Novelty()


def archive(context: ParentContext) -> ParentRule:
    return Archive(context)


def drawn(context: ParentContext) -> ParentRule:
    """All of the others, as arms of a slot."""
    makers = (champion, tasks, tournament, novelty, archive)
    return Several({make.__name__: make(context) for make in makers})


class Outside:
    """A rule that others wrote. Where it fails, or names no member, the best of the island is built on."""

    def __init__(self, rule: ParentRule, who: str) -> None:
        self._rule = rule
        self._who = who
        self._members: set[str] = set()
        self._failed = False
        for name in ("add", "draw"):
            if not hasattr(rule, name):
                raise TypeError(f"it has no {name}, which a parent rule needs")

    def add(self, member: Member) -> None:
        self._members.add(member.node)
        try:
            self._rule.add(member)
        except Exception as error:  # noqa: BLE001  somebody else's code, without which the search goes on
            self._complain(error)

    def draw(self, seed: str) -> str | None:
        try:
            found = self._rule.draw(seed)
        except Exception as error:  # noqa: BLE001  as above
            self._complain(error)
            return None
        return found if found in self._members else None

    def _complain(self, error: Exception) -> None:
        if not self._failed:
            _log.warning(f"{self._who} failed, so branches start at the best", error=told(error))
        self._failed = True
