"""What a winner's score stands on: its parts, what each is worth, and what was left out."""

from collections.abc import Sequence

from orchestrator.domain import figures
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.minimal import smaller_of, takings_apart
from orchestrator.domain.records import Node, PartRecord, Phase, Role
from orchestrator.domain.state import State
from orchestrator.views.campaign.sections.material import Material, NodeMaterial, typed
from orchestrator.views.render.model import Block, Part, Prose, Quote, Section, Table, Words

_CELL = 60
_MOST = 40


def minimal(it: Material) -> Section:
    """Of the winner of a run."""
    node = _last(it.state, it.winner) if it.winner else None
    if it.winner is None or node is None:
        return Section("minimal", data={"minimal": None}, name="minimised")
    line: list[Part] = _line(it.winner, node)
    if smaller_of(it.state, it.winner):
        line.append(f"; {typed(it.folder, 'apply', it.winner.id, '--minimal')} takes it over")
    body = _tables(it.state, it.winner, node, it.metrics)
    return Section("minimal", "The winner without what does nothing", line, body, {"minimal": _data(node)}, "minimised")


def of_node(it: NodeMaterial) -> Section:
    """Of a node that was taken apart, or that came of it."""
    return parts_of(it.state, it.node, it.metrics)


def parts_of(state: State, subject: Node, metrics: Sequence[Metric]) -> Section:
    node = subject if subject.role is Role.MINIMISED else _last(state, subject)
    if node is None or node.parent is None:
        return Section("minimal", data={"minimal": None})
    winner = state.nodes[node.parent]
    tables = _tables(state, winner, node, metrics)
    return Section("minimal", "parts", "", [Prose(_line(winner, node)), *tables], {"minimal": _data(node)})


def _last(state: State, winner: Node) -> Node | None:
    """The one that is offered; else the last that tells something."""
    told = [it for it in takings_apart(state, winner) if it.minimal or it.phase is not Phase.ENDED]
    return smaller_of(state, winner) or (told[-1] if told else None)


def _line(winner: Node, node: Node) -> list[Part]:
    found = node.minimal
    if found is None:
        return [f"{node.id} takes {winner.id} apart: {figures.plural(node.trials, 'trial')} so far"]
    count = len(found.kept) + len(found.dropped)
    line: list[Part] = [f"{node.id} has {len(found.kept)} of the {figures.plural(count, 'part')} of {winner.id}"]
    if node.size is not None and winner.size is not None:
        line.append(f" ({figures.plural(node.size, 'line')} instead of {winner.size:,})")
    line.append("" if node.kept or node.phase is not Phase.ENDED else f"; it is not offered: {node.why}")
    line += ["; not all was tried: " if not found.complete else "; ", Quote(found.why)] if found.why else []
    return line


def _tables(state: State, winner: Node, node: Node, metrics: Sequence[Metric]) -> list[Block]:
    found = node.minimal
    if found is None:
        return []
    whole = headline(state, node) or headline(state, winner)
    first = metrics[0].name
    value = whole.metrics.get(first) if whole else None
    rows: list[list[Words]] = [
        [*_cells(part), _score(part, first), _loss(part, first, value)] for part in found.kept[:_MOST]
    ]
    kept = Table(["kept", "before", "after", f"{first} without it", "difference"], rows)
    gone = Table(["left out", "before", "after"], [_cells(part) for part in found.dropped[:_MOST]])
    blocks: list[Block] = [table for table in (kept, gone) if table.rows]
    more = max(0, len(found.kept) - _MOST) + max(0, len(found.dropped) - _MOST)
    return [*blocks, *([Prose(f"{figures.plural(more, 'part')} more are in --json.")] if more else [])]


def _cells(part: PartRecord) -> list[Words]:
    return [Quote(part.where, _CELL), Quote(part.before, _CELL), Quote(part.after, _CELL)]


def _score(part: PartRecord, name: str) -> Words:
    if part.worth is None or name not in part.worth:
        return Quote(part.fate, _CELL)
    return figures.score(part.worth[name])


def _loss(part: PartRecord, name: str, whole: float | None) -> Words:
    if part.worth is None or name not in part.worth or whole is None:
        return ""
    return figures.signed(part.worth[name] - whole)


def _data(node: Node) -> dict[str, object]:
    told = node.minimal.model_dump(mode="json") if node.minimal else {}
    return {"node": node.id, "of": node.parent, "offered": node.kept, "trials": node.trials, **told}
