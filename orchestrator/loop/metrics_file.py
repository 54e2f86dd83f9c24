"""metrics.csv in the campaign's folder: one line per scored attempt, for whatever reads CSV."""

from pathlib import Path

import structlog

from orchestrator.domain import events as e
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.judge import metrics_csv

_log = structlog.get_logger()


class MetricsFile:
    """Written anew when a session starts, since a crash may have cut a line; then appended to."""

    def __init__(self, path: Path, ranking: Ranking, state: State) -> None:
        self._path = path
        self._ranking = ranking
        self._state = state
        self._lines = 0
        scored = [node for node in state.nodes.values() if node.verdict and node.ended_at and self._is_of_run(node)]
        beside = path.with_name(f"{path.name}.new")
        lines = [self._line(node) for node in sorted(scored, key=lambda node: node.ended_at)]
        beside.write_text("".join([metrics_csv.header_line(ranking.metrics), *lines]), encoding="utf-8")
        beside.replace(path)

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.AttemptEnded) and self._state.nodes[event.node].verdict:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(self._line(self._state.nodes[event.node]))
            except OSError as error:
                # It is made from the ledger and will be again; a campaign does not end for it.
                _log.warning("metrics.csv not written", error=str(error))

    def _is_of_run(self, node: Node) -> bool:
        return node.id.split(".")[0] == self._state.run.root

    def _line(self, node: Node) -> str:
        self._lines += 1
        values = node.verdict.metrics if node.verdict else {}
        return metrics_csv.line(self._lines, node.id, [values.get(it.name) for it in self._ranking.metrics])
