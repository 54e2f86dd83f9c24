"""The interface of every proposer: one brief in, proposals out."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.change import Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Ranking
from orchestrator.domain.profile import Profile
from orchestrator.domain.proposal import Drawn, Proposal, Value
from orchestrator.llm.line import Line
from orchestrator.meta.chooser import Chooser
from orchestrator.task import Task
from orchestrator.watch.signals import Signal


class Exhausted(Exception):
    """There is nothing more to propose. No attempt is charged, and the campaign ends when all others have."""


class Stalled(Exception):
    """The proposer gives no more signs of life; the attempt is refunded and queued again."""


class Barred(Stalled):
    """No question of the proposer's can ever pass, as its first one shows. One line, with what to change."""


class PluginFailed(Exception):
    """Code of others is wrong, of a proposer, an agent or a backend: nobody can go on before it is mended. One line
    that says whose it is; the attempt is not charged, and waits for a resume.
    """


class Unanswered(Exception):
    """The proposer was at work and has nothing to hand in: its allowance is used up, or what it says is no change.
    One line; the attempt is charged and ends as invalid. `drawn` is what was chosen for it, where that is known.
    """

    drawn: Drawn | None = None


@dataclass(frozen=True)
class Tried:
    """An earlier attempt of the same proposer in the same run.

    `merits` has one number a metric, more is better, in the task's order; None for an attempt without a valid score
    of the present cohort. `parent_merits` is the same of what it was built on. `ending` is how it ended, and `fault`
    the fixed code of what was wrong; neither has a word of a log or of the judge in it.

    `drawn` is what was chosen by chance to make it, `usd` and `seconds` what it cost. In a noisy task, `certified` are
    the merits by its repeats; `screened` is one that has none. `notes` is what the judge wrote beside its verdict, only
    where the task lets models know it.
    """

    node: str
    number: int
    parent: str
    operator: str
    description: str
    params: Mapping[str, Value] | None
    merits: tuple[float, ...] | None
    parent_merits: tuple[float, ...] | None
    kept: bool = False
    ending: Ending | None = None
    fault: str = ""
    drawn: Drawn | None = None
    usd: float = 0.0
    seconds: float = 0.0
    certified: tuple[float, ...] | None = None
    parent_certified: tuple[float, ...] | None = None
    screened: bool = False
    notes: str = ""


class Past(Protocol):
    """What a proposer may look back on. It costs the same to look at whether ten attempts are there or ten thousand."""

    @property
    def ended(self) -> Sequence[Tried]:
        """Charged attempts in the order in which they ended; it only ever grows, and is the same after a resume."""

    @property
    def running(self) -> Sequence[Tried]:
        """Attempts that have a proposal and no ending yet."""

    def knows(self, digest: str) -> bool:
        """Whether this tree was proposed before, or is the baseline's; it would not be paid for again."""

    def tree(self, node: str) -> Tree:
        """The whole tree of an ancestor or sibling; LookupError for a node without a candidate."""


class Nothing:
    """The past of a first attempt."""

    ended: Sequence[Tried] = ()
    running: Sequence[Tried] = ()

    def knows(self, digest: str) -> bool:
        del digest
        return False

    def tree(self, node: str) -> Tree:
        raise LookupError(node)


@dataclass(frozen=True)
class Tuned:
    """What a tune trial brought: a rounded score, or the fixed code of why there is none. Nothing of a log is in it."""

    score: float | None
    ending: str
    left: int


@dataclass(frozen=True)
class Playbook:
    """The prompts, skills and notes to work with, by their names; `version` is None where nobody keeps versions."""

    version: int | None
    files: Mapping[str, str]


Tune = Callable[[Proposal], Awaitable[Tuned]]


@dataclass(frozen=True)
class Brief:
    """What a proposer is asked for. `number` counts its attempts from 1, `seed` is the same on every resume.

    `parent_params` is what the parent was made with, None for one that was not made from a point. `again` counts how
    often the same attempt was asked before, when all that came was known already: another answer is wanted then.
    `repeated` is what came.

    `step` is the place in the branch: the first one begins it. `chooser` is asked wherever there is a choice.
    `profile` is what a run of the root told of its own code, a hint; with `hot`, time counts.

    For those that ask a model: `line` is the way to it, `lineage` what was done from the root to the parent, `refusal`
    says why a proposal would not be taken (None: it would), `tune` runs one against the cheaper target, of which
    `tunes` are left (None: no cap), `steering` is what a person said since the campaign began and may grow meanwhile,
    `deadline_s` the time that is left, `heard` takes what the stall watch
    should know of an agent. None or empty for all others.
    """

    node: str
    parent: str
    number: int
    seed: int
    tree: Tree
    parent_params: Mapping[str, Value] | None = None
    count: int = 1
    again: int = 0
    repeated: Sequence[Proposal] = ()
    step: int = 0
    past: Past = field(default_factory=Nothing)
    chooser: Chooser = field(default_factory=Chooser)
    profile: Profile | None = None
    hot: bool = False
    line: Line | None = None
    lineage: Sequence[Tried] = ()
    refusal: Callable[[Proposal], str | None] = lambda _: None
    tune: Tune | None = None
    tunes: int | None = None
    steering: Sequence[str] = ()
    playbook: Playbook | None = None
    deadline_s: float = 600.0
    heard: Callable[[Signal], None] = lambda _: None


@dataclass(frozen=True)
class ProposerContext:
    """What a proposer is made of. `name` is what it was asked for by, `ranking` the task's own order of scores.

    `tree` is what the search begins with, None where nobody has read it yet. `control`: it is to run beside another.
    `agent` is what a flag named. `arms` are the proposers that one of several works with, each made by `make`.
    """

    name: str
    task: Task
    ranking: Ranking
    tree: Tree | None = None
    control: bool = False
    agent: str | None = None
    arms: tuple[str, ...] = ()
    make: Callable[[str], "Proposer"] | None = None


class Proposer(Protocol):
    """`serial` proposers change code and see what came before; parameter proposers run as wide as the backend can.

    `branching` proposers build on earlier nodes; others always start at the root.
    """

    @property
    def serial(self) -> bool: ...

    @property
    def branching(self) -> bool: ...

    def exhausted(self, number: int) -> str | None:
        """Why there is no proposal of that number, where it is known beforehand."""

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        """At least one and at most `count` proposals. Raises Exhausted or Stalled."""


class Computed:
    """A proposer that only computes: nobody outside hears that it is asked, so that need not be on disk before."""
