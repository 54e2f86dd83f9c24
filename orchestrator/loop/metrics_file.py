"""metrics.csv in the campaign's folder: one line per scored attempt, for whatever reads CSV.

A noisy value is the median of the repeats of its node when the attempt ended; a last column says of how many.
"""

from pathlib import Path

import structlog

from orchestrator.domain import events as e
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.judge import metrics_csv

_log = structlog.get_logger()


class MetricsFile:
    """Written anew when a session starts, since a crash may have cut a line, and after a test; else appended to."""

    def __init__(self, path: Path, ranking: Ranking, state: State) -> None:
        self._path = path
        self._ranking = ranking
        self._state = state
        self._lines = 0
        self._write_anew()

    def on_event(self, event: e.Event, _: str) -> None:
        if not isinstance(event, e.AttemptEnded):
            return
        node = self._state.nodes[event.node]
        if node.verdict:
            try:
                if node.certification:
                    # Its champion was measured in the same test, so that one's value is another one now.
                    self._write_anew()
                    return
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(self._line(node))
            except OSError as error:
                # It is made from the ledger and will be again; a campaign does not end for it.
                _log.warning("metrics.csv not written", error=str(error))

    def _write_anew(self) -> None:
        self._lines = 0
        nodes = self._state.nodes.values()
        scored = [node for node in nodes if node.verdict and node.ended_at and self._is_of_run(node)]
        lines = [self._line(node) for node in sorted(scored, key=lambda node: node.ended_at)]
        head = metrics_csv.header_line(self._ranking.metrics, noisy=self._state.run.noisy)
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.write_text("".join([head, *lines]), encoding="utf-8")
        beside.replace(self._path)

    def _is_of_run(self, node: Node) -> bool:
        return node.id.split(".")[0] == self._state.run.root

    def _line(self, node: Node) -> str:
        self._lines += 1
        found = headline(self._state, node)
        values = [found.metrics.get(it.name) if found else None for it in self._ranking.metrics]
        repeats = found.runs if found else 0
        return metrics_csv.line(self._lines, node.id, values, repeats if self._state.run.noisy else None)
