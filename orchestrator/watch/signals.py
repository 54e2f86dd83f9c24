"""What the detector hears. All of it is seen from outside: by the gateway on the stream, or by the orchestrator."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The first group comes from a model's stream, the second from what the orchestrator itself knows."""

    REQUESTED = "requested"
    WAITING = "waiting"
    STARTED = "started"
    THINKING = "thinking"
    TOKENS = "tokens"
    PING = "ping"
    TOOL_CALLED = "tool called"
    TOOL_ANSWERED = "tool answered"
    FINISHED = "finished"
    CUT = "cut"

    HELD = "held"
    RELEASED = "released"
    CPU = "cpu"


class Hold(StrEnum):
    """Why nothing is expected to come. Every hold has an age cap; none lasts for ever.

    The detector itself finds that a first token is due; all others it is told.
    """

    FIRST_TOKEN = "first token"  # noqa: S105 - the tokens of a model
    THINKING = "thinking"
    TOOL = "tool"
    QUEUED = "queued"
    TRIAL = "trial"
    JUDGING = "judging"


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that happened at `at`, in seconds of a steady clock.

    `call` names the request it belongs to. `tokens` is how many more were estimated from the bytes of a delta, shown or
    thought; with `hold=Hold.THINKING` they were thought, and more of that is to be expected. `digest` identifies a tool
    call or its answer after normalization: equal digests are equal calls. `hold` says what is waited for; `cpu_s` is
    the processor time that the agent's chamber has used so far.
    """

    at: float
    kind: Kind
    call: str = ""
    tokens: int = 0
    digest: str = ""
    hold: Hold | None = None
    cpu_s: float = 0.0
