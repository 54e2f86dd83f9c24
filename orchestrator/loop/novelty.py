"""What is too much like a change that was tried to be worth a trial, and how much that is.

A change is compared with those of the same parent. All of it comes from drafts on record, so a resume knows the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.domain import events as e
from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import order_of, run_of
from orchestrator.domain.records import Draft, LikenessRecord, Node, Phase, was_or_will_be_run
from orchestrator.domain.state import State
from orchestrator.population.likeness import Sketch, alike, read
from orchestrator.population.threshold import Threshold

# Two that share most of what they change share one of these, whatever else there is.
_PROBES = 8
_MOST_COMPARED = 64


@dataclass
class _Family:
    """The changes of one parent; `by_hash` has those that begin alike."""

    drafts: list[tuple[str, Sketch]] = field(default_factory=list)
    by_hash: dict[int, list[int]] = field(default_factory=dict)

    def add(self, draft: str, sketch: Sketch) -> None:
        for number in sketch[:_PROBES]:
            self.by_hash.setdefault(number, []).append(len(self.drafts))
        self.drafts.append((draft, sketch))

    def near(self, sketch: Sketch) -> Iterator[tuple[str, Sketch]]:
        """The newest first."""
        found = {at for number in sketch[:_PROBES] for at in self.by_hash.get(number, ())[-_MOST_COMPARED:]}
        yield from (self.drafts[at] for at in sorted(found, reverse=True)[:_MOST_COMPARED])


class Novelty:
    """`threshold` is the share from which on a change is too much alike; None learns it: from how often changes that
    were so much alike had the same score. What is the same but for its writing is never run again.
    """

    def __init__(self, state: State, ranking: Ranking, threshold: float | None) -> None:
        self._state = state
        self._ranking = ranking
        self.threshold = Threshold(threshold)
        self._families: dict[str, _Family] = {}
        self._waiting: dict[str, list[str]] = {}
        for node in sorted(state.nodes.values(), key=lambda node: order_of(node.id)):
            if run_of(node.id) == state.campaign.run:
                for draft in state.drafts(node.id):
                    self._add(draft)
                if node.phase is Phase.ENDED:
                    self._end(node.id)

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.Proposed):
            draft = self._state.draft(f"{event.node}#{event.draft}")
            if draft and event.draft:
                self._add(draft)
        elif isinstance(event, e.AttemptEnded):
            self._end(event.node)

    def nearest(self, parent: str, sketch: Sketch, *, but: str) -> tuple[str, float]:
        """The draft of another node that a change of this parent is most like, and how much; of equals the newest."""
        best = ("", 0.0)
        for name, other in self._families[parent].near(sketch) if parent in self._families else ():
            node = self._state.nodes[name.partition("#")[0]]
            if node.id != but and was_or_will_be_run(node) and (share := alike(sketch, other)) > best[1]:
                best = (name, share)
        return best

    def refuses(self, found: LikenessRecord) -> bool:
        return self.threshold.refuses(found.alike, found.form)

    def _add(self, draft: Draft) -> None:
        if draft.likeness:
            parent = self._state.nodes[draft.node].parent or ""
            family = self._families.setdefault(parent, _Family())
            family.add(f"{draft.node}#{draft.number}", read(draft.likeness.sketch))

    def _end(self, name: str) -> None:
        """A pair is counted once, when both of it have ended."""
        for other in [name, *self._waiting.pop(name, [])]:
            node = self._state.nodes[other]
            found = self._measured(node)
            if found is None or found.likeness is None or not found.likeness.twin:
                continue
            twin, _, number = found.likeness.twin.partition("#")
            if self._state.nodes[twin].phase is not Phase.ENDED:
                self._waiting.setdefault(twin, []).append(other)
            elif str(self._state.nodes[twin].promoted) == number:
                self.threshold.count(found.likeness.alike, same=self._same(node, self._state.nodes[twin]))

    def _measured(self, node: Node) -> Draft | None:
        charged = node.ending is not None and node.ending.charged
        return self._state.draft(f"{node.id}#{node.promoted}") if charged and node.promoted else None

    def _same(self, node: Node, twin: Node) -> bool:
        """Where scores are noisy no two are the same: then it is enough that nothing came of it."""
        if self._state.run.noisy:
            return not node.kept
        if node.verdict is None or twin.verdict is None:
            return node.ending == twin.ending
        if self._ranking.missing(node.verdict.metrics) or self._ranking.missing(twin.verdict.metrics):
            return False
        return self._ranking.merits(node.verdict.metrics) == self._ranking.merits(twin.verdict.metrics)
