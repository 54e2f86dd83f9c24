"""The optimization tree of a run: ids with dots, what became of each node, and the path to the best."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from orchestrator.domain import figures
from orchestrator.domain.headline import LEGEND, headline
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import path_to, run_of
from orchestrator.domain.records import Node, Phase, Role, Run
from orchestrator.domain.state import State
from orchestrator.text import short
from orchestrator.views.campaign.looks import CONTROL, DISCARDED, KEPT, SUSPECT, look_of

_FAINT = "bright_black"
# What passed needs no word, and what is held is seen from the node's own look.
_FINDINGS = {"flag": ("flagged", "yellow"), "released": ("released by a person", "cyan")}
_SHORTEST = 12
_WHY = 40
# A family of one more than it may show is shown whole: a line that says "1 more" takes as much room.
_SPARE = 1


@dataclass(frozen=True)
class Layout:
    """`depth` levels below the root, `family` children of a node; None shows all of them."""

    width: int = 100
    unicode: bool = True
    depth: int | None = None
    family: int | None = None


def tree(state: State, metrics: Sequence[Metric], layout: Layout, run: Run | None = None) -> Text:
    run = run or state.run
    if run.root not in state.nodes:
        return Text("no node yet", _FAINT)
    return Text("\n").join(_Drawing(state, metrics, layout, run).lines())


def family_for(count: int, height: int) -> int | None:
    """How many children of a node to show so that a long tree stays a picture; all of a short one."""
    return None if count <= max(20, height - 4) else 5


class _Drawing:
    def __init__(self, state: State, metrics: Sequence[Metric], layout: Layout, run: Run) -> None:
        self._state = state
        self._metrics = metrics
        self._layout = layout
        self._run = run
        self._screened = False
        champion = state.champion(run)
        self._best = set(path_to(champion.id)) if champion else set()
        self._champion = champion.id if champion else ""
        self._children: dict[str, list[AnyNode]] = {}
        for node in state.node_lines():
            if node.parent and run_of(node.id) == run.number:
                self._children.setdefault(node.parent, []).append(node)
        for family in self._children.values():
            family.sort(key=_place)

    def lines(self) -> Iterator[Text]:
        root = self._state.nodes[self._run.root]
        yield self._line(root, Text())
        yield from self._below(root, Text(), 1)
        if self._screened:
            yield Text(LEGEND, _FAINT)

    def _below(self, parent: AnyNode, stem: Text, depth: int) -> Iterator[Text]:
        family = self._children.get(parent.id, [])
        if not family:
            return
        if self._layout.depth is not None and depth > self._layout.depth:
            hidden = list(self._all_below(parent))
            yield Text.assemble(stem, (f"{self._branch(True)}{_summary(hidden, 'deeper')}", _FAINT))
            return
        chosen = self._chosen(family)
        left = [node for node in family if node.id not in chosen]
        for at, node in enumerate(shown := [node for node in family if node.id in chosen]):
            last = at == len(shown) - 1 and not left
            style = "green" if node.id in self._best else _FAINT
            yield self._line(self._state.nodes[node.id], Text.assemble(stem, (self._branch(last), style)))
            bar = "   " if last else ("│  " if self._layout.unicode else "|  ")
            yield from self._below(node, Text.assemble(stem, (bar, _FAINT)), depth + 1)
        if left:
            hidden = [*left, *(node for top in left for node in self._all_below(top))]
            yield Text.assemble(stem, (f"{self._branch(True)}{_summary(hidden, 'more')}", _FAINT))

    def _chosen(self, family: Sequence[AnyNode]) -> set[str]:
        """On the way to the best, then what is still open or was kept, then the newest."""
        limit = self._layout.family
        if limit is None or len(family) <= limit + _SPARE:
            return {node.id for node in family}
        by_weight = sorted(family, key=lambda node: (self._weight(node), _place(node)), reverse=True)
        return {node.id for node in by_weight[:limit]}

    def _weight(self, node: AnyNode) -> int:
        if node.id in self._best:
            return 3
        return 2 if node.phase is not Phase.ENDED else int(node.kept)

    def _all_below(self, node: AnyNode) -> Iterator[AnyNode]:
        for child in self._children.get(node.id, []):
            yield child
            yield from self._all_below(child)

    def _branch(self, last: bool) -> str:
        if self._layout.unicode:
            return "└─ " if last else "├─ "
        return "`- " if last else "|- "

    def _line(self, node: Node, stem: Text) -> Text:
        look = look_of(node)
        best = node.id in self._best
        text = Text.assemble(stem, (f"{node.id} ", "bold green" if best else "bold"))
        text.append(look.mark(self._layout.unicode), look.style)
        if node.id == self._champion:
            text.append(" best", "bold green")
        if node.role in (Role.CONTROL, Role.INJECTED, Role.BASELINE, Role.MINIMISED):
            text.append(f" [{node.role}]", "cyan")
        if node.island:
            arrow = "→" if self._layout.unicode else ">"
            copied = "".join(f"{arrow}{it}" for it in node.migrated)
            text.append(f" [island {node.island}{copied}]", "cyan")
        if look in (KEPT, DISCARDED, CONTROL, SUSPECT) and (found := headline(self._state, node, self._run.cohort)):
            text.append(f" {figures.headline(found, self._metrics)}", "green" if best else "")
            self._screened |= found.screened
        if look not in (KEPT, DISCARDED, CONTROL):
            text.append(f" {look.word}", look.style)
            said_why = node.phase is Phase.ENDED and node.why and node.why != look.word
            text.append(f" ({short(node.why, _WHY)})" if said_why else "", _FAINT)
        if node.finding in _FINDINGS:
            text.append(f" {_FINDINGS[node.finding][0]}", _FINDINGS[node.finding][1])
        room = max(_SHORTEST, self._layout.width - text.cell_len - 2)
        text.append(f"  {short(node.description, room)}" if node.description else "", "" if best else _FAINT)
        text.truncate(max(self._layout.width, stem.cell_len + _SHORTEST), overflow="ellipsis")
        return text


def _place(node: AnyNode) -> int:
    """Among the children of its parent."""
    return int(node.id.rpartition(".")[2])


def _summary(nodes: Sequence[AnyNode], where: str) -> str:
    """`14 more: 12 discarded, 2 failed`."""
    counts = Counter(look_of(node).word for node in nodes)
    return f"{len(nodes):,} {where}: {', '.join(f'{count:,} {word}' for word, count in counts.most_common())}"
