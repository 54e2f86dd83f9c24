"""All that an attempt works with, in one place."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.budget.refunds import RefundPolicy
from orchestrator.change import Policy, Tree
from orchestrator.domain import events as e
from orchestrator.domain.certify import Certify
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Ranking
from orchestrator.domain.profile import Profile
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role, Spent
from orchestrator.domain.state import State
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Aim
from orchestrator.door import BrokeOff, Door, NotStarted
from orchestrator.git import Candidates
from orchestrator.judge.data import DataJudge
from orchestrator.ledger import Artifacts
from orchestrator.loop.book import Book
from orchestrator.loop.breaker import MODEL, CampaignBreaker
from orchestrator.loop.candidate import Trees, known_as, next_tree
from orchestrator.loop.history import History
from orchestrator.loop.jobs import Jobs
from orchestrator.loop.keeping import Rules
from orchestrator.loop.models import Models
from orchestrator.loop.novelty import Novelty
from orchestrator.loop.playbooks import Playbooks
from orchestrator.loop.pruning import Pruning
from orchestrator.loop.purse import CampaignPurse
from orchestrator.loop.shelf import Shelf
from orchestrator.meta.chooser import Meta
from orchestrator.offload import offload
from orchestrator.population.likeness import UNCHANGED
from orchestrator.proposers import Proposer
from orchestrator.task import Task

if TYPE_CHECKING:
    from orchestrator.loop.judge_modes import JudgeMode
    from orchestrator.loop.pool import Pooling


class Free(Exception):
    """An ending that the attempt does not pay for; it is refunded and queued again. `spent` is not on record yet.

    `found` is what is to be recorded together with the refund. `denied`: the provider lets nobody of ours in, so the
    campaign ends here, and the attempt waits for a resume. `provider` is the one whose doing it was, where that is
    known; `delivered`: hostile bytes were in its hands by then, so it counts against the attempt nevertheless.
    """

    def __init__(
        self,
        ending: Ending,
        why: str,
        spent: Spent | None = None,
        found: Sequence[e.Event] = (),
        *,
        denied: bool = False,
        provider: str = "",
        delivered: bool = False,
    ) -> None:
        super().__init__(why)
        self.ending = ending
        self.spent = spent or Spent()
        self.found = found
        self.denied = denied
        self.provider = provider
        self.delivered = delivered

    @classmethod
    def of(cls, error: NotStarted | BrokeOff, where: str = "", spent: Spent | None = None) -> "Free":
        """What a provider's failure means to an attempt; `where` says in which part of it."""
        delivered = isinstance(error, BrokeOff) and not error.told
        why = f"{where}: {error}" if where else str(error)
        return cls(error.ending, why, spent, denied=error.denied, provider=error.provider, delivered=delivered)


class BaselineFailed(Exception):
    """The task does not work as it stands; the message says where, `log` what was printed there."""

    def __init__(self, why: str, log: str = "") -> None:
        super().__init__(why)
        self.log = log


class PoolFailed(Exception):
    """A combination stage cannot have its pool; the message is one line that says what to do."""


async def _nothing_stands() -> None:
    """On one's own machine nothing is rented."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What runs a candidate and what judges it; needs no campaign. `asking` is what an attempt may use of models.

    Candidates go through `door`, wherever that leads; judges, what stands beside them and agents go through `home`,
    which never leaves the orchestrator's own machine.
    """

    task: Task
    jobs: Jobs
    door: Door
    home: Door
    judge: DataJudge
    ranking: Ranking
    asking: Spent = field(default_factory=Spent)

    @property
    def tier(self) -> Tier:
        return self.task.judge.mode

    @cached_property
    def judge_mode(self) -> "JudgeMode":
        return self.jobs.judge_mode

    @cached_property
    def certify(self) -> Certify:
        return self.task.certify.certify()


