"""What sections are made from: the state of a campaign, one of its runs, and what there is to know beside them."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.budget import Account, Accounts
from orchestrator.domain.census import Counted
from orchestrator.domain.control import Comparison, compare
from orchestrator.domain.drift import Drift, drift
from orchestrator.domain.goodput import Goodput, goodput, in_order, lines_in_order
from orchestrator.domain.headline import headline
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Run
from orchestrator.domain.savings import Savings, savings
from orchestrator.domain.state import State
from orchestrator.task import Criteria, StoredTask
from orchestrator.text import printable

if TYPE_CHECKING:
    # What takes long to load: it opens ledgers, or is large.
    from orchestrator.domain.audit import AuditRecord
    from orchestrator.task import Task
    from orchestrator.views.campaign.history import History


@dataclass(frozen=True)
class Material:
    """`folder` is the task's as it was named, `holder` works on it, `asked` are kinds of requests that nobody took yet,
    `diff` is the winner's against the baseline, `reason` is why work on it ended. `audit` is the last audit of the
    task, of whatever version. What costs something is found once.
    """

    state: State
    accounts: Accounts
    run: Run
    ranking: Ranking
    stored: StoredTask
    folder: Path = Path()
    holder: str | None = None
    asked: Sequence[str] = ()
    diff: str = ""
    reason: str = ""
    audit: "AuditRecord | None" = None

    @property
    def metrics(self) -> Sequence[Metric]:
        return self.ranking.metrics

    @property
    def criteria(self) -> Criteria:
        return self.stored.criteria

    @property
    def task(self) -> "Task":
        """All of it, which takes long to load: the status does without."""
        return self.stored.whole

    @cached_property
    def nodes(self) -> list[Node]:
        """Those of the run, in the order of opening."""
        return in_order(self.state, self.run)

    @cached_property
    def lines(self) -> list[AnyNode]:
        """The same, of most of them no more than a line: whole nodes of a long campaign take seconds to make."""
        return lines_in_order(self.state, self.run)

    @cached_property
    def every(self) -> Counted:
        """Of all runs: those of which nothing is to be said but how they ended are counted."""
        return self.state.counted()

    @cached_property
    def counted(self) -> Counted:
        """The same of the run."""
        return self.every.of_run(self.run.number)

    @cached_property
    def goodput(self) -> Goodput:
        usd = self.accounts.used(Account.USD)
        return goodput(self.state, usd=usd, elapsed_s=self.state.campaign.elapsed_s, run=self.run)

    @cached_property
    def savings(self) -> Savings:
        return savings(self.state, self.run, watched=self.criteria.pruning is not None)

    @cached_property
    def comparison(self) -> Comparison:
        return compare(self.state, self.ranking, self.run)

    @cached_property
    def drift(self) -> Drift | None:
        return drift(self.state, self.metrics[0], self.run)

    @cached_property
    def winner(self) -> Node | None:
        return self.state.champion(self.run)


@dataclass(frozen=True)
class NodeMaterial:
    """A node, with the ranking and the task of its own run, and what happened to it."""

    state: State
    node: Node
    ranking: Ranking
    task: "Task"
    history: "History"

    @property
    def metrics(self) -> Sequence[Metric]:
        return self.ranking.metrics

    @property
    def run(self) -> Run:
        return self.state.runs[str(run_of(self.node.id))]


def slots_of(run: Run) -> Account:
    """What its attempts are drawn from."""
    return Account.COMBINATION if run.combine else Account.ATTEMPTS


def typed(task: Path, *words: str) -> str:
    """A command about the task in `task`, to be typed where the present one was."""
    return printable(shlex.join(["blastdoor", *words, *([str(task)] if task != Path() else [])]))


def node_record(state: State, node: Node) -> dict[str, Any]:
    """A node as JSON. `headline` is what it is shown with: `verdict` is that of its first run, whatever came after."""
    found = headline(state, node, state.runs[str(run_of(node.id))].cohort)
    return {**node.model_dump(mode="json"), "headline": asdict(found) if found else None}
