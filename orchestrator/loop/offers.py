"""What proposals come to: their trees, by which digests those are known, and what is too much like them to be run."""

from dataclasses import dataclass

from orchestrator.change import Reason, Refusal, Tree, shown
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import LikenessRecord, Node
from orchestrator.loop.candidate import known_as, object_in
from orchestrator.loop.history import History
from orchestrator.loop.workbench import Workbench
from orchestrator.offload import offload
from orchestrator.population.likeness import Likeness, alike, likeness, written
from orchestrator.task import is_in, takes

_SMALL_BYTES, _SMALL_FILES = 32_768, 64


@dataclass(frozen=True)
class Offer:
    """The digest of the tree that a proposal makes, or why it is refused, and its text in the store. `known_as` is the
    digest of the same tree in our own writing, where that is another one.
    """

    tree: str | None
    refused: str | None
    change: str | None
    known_as: str | None = None
    likeness: Likeness | None = None

    @property
    def digest(self) -> str | None:
        return self.known_as or self.tree


async def read_offer(bench: Workbench, tree: Tree, proposal: Proposal) -> Offer:
    if proposal.text is None and is_small(tree):
        return _read_here(bench, tree, proposal)
    return await offload(_read_here, bench, tree, proposal)


def is_small(tree: Tree) -> bool:
    """Whether a point of such a tree is read, or put there, sooner than a thread is asked to."""
    return len(tree) <= _SMALL_FILES and sum(len(file.data) for file in tree.values()) < _SMALL_BYTES


def refusal_of(bench: Workbench, tree: Tree, proposal: Proposal) -> str | None:
    """Why a proposal is refused; None for one that is not."""
    return _made_of(bench, tree, proposal)[1]


def _read_here(bench: Workbench, tree: Tree, proposal: Proposal) -> Offer:
    made, refused = _made_of(bench, tree, proposal)
    change = bench.artifacts.keep(proposal.text.encode()) if proposal.text is not None else None
    if made is None:
        return Offer(None, refused, change)
    looked_at = bench.novelty is not None and proposal.text is not None
    return Offer(
        made.digest,
        None,
        change,
        known_as(made, bench.task.parameters),
        likeness(bench.root, tree, made) if looked_at else None,
    )


def _made_of(bench: Workbench, tree: Tree, proposal: Proposal) -> tuple[Tree | None, str | None]:
    """The tree that it makes, and why it is refused: one of the two."""
    try:
        _check_point(bench, tree, proposal)
        return bench.next_tree(tree, proposal), None
    except Refusal as refusal:
        return (tree, None) if refusal.reason is Reason.NO_EFFECT else (None, str(refusal))


def _check_point(bench: Workbench, tree: Tree, proposal: Proposal) -> None:
    """Raises Refusal for a point with a key, or a value, that the space has not: nobody asked for it to be measured.
    What the parent has stays as it is, whether it is named or not.
    """
    parameters = bench.task.parameters
    space = parameters.space if parameters else {}
    for name, value in (proposal.params or {}).items():
        if name in space and takes(space[name], value):
            continue
        if parameters and is_in(value, [object_in(tree, parameters.file).get(name)]):
            continue
        if name not in space:
            raise Refusal(Reason.NO_POINT, f"{shown(name)} is no parameter of the space")
        raise Refusal(Reason.NO_POINT, f"{shown(str(value))} is no value of {shown(name)}")


class Batch:
    """The offers of one asking, which are compared with what was tried and with each other."""

    def __init__(self, bench: Workbench, past: History, node: Node) -> None:
        self._novelty = bench.novelty
        self._past = past
        self._node = node
        self._taken: list[tuple[str, Likeness]] = []
        self.too_alike = 0

    def look_at(self, found: Likeness) -> LikenessRecord:
        """With what it is most like: a draft of another node, or one before it in the same asking."""
        twin, share = self._nearest(found)
        return LikenessRecord(form=found.form, sketch=written(found.sketch), twin=twin or None, alike=round(share, 4))

    def takes(self, found: Likeness, record: LikenessRecord, draft: int) -> bool:
        """What a person brings is always run."""
        if self._novelty and not self._node.injection and self._novelty.refuses(record):
            self.too_alike += 1
            return False
        self._taken.append((f"{self._node.id}#{draft}", found))
        return True

    def _nearest(self, found: Likeness) -> tuple[str, float]:
        if self._past.knows(found.form) and (first := self._past.first_with(found.form)) != self._node.id:
            return first, 1.0
        parent = self._node.parent or ""
        best = self._novelty.nearest(parent, found.sketch, but=self._node.id) if self._novelty else ("", 0.0)
        for name, other in self._taken:
            share = 1.0 if other.form == found.form else alike(other.sketch, found.sketch)
            best = (name, share) if share > best[1] else best
        return best
