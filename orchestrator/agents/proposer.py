"""A coding agent as a proposer: one chamber an attempt, what it changed as one proposal."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from orchestrator.agents.briefing import brief_of, rules_of
from orchestrator.agents.exchange import DOWN_BYTES
from orchestrator.agents.litter import unwalked
from orchestrator.agents.messages import BODY_BYTES, FILE_BYTES, FILES, ToolCall, Work
from orchestrator.agents.offers import LeftOut, NoOffer, Offer, offer_of
from orchestrator.agents.presets import OURS, ROOT, WORKSPACE, Agent, Told
from orchestrator.agents.session import Session
from orchestrator.agents.session import Told as ToolTold
from orchestrator.agents.steering import Instructions
from orchestrator.change import Policy
from orchestrator.domain.metric import Metric
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Spent
from orchestrator.door import BrokeOff, Door, NotStarted, Ran, TooLarge
from orchestrator.judge.helpers import helpers
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.line import Line
from orchestrator.offload import offload
from orchestrator.proposers.base import Barred, Brief, Exhausted, Stalled, Tuned, Unanswered
from orchestrator.proposers.llm.context import editable_paths
from orchestrator.task import Task
from sandbox import Bundle, Ending, Input, Job, Limits, Listener, Mode, Refused

GUEST = Path(__file__).parent / "guest"
_GUESTS = ("blastdoor_agent.py", "blastdoor_forwarder.py")
_FRAMES = ("blastdoor_frames.py", "blastdoor_values.py")
# A frame has more in it than the body of one request.
_AROUND_BYTES = 65_536
# Part of an agent's time that is kept back for its end and for handing over what it did.
_KEPT_S, _KEPT_PART = 30.0, 0.25
# Of its log; what it says beyond that is left out, rather than ending it.
_LOG_PART = 0.5


class Journal(Protocol):
    """Keeps the books of agents."""

    def intended(self, node: str) -> None:
        """On record when it returns: only then is a chamber opened."""

    def ended(self, node: str, end: "End") -> None: ...

    def listening(self, node: str) -> AbstractContextManager[Listener]:
        """Hears what the agent says while it works."""


@dataclass(frozen=True)
class End:
    """How an agent's chamber ended, in a few words; `why` is one line. `interrupted`: nothing came of it."""

    ending: str
    why: str = ""
    log: bytes = b""
    left_out: int = 0
    spent: Spent = field(default_factory=Spent)
    interrupted: bool = False


@dataclass(frozen=True)
class AgentProposer:
    """`inputs` are what its chamber may read of the task's data; `allowance` is told to it, and held by the gateway.
    `pool` is what it may read besides where it makes combinations, and there is nothing before that is frozen.
    """

    task: Task
    policy: Policy
    metrics: Sequence[Metric]
    agent: Agent
    door: Door
    journal: Journal
    inputs: tuple[Input, ...] = ()
    allowance: Allowance | None = None
    pool: Callable[[], tuple[Input, ...]] = tuple

    serial = True
    branching = True

    def exhausted(self, number: int) -> str | None:
        del number
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        """Raises Stalled, Unanswered, NotStarted for a chamber that could not be had, and Exhausted for one that never
        can be.
        """
        if brief.line is None:
            raise AssertionError("an agent needs a line to a model")
        attempt = _Attempt(self, brief, brief.line, time.monotonic())
        bundle = await offload(attempt.bundle)
        self.journal.intended(brief.node)
        try:
            with self.journal.listening(brief.node) as listener:
                ran = await self.door.run(attempt.job, bundle, listener, talk=attempt.session.talk)
        except (NotStarted, TooLarge, Refused, BrokeOff) as error:
            self.journal.ended(brief.node, _end_of(error))
            if isinstance(error, BrokeOff) and not error.proven:
                raise Unanswered(f"its chamber broke off, and a control job passed: {error}") from error
            if isinstance(error, TooLarge | Refused):
                raise Exhausted(f"no agent can be run: {error}") from error
            raise
        except BaseException:
            spent = self.door.at_most(attempt.job.limits, time.monotonic() - attempt.started)
            self.journal.ended(brief.node, End("interrupted", spent=spent, interrupted=True))
            raise
        return [await attempt.conclude(ran)]


