"""A campaign of any length in a moment's reading: how many nodes of each sort there are, and the names of the others.

Most nodes of a long campaign are over, and nothing is to be said of them but how they ended: those are *plain*, and are
counted by their sort. All others are *notable*, and named. Both are kept up with every change of a node and written
with it, so one who asks where a campaign stands reads some rows, and not all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, Field

from orchestrator.domain.ending import Ending
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Phase, Role

# Raised with what is told apart, or is plain: a census of another form is taken again.
_FORM = 1
# More than are ever shown: one that a person has queued again is no longer among them.
_LAST = 10


class SortVerdict(NamedTuple):
    cohort: str
    suspect: tuple[str, ...]


class Sort(NamedTuple):
    """What plain nodes are told apart by. Fields as a Node has them: whatever looks at those can look at this."""

    run: int
    role: Role
    ending: Ending
    kept: bool
    verdict: SortVerdict | None

    @property
    def phase(self) -> Phase:
        return Phase.ENDED


def sort_key(node: AnyNode) -> str | None:
    """The sort of a plain node, as text; None for a notable one."""
    if node.phase is not Phase.ENDED or node.ending is None or node.trials > 1 or node.asking is not None:
        return None
    if node.finding or node.certification or node.measured or node.heldout:
        return None
    if node.role in (Role.BASELINE, Role.MINIMISED):
        return None
    return None if node.verdict and node.verdict.tasks else sort_text(node)


def sort_text(node: AnyNode) -> str:
    """Of any node that has an ending."""
    verdict, kept = node.verdict, "kept" if node.kept else ""
    if verdict is None:
        return f"{run_of(node.id)}/{node.role}/{node.ending}/{kept}"
    suspect = "suspect" if verdict.suspect else ""
    return f"{run_of(node.id)}/{node.role}/{node.ending}/{kept}/{suspect}/{verdict.cohort}"


def read_sort(key: str) -> Sort:
    run, role, ending, kept, *judged = key.split("/", 5)
    verdict = SortVerdict(judged[1], (judged[0],) if judged[0] else ()) if judged else None
    return Sort(int(run), Role(role), Ending(ending), bool(kept), verdict)


class Notable(BaseModel, frozen=True):
    """A node that is not counted, by its name. A later version may say more of it. `dotted`: it has a dot."""

    role: Role
    dotted: bool = False


class Census(BaseModel, frozen=True):
    """`plain` has a count for each sort, `last` the nodes that ended last. It holds for the session `epoch`: one of an
    older version, which keeps none, leaves it behind. One of a later version may have another form, and say more.
    `dotted`: dots of nodes are kept as well; an older version, which keeps none, leaves that out.
    """

    form: int = _FORM
    epoch: int = 0
    plain: dict[str, int] = Field(default_factory=dict)
    last: tuple[str, ...] = ()
    dotted: bool = False

    def holds_for(self, epoch: int) -> bool:
        return (self.form, self.epoch) == (_FORM, epoch)

    def after(self, before: AnyNode | None, node: AnyNode) -> "Census":
        """As it is once a node has changed; it itself where that makes no difference."""
        was, now = sort_key(before) if before else None, sort_key(node)
        plain, last = self.plain, self.last
        if was != now:
            counts = Counter(plain)
            counts.update([now] if now else [])
            counts.subtract([was] if was else [])
            plain = {key: count for key, count in counts.items() if count}
        had_ended = before is not None and before.phase is Phase.ENDED
        if (node.phase is Phase.ENDED) != had_ended or (before and before.ended_place != node.ended_place):
            last = tuple([name for name in last if name != node.id])
            last = (*last, node.id)[-_LAST:] if node.phase is Phase.ENDED else last
        if (plain, last) == (self.plain, self.last):
            return self
        return self.model_copy(update={"plain": plain, "last": last})


@dataclass(frozen=True)
class Counted:
    """`notable` are in the order in which they were opened."""

    plain: Mapping[Sort, int]
    notable: Sequence[AnyNode]
    last: Sequence[str]

    @classmethod
    def of(cls, census: Census, notable: Iterable[AnyNode]) -> "Counted":
        plain = {read_sort(key): count for key, count in census.plain.items()}
        return cls(plain, sorted(notable, key=lambda node: node.opened_place), census.last)

    def of_run(self, run: int) -> "Counted":
        plain = {sort: count for sort, count in self.plain.items() if sort.run == run}
        notable = [node for node in self.notable if run_of(node.id) == run]
        return Counted(plain, notable, [name for name in self.last if run_of(name) == run])

    def last_ended(self, most: int) -> Sequence[str] | None:
        """The names of those that ended last; None where it does not know them all."""
        ended = sum(self.plain.values()) + sum(node.phase is Phase.ENDED for node in self.notable)
        return self.last[-most:] if len(self.last) >= min(most, ended) else None


def take_census(nodes: Iterable[AnyNode], epoch: int = 0) -> tuple[Census, list[AnyNode]]:
    """Of all nodes, with those that are notable."""
    plain: Counter[str] = Counter()
    notable: list[AnyNode] = []
    ended: list[AnyNode] = []
    for node in nodes:
        if key := sort_key(node):
            plain[key] += 1
        else:
            notable.append(node)
        if node.phase is Phase.ENDED:
            ended.append(node)
    last = sorted(ended, key=lambda node: node.ended_place)[-_LAST:]
    return Census(epoch=epoch, plain=dict(plain), last=tuple(node.id for node in last)), notable
