"""metrics.csv in the campaign's folder: one line per scored attempt, for whatever reads CSV.

A noisy value is the median of its node's repeats so far; a last column says of how many. The baseline has no test of
its own, so its value changes with every run that others take of it.
"""

from pathlib import Path

import structlog

from orchestrator.domain import events as e
from orchestrator.domain.goodput import scored_in_order
from orchestrator.domain.headline import headline
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.judge import metrics_csv

_log = structlog.get_logger()


class MetricsFile:
    """Written whole when a session starts, since a crash may cut a line, and where one that has a line was measured
    again since; else appended to. Only lines that may differ are made again.
    """

    def __init__(self, path: Path, ranking: Ranking, state: State) -> None:
        self._path = path
        self._ranking = ranking
        self._state = state
        self._lines: dict[str, str] = {}
        self._measured: set[str] = set()
        self._is_whole = False
        self._make_lines()
        self._rewrite()

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.JudgingEnded):
            trial = self._state.trials.get(event.trial)
            if trial and trial.subject:
                self._measured.add(trial.subject)
        elif isinstance(event, e.AttemptEnded):
            try:
                self._take_in(self._state.nodes[event.node])
            except OSError as error:
                # It is made from the ledger and will be again; a campaign does not end for it.
                self._is_whole = False
                _log.warning("metrics.csv not written", error=str(error))

    def _take_in(self, node: Node) -> None:
        # To look at every line costs as much as there are, so it is left alone where nothing was measured again.
        lines = enumerate(self._lines, 1) if self._measured else ()
        measured = [(at, name) for at, name in lines if name in self._measured]
        self._measured.clear()
        noisy = self._state.run.noisy
        self._lines.update({name: self._line(at, self._state.nodes[name], noisy) for at, name in measured})
        if node.id in self._lines:
            self._make_lines()
            self._is_whole = False
        elif node.verdict:
            self._lines[node.id] = self._line(len(self._lines) + 1, node, noisy)
        if measured or not self._is_whole:
            self._rewrite()
        elif node.verdict:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(self._lines[node.id])

    def _make_lines(self) -> None:
        run = self._state.run
        found = scored_in_order(self._state, run)
        self._lines = {node.id: self._line(number, node, run.noisy) for number, node in enumerate(found, 1)}

    def _rewrite(self) -> None:
        head = metrics_csv.header_line(self._ranking.metrics, noisy=self._state.run.noisy)
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.write_text("".join([head, *self._lines.values()]), encoding="utf-8")
        beside.replace(self._path)
        self._is_whole = True

    def _line(self, number: int, node: AnyNode, noisy: bool) -> str:
        if node.trials > 1 or node.measured or isinstance(node, Node):
            found = headline(self._state, self._state.nodes[node.id])
            metrics, repeats = (found.metrics, found.runs) if found else ({}, 0)
        else:
            metrics, repeats = node.verdict.metrics if node.verdict else {}, 0
        values = [metrics.get(it.name) for it in self._ranking.metrics]
        return metrics_csv.line(number, node.id, values, repeats if noisy else None)
