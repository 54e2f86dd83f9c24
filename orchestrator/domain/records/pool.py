"""The pool of a combination stage: nodes of an earlier run, and what they left."""

from pydantic import BaseModel

# What money is set aside under while members are run.
POOL = "pool"


class Combining(BaseModel, extra="forbid", frozen=True):
    """What makes a run a combination stage: the run whose nodes are combined, and how its pool is chosen. `serve` is
    the command by which members are called; empty where combinations get what they left, and nothing more.
    """

    base: int
    pool: int
    diversity: float
    serve: tuple[str, ...] = ()


class MemberOutputs(BaseModel, extra="forbid", frozen=True):
    """What a member of a pool left on a split; `fault` says why there is nothing."""

    outputs: str | None = None
    bytes: int = 0
    fault: str = ""


class PoolMember(BaseModel, extra="forbid", frozen=True):
    """A node of the base stage: its candidate's commit, and the digest of what it left on each split.

    `distance` is how far it is from those that were chosen before it, from 0 to 1; None for the first.
    """

    node: str
    commit: str
    outputs: dict[str, str]
    bytes: int = 0
    distance: float | None = None


class MemberAtWork(BaseModel, extra="forbid", frozen=True):
    """A member that is being run for a pool."""

    node: str
    split: str
    since: str