@dataclass(frozen=True)
class _Left:
    """What an agent left: an offer with its words, or why there is none."""

    offer: Offer | None = None
    said: str = ""
    left_out: LeftOut = field(default_factory=LeftOut)
    why: str = ""


class _Attempt:
    """One agent at work on one brief."""

    def __init__(self, proposer: AgentProposer, brief: Brief, line: Line, started: float) -> None:
        self._proposer = proposer
        self._brief = brief
        self._line = line
        self._limits = proposer.task.agent.limits
        self.started = started
        self._submitted: tuple[Offer, str] | None = None
        total = min(brief.deadline_s, self._limits.wall)
        kept = min(_KEPT_S, _KEPT_PART * total)
        self._seconds = total - kept
        self.session = Session(
            line.app,
            Instructions(brief.steering),
            self._tool,
            brief.heard,
            finish_at=started + self._seconds,
            finish_s=0.6 * kept,
            down_bytes=_carried(self._limits, DOWN_BYTES),
            in_vain=lambda: line.barred is not None,
        )
        self.job = Job(
            command=("python3", f"{OURS}/blastdoor_agent.py"),
            image=proposer.agent.image,
            mode=Mode.RELAY,
            loopback=True,
            limits=self._limits,
            inputs=(*proposer.inputs, *proposer.pool()),
        )

    def bundle(self) -> Bundle:
        """The workspace without hidden paths, our forwarder beside it, and what the agent is told."""
        proposer, brief = self._proposer, self._brief
        shown = {path: file for path, file in brief.tree.items() if not proposer.policy.hides(path)}
        rules = rules_of(proposer.policy, brief, self._seconds, proposer.allowance, WORKSPACE)
        start = proposer.agent.start(Told(rules, self._line.models, proposer.task.model.max_output))
        told = brief_of(proposer.task, proposer.policy, proposer.metrics, brief, rules)
        editable = editable_paths(brief.tree, proposer.policy)
        env = {**start.env, **proposer.agent.env, **self._variables()}
        ours = {
            "plan.json": json.dumps(
                _plan(start.command, env, editable, unwalked(proposer.policy), self._limits)
            ).encode(),
            **{name: (GUEST / name).read_bytes() for name in _GUESTS},
            "bin/blastdoor": (GUEST / "blastdoor_tool.py").read_bytes(),
            **{name: file.data for name, file in helpers(_FRAMES).items()},
            **{name: text.encode() for name, text in start.files.items()},
        }
        files = {f"workspace/{path}": file.data for path, file in shown.items()}
        files |= {f".blastdoor/{name}": data for name, data in ours.items()}
        files |= {"BRIEF.md": told.encode(), "AGENTS.md": rules.encode()}
        executable = {f"workspace/{path}" for path, file in shown.items() if file.executable}
        return Bundle(files, frozenset(executable | {".blastdoor/bin/blastdoor"}))

    def _variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_API_KEY": self._line.token,
            "BLASTDOOR_BRIEF": f"{ROOT}/BRIEF.md",
            "BLASTDOOR_MODEL": self._line.models[0],
            "BLASTDOOR_MODE": "tune" if self._brief.tune else "submit",
            "BLASTDOOR_WORKSPACE": WORKSPACE,
        }

    async def _tool(self, call: ToolCall) -> ToolTold:
        if call.name not in ("tune", "submit"):
            return ToolTold(2, "there is tune and submit")
        if call.name == "tune" and self._brief.tune is None:
            return ToolTold(1, "this task has no tune mode, or nothing is left to tune with; use submit")
        try:
            offer = await self._offer(call.work)
        except NoOffer as error:
            return ToolTold(1, f"refused: {error}")
        proposal = self._proposal(offer, call.said)
        if why := await offload(self._brief.refusal, proposal):
            return ToolTold(1, f"refused: {why}")
        if call.name == "submit" or self._brief.tune is None:
            self._submitted = (offer, call.said)
            return ToolTold(0, "it is handed in" + _not_taken(offer), done=True)
        return ToolTold(0, _told_back(await self._brief.tune(proposal)) + _not_taken(offer))

    async def _offer(self, work: Work) -> Offer:
        return await offload(offer_of, self._brief.tree, work, self._proposer.policy)

    def _proposal(self, offer: Offer, said: str) -> Proposal:
        return offer.proposal(self._proposer.agent.name, self._line.models[0], said)

    async def conclude(self, ran: Ran) -> Proposal:
        """Book its end, and say what came of it."""
        try:
            left = await self._left(ran)
        except BaseException:
            # Its time may pass while its work is read: its chamber is paid for all the same.
            end = End("interrupted", log=ran.outcome.log_tail, spent=ran.spent, interrupted=True)
            self._proposer.journal.ended(self._brief.node, end)
            raise
        end = End(
            self._ending(ran), left.why or left.left_out.told("it"), ran.outcome.log_tail, len(left.left_out), ran.spent
        )
        self._proposer.journal.ended(self._brief.node, end)
        if self.session.error:
            raise self.session.error
        if left.offer is None:
            raise (Barred if self._barred else Stalled if self._never_answered else Unanswered)(left.why)
        return self._proposal(left.offer, left.said)

    async def _left(self, ran: Ran) -> "_Left":
        if self._submitted:
            offer, said = self._submitted
            return _Left(offer, said, offer.left_out)
        if self.session.broken:
            return _Left(why=f"the agent's chamber broke the protocol: {self.session.broken}")
        if self._barred:
            return _Left(why=f"the gateway refused what the agent asked first: {self._line.barred}")
        exited = self.session.exited
        if exited is None:
            why = f"the agent handed nothing over: {ran.outcome.why or ran.outcome.ending}"
            return _Left(why=why + self._refused)
        try:
            offer = await self._offer(exited.work)
        except NoOffer as error:
            why = "the model gave the agent no answer at all" if self._never_answered else str(error)
            return _Left(left_out=error.left_out, why=f"{why} (it exited with {exited.code}){self._refused}")
        return _Left(offer, left_out=offer.left_out)

    @property
    def _refused(self) -> str:
        """What the gateway refused last, for a person who wonders why nothing came of it."""
        return f"; the gateway refused: {self._line.refusal}" if self._line.refusal else ""

    @property
    def _never_answered(self) -> bool:
        """By the gateway's own count, which no agent can change."""
        return self._line.unanswered and not self._submitted and not self.session.broken

    @property
    def _barred(self) -> bool:
        return self._line.barred is not None and not self._submitted and not self.session.broken

    def _ending(self, ran: Ran) -> str:
        if self._submitted:
            return "submitted"
        if self.session.broken:
            return Ending.PROTOCOL
        if self._barred:
            return "refused"
        if self.session.exited is None:
            return ran.outcome.ending
        return "out of time" if self.session.overtime else f"exited with {self.session.exited.code}"


