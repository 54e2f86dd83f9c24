"""The nodes of a campaign as a table for a spreadsheet: one row each, the first column is the iteration."""

import csv
from collections.abc import Mapping, Sequence
from typing import TextIO

from orchestrator.domain.goodput import in_order
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Node, Run
from orchestrator.domain.state import State
from orchestrator.text import printable
from orchestrator.views.campaign.looks import look_of

_BEFORE = ("iteration", "node", "parent", "role", "status", "ending", "kept")
_AFTER = ("cohort", "tier", "dollars", "chamber seconds", "tokens", "opened", "ended", "operator", "description", "why")
# A spreadsheet takes a cell that starts so for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_nodes(state: State, metrics: Mapping[int, Sequence[Metric]], out: TextIO) -> int:
    """`metrics` by run; open `out` with newline="". Returns how many nodes there were.

    A score that is missing is an empty cell; a noisy one is the median of its repeats, where there are any. Where runs
    differ in a metric's direction, each has a column.
    """
    columns = list(dict.fromkeys((metric.name, metric.goal) for each in metrics.values() for metric in each))
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    headers = [cell(f"{name} ({goal} is better)") for name, goal in columns]
    # At the end, and only where there is such a run: readers of the columns before it find them where they were.
    noisy = any(run.noisy for run in state.runs.values())
    writer.writerow([*_BEFORE, *headers, *_AFTER, *(["repeats"] if noisy else [])])
    iteration = 0
    for run in state.runs.values():
        goals = {metric.name: metric.goal for metric in metrics.get(run.number, ())}
        for node in in_order(state, run):
            iteration += 1
            found = headline(state, node) if node.ending and node.ending.scoreable else None
            scores = [_score(found, name) if goals.get(name) is goal else "" for name, goal in columns]
            writer.writerow([iteration, *_about(node), *scores, *_rest(node), *_measured(found, run, noisy)])
    return iteration


def cell(text: str | None) -> str:
    """Text that no spreadsheet takes for a formula, in one line."""
    shown = printable(text or "")
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _about(node: Node) -> list[str]:
    ending = str(node.ending) if node.ending else ""
    return [node.id, node.parent or "", node.role, look_of(node).word, ending, "yes" if node.kept else "no"]


def _score(found: Headline | None, name: str) -> str:
    value = found.metrics.get(name) if found else None
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
