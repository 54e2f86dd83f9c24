"""The limits of a trial's and a judge's chamber as they are opened. In relay mode both live while either works."""

from orchestrator.domain.verdict import Mode
from orchestrator.task import Task
from sandbox import Limits

# What nobody's turn is: frames on their way, chambers that start, an event loop that is late.
_BETWEEN_S = 30.0
_LONGEST_S = 86_400.0 * 7
# In front of a candidate's answer, the judge is told what it was and how long it took.
_STAMP_BYTES = 64
# Frames that the judge does not ask for: loading, and empty calls.
_OURS = 64


def relays(task: Task) -> bool:
    """Whether the judge calls the candidate, so that both are there at the same time."""
    return task.judge.mode == "relay"


def side_by_side(task: Task) -> Limits:
    """What one attempt holds of the machine at a time, as the limits of a single chamber."""
    own, judge = task.limits, task.judge.limits
    if not relays(task):
        return own
    return own.model_copy(update={"cpus": own.cpus + judge.cpus, "memory": own.memory + judge.memory})


def chamber_limits(task: Task, mode: Mode) -> tuple[Limits, Limits]:
    """Of the candidate's chamber, and of the judge's. Whose turns took too long is held apart from these walls."""
    own, judge = task.target(mode).limits, task.judge.limits
    if not relays(task):
        return own, judge
    both = own.wall + judge.wall + _BETWEEN_S
    # The judge's chamber is there first, and waits until the candidate's is opened and built.
    waits = task.stall.provision + (own.build if task.trial.build else 0.0)
    frame = max(judge.frame_bytes, own.frame_bytes + _STAMP_BYTES)
    return (
        # How many calls there are is the judge's to say: a candidate must not pay for a cap that its judge reached.
        own.model_copy(update={"wall": min(both, _LONGEST_S), "frames": max(own.frames, judge.frames) + _OURS}),
        judge.model_copy(update={"wall": min(both + waits, _LONGEST_S), "frame_bytes": frame}),
    )
