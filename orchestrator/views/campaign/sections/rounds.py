"""What a round of --review brought: each of its nodes with its score, and how to look at it."""

from orchestrator.domain import figures
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Round
from orchestrator.domain.state import State
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.sections.material import Material, typed
from orchestrator.views.campaign.sections.work import round_is_over
from orchestrator.views.render.model import Lines, Own, Part, Quote, Section

_MOST = 20


def round_(it: Material) -> Section:
    """Shown where the work ended with it; programs get it always. Nothing where the last session had no rounds."""
    now = it.state.campaign.round
    if now is None or now.run != it.state.campaign.run:
        return Section("round", data={"round": None})
    nodes = nodes_of(it.state, now)
    data = {"round": {"number": now.number, "nodes": [node.id for node in nodes]}}
    if not round_is_over(it):
        return Section("round", data=data)
    line = f"{figures.plural(len(nodes), 'attempt')}, {sum(node.kept for node in nodes)} kept"
    body = [Lines(_rows(it, nodes))]
    return Section("round", f"Round {now.number}", line, body, data, f"round {now.number}", open=True)


def _rows(it: Material, nodes: list[Node]) -> list[list[Part]]:
    rows = [_row(it, node) for node in nodes[:_MOST]]
    if len(nodes) > _MOST:
        rows.append(
            [Own(f"  and {len(nodes) - _MOST} more; {typed(it.folder, 'tree', '--all')} shows them", "bright_black")]
        )
    if shown := [node.id for node in nodes if node.diff]:
        diff, show = (typed(it.folder, word, shown[-1]) for word in ("diff", "show"))
        rows.append([f"  {diff} shows a change, {show} all about it"])
    return rows


def nodes_of(state: State, now: Round) -> list[Node]:
    """The attempts that ended since the round began, in that order; whatever they were begun for."""
    began = (now.ended + 1, "") if now.ended else (0, now.at)
    over = (it for it in state.nodes.values() if it.phase is Phase.ENDED and it.ended_place >= began and it.parent)
    return sorted((it for it in over if run_of(it.id) == now.run), key=lambda it: it.ended_place)


def _row(it: Material, node: Node) -> list[Part]:
    state, look = it.state, look_of(node)
    row: list[Part] = ["  ", look, f" {node.id} {look.word}"]
    if (found := headline(state, node)) and node.ending and node.ending.scoreable:
        row.append(f"  {figures.headline(found, it.metrics)}{_gain(state, node, found, it.metrics[0])}")
    elif node.why:
        row += ["  ", Quote(node.why, 100)]
    return [*row, "  ", Quote(node.description, 120, "bright_black")] if node.description else row


def _gain(state: State, node: Node, mine: Headline, metric: Metric) -> str:
    """On its parent, where both were scored on the same terms."""
    theirs = headline(state, state.nodes[node.parent], mine.cohort) if node.parent else None
    if not theirs or theirs.cohort != mine.cohort or not {metric.name} <= mine.metrics.keys() & theirs.metrics.keys():
        return ""
    return f" ({figures.signed(mine.metrics[metric.name] - theirs.metrics[metric.name])} on {node.parent})"
