"""The nodes of a campaign as a table for a notebook or a spreadsheet: one row each, plain names of columns."""

import csv
from collections.abc import Mapping, Sequence
from typing import TextIO

from orchestrator.domain.goodput import in_order, iterations
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.proposal import Value
from orchestrator.domain.records import Node, Run
from orchestrator.domain.state import State
from orchestrator.text import printable
from orchestrator.views.campaign.looks import look_of

_BEFORE = ("iteration", "run", "order", "node", "parent", "role", "status", "ending", "kept")
_AFTER = ("cohort", "tier", "dollars", "chamber_seconds", "tokens", "opened", "ended", "operator", "description", "why")
# A spreadsheet takes a cell that starts so for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_nodes(state: State, metrics: Mapping[int, Sequence[Metric]], out: TextIO) -> int:
    """`metrics` by run; open `out` with newline="". Returns how many nodes there were.

    `iteration` is that of metrics.csv, `order` that of the chart. A score that is missing is an empty cell; a noisy
    one is the median of its repeats, where there are any. Which way a metric is better is in a column of its own,
    since runs may differ in it.
    """
    names = list(dict.fromkeys(metric.name for each in metrics.values() for metric in each))
    params = list(dict.fromkeys(name for node in state.nodes.values() for name in node.params or {}))
    noisy = any(run.noisy for run in state.runs.values())
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(_header(names, params, noisy))
    count = 0
    for run in state.runs.values():
        goals = {metric.name: str(metric.goal) for metric in metrics.get(run.number, ())}
        numbers = iterations(state, run)
        for order, node in enumerate(in_order(state, run), 1):
            count += 1
            found = headline(state, node) if node.ending and node.ending.scoreable else None
            scores = [cell for name in names for cell in (_score(found, name, goals), goals.get(name, ""))]
            place = [str(numbers.get(node.id, "")), str(run.number), str(order)]
            given = [_param(node, name) for name in params]
            writer.writerow([*place, *_about(node), *scores, *given, *_rest(node), *_measured(found, run, noisy)])
    return count


def _header(names: Sequence[str], params: Sequence[str], noisy: bool) -> list[str]:
    """A metric has its own name, unless one of ours is the same."""
    ours = {*_BEFORE, *_AFTER, "repeats"}
    metrics = [f"metric_{name}" if name in ours else name for name in names]
    goals = [column for name in metrics for column in (cell(name), cell(f"{name}_goal"))]
    return [*_BEFORE, *goals, *(cell(f"param_{name}") for name in params), *_AFTER, *(["repeats"] if noisy else [])]


def _param(node: Node, name: str) -> str:
    """Empty where the node has no such parameter: it is there only under a condition, or the change is one of code."""
    value: Value | None = (node.params or {}).get(name)
    return cell(value) if isinstance(value, str) else "" if value is None else repr(value)


def cell(text: str | None) -> str:
    """Text that no spreadsheet takes for a formula, in one line."""
    shown = printable(text or "")
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _about(node: Node) -> list[str]:
    ending = str(node.ending) if node.ending else ""
    return [node.id, node.parent or "", node.role, look_of(node).word, ending, "yes" if node.kept else "no"]


def _score(found: Headline | None, name: str, goals: Mapping[str, str]) -> str:
    value = found.metrics.get(name) if found and name in goals else None
    return "" if value is None else repr(value)


def _measured(found: Headline | None, run: Run, noisy: bool) -> list[str]:
    """How many repeats a noisy value is the median of; 0 where it is only screened."""
    return [str(found.runs) if found and run.noisy else ""] if noisy else []


def _rest(node: Node) -> list[str]:
    verdict, spent = node.verdict, node.spent
    return [
        verdict.cohort if verdict else "",
        verdict.tier if verdict else "",
        f"{spent.microdollars / 1_000_000:.6f}",
        f"{spent.milliseconds / 1000:.3f}",
        str(spent.tokens),
        node.opened_at,
        node.ended_at,
        cell(node.operator),
        cell(node.description),
        cell(node.why),
    ]
