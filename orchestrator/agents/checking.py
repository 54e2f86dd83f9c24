"""Whether an image has what its agent needs, asked of a chamber before anything is charged."""

from orchestrator.agents.presets import IMAGE, Agent
from orchestrator.door import BrokeOff, Door, NotStarted
from orchestrator.text import short
from sandbox import Bundle, Ending, Job, Limits

_LOOK = """
for tool in "$@"; do command -v "$tool" >/dev/null || { echo "it has no $tool"; exit 1; }; done
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { echo "its python3 is older than 3.9"; exit 1; }
"""
_LIMITS = Limits(wall=30, memory=256 * 1024**2)


async def objection(door: Door, agent: Agent) -> str | None:
    """Why the agent cannot be run in its image, in one line; None where it can."""
    job = Job(command=("sh", "-c", _LOOK, "sh", "python3", *agent.needs), image=agent.image, limits=_LIMITS)
    try:
        outcome = (await door.run(job, Bundle({}))).outcome
    except (NotStarted, BrokeOff) as error:
        return f"no chamber of the image {agent.image} comes up: {error}"
    if outcome.ending is Ending.COMPLETED:
        return None
    said = short(outcome.log_tail.decode("utf-8", "replace"), 200) or outcome.why or outcome.ending
    ours = agent.image == IMAGE
    how = "build it again with `blastdoor images build agent`" if ours else "add it, or change agent.image"
    return f"the image {agent.image} cannot run the agent {agent.name}: {said}; {how}"