@dataclass(frozen=True, kw_only=True)
class Workbench(Parts):
    """The same, with a campaign to record in. `root` is the tree that the run began with.

    `models` and `playbooks` are there only where a proposer asks a model. `at_once` is how many changes one asking is
    for, where those beyond the first are tried by the next attempts on the same parent; `parents` has a lock for each
    of them, so that they wait for them.
    `pooling` is there in a combination stage. `asks`: nothing becomes the champion before a person said yes. `aim` is
    what a candidate is kept for. `purse` pays for what stands at a provider longer than one chamber, and `stand_down`
    ends all of that. `meta` is what the search learns of its own choices. `has_free_arm`: of several proposers, one
    asks no model. `probes` is how many trials may run side by side where a change is taken apart. `threshold` is from
    which share on changes are too much alike to be run, `walk` after how many attempts that kept nothing a branch goes
    on over neutral changes. `hints` is which of a profile's hints the proposers get, None where they ask for none.
    """

    root: Tree
    book: Book
    artifacts: Artifacts
    shelf: Shelf
    candidates: Candidates
    policy: Policy
    proposers: dict[Role, Proposer]
    refunds: RefundPolicy
    propose_s: float
    live: Path
    draw: Callable[[], float]
    cohort_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    complaints: dict[str, str] = field(default_factory=dict)
    pruning: Pruning | None = None
    models: Models | None = None
    at_once: int = 1
    probes: int = 1
    parents: dict[str, asyncio.Lock] = field(default_factory=dict)
    playbooks: Playbooks | None = None
    pooling: "Pooling | None" = None
    asks: bool = False
    aim: Aim = Aim.BETTER
    purse: CampaignPurse | None = None
    has_free_arm: bool = False
    threshold: float | str = "off"
    walk: int | None = None
    hints: str | None = None
    meta: Meta = field(default_factory=Meta)
    stand_down: Callable[[], Awaitable[None]] = _nothing_stands

    @cached_property
    def state(self) -> State:
        return self.book.state

    @cached_property
    def breaker(self) -> CampaignBreaker:
        """One for all that a campaign needs of others."""
        probes = {door.name: door.answers for door in (self.home, self.door)}
        if self.models:
            probes[MODEL] = self.models.answers
        questions = {door.name: door.replies for door in (self.home, self.door)}
        terms = self.door.tariff.terms
        return CampaignBreaker(
            self.book,
            probes,
            questions,
            away=self.door.name,
            home=self.home.name,
            quiet_s=terms.quiet_s,
            answer_s=terms.answer_s,
        )

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        return {}

    def profile(self) -> Profile | None:
        """What a run of the root told of its own code. In a thread: it may have to be read."""
        digest = self.state.run.profile
        if digest is None or self.hints is None:
            return None
        if digest not in self._profiles:
            self._profiles[digest] = Profile.model_validate_json(self.artifacts.get(digest))
        return self._profiles[digest]

    @property
    def is_hot(self) -> bool:
        """Whether proposers are to look where the time goes."""
        return self.hints == "hot" or (self.hints == "auto" and bool(self.ranking.times))

    @cached_property
    def rules(self) -> Rules:
        return Rules(self.ranking, self.certify, self.task.heldout, self.aim, self.asks)

    async def tree(self, node: str) -> Tree:
        """A node's whole file tree, from its commit. Nothing is awaited for one that is kept."""
        kept = self.trees.kept(self._commit(node))
        return kept if kept is not None else await offload(self.tree_here, node)

    def tree_here(self, node: str) -> Tree:
        """The same in this thread, for those that are off the loop already."""
        return self.trees.read(self._commit(node))

    def _commit(self, node: str) -> str:
        commit = self.state.nodes[node].commit
        if commit is None:
            raise LookupError(f"{node} has no candidate yet")
        return commit

    @cached_property
    def trees(self) -> Trees:
        """A parent is read for each of its children, a candidate for every trial and guard."""
        return Trees(self.candidates.read)

    @cached_property
    def pasts(self) -> dict[Role, History]:
        """What each proposer may look back on; they must hear of every event that follows."""
        digests = filter(None, (self.root.digest, known_as(self.root, self.task.parameters), UNCHANGED))
        baseline = tuple(digests)
        given, told = (self.state, self.ranking), self.task.model.notes
        return {role: History(*given, role, baseline, self.tree_here, notes=told) for role in self.proposers}

    @cached_property
    def novelty(self) -> Novelty | None:
        """None where every change that has other bytes is new; it must hear of every event that follows."""
        if self.threshold == "off":
            return None
        return Novelty(self.state, self.ranking, None if self.threshold == "learn" else float(self.threshold))

    def next_tree(self, tree: Tree, proposal: Proposal) -> Tree:
        """Raises Refusal for a change that the policy, or the tree, does not take."""
        return next_tree(tree, proposal, self.policy, self.task.parameters)
