"""A proposal inside an attempt, and a change that a person brought."""

from pydantic import BaseModel, Field

from orchestrator.domain.proposal import Drawn, Value
from orchestrator.domain.verdict import Verdict


class LikenessRecord(BaseModel, extra="forbid", frozen=True):
    """`form` is the same for trees that differ only in writing, `sketch` tells how much two changes of one parent have
    in common. `twin` is the draft that it was most like when it was proposed, like "1.3#2", and `alike` how much.
    """

    form: str
    sketch: str = ""
    twin: str | None = None
    alike: float = 0.0


class Draft(BaseModel, extra="forbid", frozen=True):
    """A proposal inside an attempt; the one that is promoted becomes the node's candidate.

    `tried` is one that an agent tuned without handing it in: it is never promoted by itself. `finding` is the
    verifier's, "released" where a person let go what it held; `reasons` are what it said. `known_as` is the digest of
    the same tree with its parameters in our own writing, where they are written otherwise.
    """

    node: str
    number: int
    operator: str
    description: str
    params: dict[str, Value] | None = None
    model: str | None = None
    change: str | None = None
    tree: str | None = None
    refused: str | None = None
    playbook: int | None = None
    tried: bool = False
    origin: str | None = None
    finding: str | None = None
    reasons: str = ""
    steered: int = 0
    known_as: str | None = None
    likeness: LikenessRecord | None = None
    drawn: Drawn | None = None
    verdict: Verdict | None = None
    guarded: dict[str, bool] = Field(default_factory=dict)


class Injection(BaseModel, extra="forbid", frozen=True):
    """A change that a person brought, until a node takes it up. `on` is the node to build on, None for the champion."""

    id: int
    change: str
    description: str
    on: str | None = None
