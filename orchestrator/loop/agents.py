"""The books of coding agents: intent before a chamber is opened, what it cost, and its words in a file meanwhile."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.agents.proposer import End
from orchestrator.domain import events as e
from orchestrator.ledger import Artifacts
from orchestrator.loop.book import Book
from orchestrator.loop.live_log import LiveLog
from sandbox import Listener, Report


@dataclass(frozen=True)
class AgentBook:
    """`agent` and `configuration` are the names under which stalls are counted, too."""

    book: Book
    artifacts: Artifacts
    live: Path
    agent: str
    configuration: str

    def intended(self, node: str) -> None:
        self.book.record(e.AgentIntended(node=node, agent=self.agent, configuration=self.configuration))

    def ended(self, node: str, end: End) -> None:
        self.book.record(
            e.AgentEnded(
                node=node,
                ending=end.ending,
                why=end.why,
                log=self.artifacts.put(end.log) if end.log else None,
                left_out=end.left_out,
                spent=end.spent,
                interrupted=end.interrupted,
            )
        )

    @contextmanager
    def listening(self, node: str) -> Iterator[Listener]:
        with closing(LiveLog(self.live / f"{node}-agent.log")) as log:
            yield _Heard(log)


class _Heard:
    """What an agent prints may look like a report, and is none."""

    def __init__(self, log: LiveLog) -> None:
        self.line = log.line

    def report(self, report: Report) -> None:
        del report
