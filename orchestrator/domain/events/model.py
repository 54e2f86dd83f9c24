"""Models and those who work with them: calls, agents, stalls, reviews, and the playbook."""

from typing import Literal

from orchestrator.domain.events.base import OneEvent
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Spent


class ModelCallIntended(OneEvent):
    """A call to a model is about to be made; `worst` is what it can cost. `node` is empty for work of no attempt.

    `configuration` is a short name of what shapes the work of the one who asks; empty where older records do not tell.
    """

    kind: Literal["model call intended"] = "model call intended"
    node: str
    call: str
    role: ModelRole
    model: str
    worst: Spent
    configuration: str = ""


class ModelCallEnded(OneEvent):
    """What it did cost: as the provider counted it, or the worst case where no last word came."""

    kind: Literal["model call ended"] = "model call ended"
    node: str
    call: str
    role: ModelRole
    model: str
    ending: CallEnding
    tokens: Tokens
    spent: Spent
    first_s: float | None = None
    seconds: float = 0.0


class AgentIntended(OneEvent):
    """A chamber for a coding agent is about to be opened. `configuration` is a short name of all that shapes it."""

    kind: Literal["agent intended"] = "agent intended"
    node: str
    agent: str
    configuration: str


class AgentEnded(OneEvent):
    """`ending` is how its chamber ended, `why` one line; `left_out` counts files that it may not change."""

    kind: Literal["agent ended"] = "agent ended"
    node: str
    ending: str
    why: str = ""
    log: str | None = None
    left_out: int = 0
    spent: Spent = Spent()
    interrupted: bool = False


class StallFound(OneEvent):
    """An agent gave no sign of life, or went in circles; recorded with the refund. `lost` is what it had spent.

    `cause` is the detector's code, `after_s` how long it took to notice, `saved_s` what a plain idle time-out of
    1,200 s would have waited longer.
    """

    kind: Literal["stall found"] = "stall found"
    node: str
    agent: str
    model: str
    configuration: str
    cause: str
    detail: str = ""
    after_s: float = 0.0
    saved_s: float = 0.0
    lost: Spent = Spent()


class Reviewed(OneEvent):
    """What a verifier made of a change before a trial was paid for. It can hold or flag, and never scores.

    `unreviewed`: nobody could be asked, or nothing was left to ask with; the attempt goes on.
    """

    kind: Literal["reviewed"] = "reviewed"
    node: str
    draft: int
    finding: Literal["pass", "flag", "hold", "unreviewed"]
    reasons: str


class PlaybookChanged(OneEvent):
    """A version of what agents work with: `files` is its artifact. `used` says whether it is the present one now.

    One that is not challenges the present one. `level` and `pairs` are fixed here, before anything is measured: how
    likely it may be that it is adopted although it is no better, and after how many pairs of attempts at most.
    """

    kind: Literal["playbook changed"] = "playbook changed"
    version: int
    files: str
    parent: int | None
    by: Literal["default", "task", "person", "evolver"]
    why: str
    used: bool = True
    level: float | None = None
    pairs: int = 0


class PlaybookGiven(OneEvent):
    """Which version an attempt works with, said before it asks a model. `challenger` is the one whose test it is
    part of, None for an attempt that is in none.
    """

    kind: Literal["playbook given"] = "playbook given"
    node: str
    version: int
    challenger: int | None = None


class PlaybookUsed(OneEvent):
    """A version that was there becomes the present one."""

    kind: Literal["playbook used"] = "playbook used"
    version: int
    by: Literal["person", "evolver"]
    why: str


class PlaybookDiscarded(OneEvent):
    """A challenger that was not shown to be better; it stays in the log."""

    kind: Literal["playbook discarded"] = "playbook discarded"
    version: int
    why: str
