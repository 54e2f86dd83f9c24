"""What a round of --review brought: each of its nodes with its score, and how to look at it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Round
from orchestrator.domain.state import State
from orchestrator.text import short
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.opening import typed

_MOST = 20


def nodes_of(state: State, now: Round) -> list[Node]:
    """The attempts that ended since the round began, in that order; whatever they were begun for."""
    over = (it for it in state.nodes.values() if it.phase is Phase.ENDED and it.ended_at >= now.at and it.parent)
    return sorted((it for it in over if run_of(it.id) == now.run), key=lambda it: it.ended_at)


def round_lines(state: State, metrics: Sequence[Metric], task: Path, unicode: bool = True) -> list[Text]:
    """Nothing where the last session had no rounds."""
    now = state.campaign.round
    if now is None or now.run != state.campaign.run:
        return []
    nodes = nodes_of(state, now)
    kept = sum(node.kept for node in nodes)
    lines = [Text.assemble((f"round {now.number}: ", "bold"), f"{figures.plural(len(nodes), 'attempt')}, {kept} kept")]
    lines += [_line(state, node, metrics, unicode) for node in nodes[:_MOST]]
    if len(nodes) > _MOST:
        lines.append(
            Text(f"  and {len(nodes) - _MOST} more; {typed(task, 'tree', '--all')} shows them", "bright_black")
        )
    if shown := [node.id for node in nodes if node.diff]:
        diff, show = (typed(task, word, shown[-1]) for word in ("diff", "show"))
        lines.append(Text(f"  {diff} shows a change, {show} all about it"))
    return lines


def next_round(task: Path) -> str:
    """What to type after a round that is over."""
    resume, without = typed(task, "resume"), typed(task, "resume", "--no-review")
    return f"{resume} goes on with the next one, {without} without stops"


def _line(state: State, node: Node, metrics: Sequence[Metric], unicode: bool) -> Text:
    look = look_of(node)
    text = Text.assemble("  ", (look.mark(unicode), look.style), f" {node.id} {look.word}")
    if (found := headline(state, node)) and node.ending and node.ending.scoreable:
        text.append(f"  {figures.headline(found, metrics)}{_gain(state, node, found, metrics[0])}")
    elif node.why:
        text.append(f"  {short(node.why, 100)}")
    return text.append(f"  {short(node.description, 120)}" if node.description else "", "bright_black")


def _gain(state: State, node: Node, mine: Headline, metric: Metric) -> str:
    """On its parent, where both were scored on the same terms."""
    theirs = headline(state, state.nodes[node.parent], mine.cohort) if node.parent else None
    if not theirs or theirs.cohort != mine.cohort or not {metric.name} <= mine.metrics.keys() & theirs.metrics.keys():
        return ""
    return f" ({figures.signed(mine.metrics[metric.name] - theirs.metrics[metric.name])} on {node.parent})"


def round_record(state: State) -> dict[str, Any] | None:
    now = state.campaign.round
    if now is None or now.run != state.campaign.run:
        return None
    return {"number": now.number, "nodes": [node.id for node in nodes_of(state, now)]}
