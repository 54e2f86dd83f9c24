"""An image is looked at before anything is charged."""

from dataclasses import replace

from orchestrator.agents.checking import objection
from orchestrator.agents.presets import agent_of
from orchestrator.task import AgentSpec
from sandbox.backends.fake.backend import FakeBackend, FakeWorld, Guest
from tests.orchestrator.agents.local import Scene


async def _lacking(guest: Guest) -> int:
    guest.log(f"it has no {guest.job.command[-1]}\n".encode())
    return 1


async def _well(_: Guest) -> int:
    return 0


async def test_what_is_missing_is_said() -> None:
    """One line: which image, which agent, what is missing and what to do."""
    door = replace(Scene().proposer().door, backend=FakeBackend(_lacking))
    said = await objection(door, agent_of(AgentSpec()))
    assert said == (
        "the image blastdoor-agent:latest cannot run the agent claude-code: it has no claude; "
        "build it again with `blastdoor images build agent`"
    )
    own = await objection(door, agent_of(AgentSpec(name="mine", image="mine:1", command=("run",))))
    assert own == "the image mine:1 cannot run the agent mine: it has no run; add it, or change agent.image"


async def test_a_well_made_image() -> None:
    """Nothing is said of one that has everything."""
    door = replace(Scene().proposer().door, backend=FakeBackend(_well))
    assert await objection(door, agent_of(AgentSpec())) is None


async def test_no_engine() -> None:
    """A provider that does not answer is said to be that, and not the image."""
    door = replace(Scene().proposer().door, backend=FakeBackend(_well, FakeWorld(answers=False)))
    assert "comes up" in (await objection(door, agent_of(AgentSpec())) or "")