def _plan(
    command: tuple[str, ...], env: Mapping[str, str], editable: list[str], caches: list[str], limits: Limits
) -> dict[str, object]:
    return {
        "command": command,
        "env": dict(env),
        "workspace": WORKSPACE,
        "editable": editable,
        "caches": caches,
        "log_bytes": int(limits.log_bytes * _LOG_PART),
        "body_bytes": _carried(limits, BODY_BYTES),
        "caps": [FILES, _carried(limits, FILE_BYTES)],
    }


def _carried(limits: Limits, most: int) -> int:
    """Of so many bytes, those that one frame can carry."""
    return max(0, min(most, limits.frame_bytes - _AROUND_BYTES))


def _end_of(error: NotStarted | TooLarge | Refused | BrokeOff) -> End:
    if isinstance(error, BrokeOff):
        return End("broke off", str(error), spent=error.spent)
    return End("not started", str(error), spent=Spent() if isinstance(error, Refused) else error.spent)


def _told_back(tuned: Tuned) -> str:
    left = "" if tuned.left is None else f"; {tuned.left} left"
    return (f"no score: {tuned.ending}" if tuned.score is None else f"score {tuned.score:g}") + left


def _not_taken(offer: Offer) -> str:
    told = offer.left_out.told("you")
    return f"\n{told}" if told else ""
