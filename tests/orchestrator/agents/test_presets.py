"""What agents are started with: our presets, a command of the task's own, and those that packages of others bring."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.agents.checking import objection
from orchestrator.agents.presets import IMAGE, Told, agent_of
from orchestrator.choices import AGENTS
from orchestrator.proposers import PluginFailed
from orchestrator.task import AgentSpec, TaskError
from sandbox.backends.fake.backend import FakeBackend, FakeWorld, Guest
from tests.orchestrator.agents.local import Scene
from tests.plugins import Packages

PRESET = """
from orchestrator.agents.presets import PROMPT, Preset, Start

blastdoor_interface = 1


def start(told):
    return Start(("polite", PROMPT, "--model", told.model), {"POLITE": "1"})


POLITE = Preset("polite", start, image="polite-agent:1")
"""
POLITE = {"blastdoor.agents": {"polite": "{module}:POLITE"}}
TOLD = Told("Only solve.py. {{ 7 * 7 }} {% bad %}", ("claude-sonnet-4-5", "other"), 4000)
MINE = AgentSpec(name="mine", image="mine:1", command=("run", "me"), env={"A": "b"})


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", AGENTS.built_in)
def test_what_is_built_in(name: str) -> None:
    """Every declared agent can be started."""
    agent = agent_of(AgentSpec(name=name))
    assert agent.start(TOLD).command[0] == agent.needs[0]


def test_claude_code() -> None:
    """The rules are in its system prompt, every model is the one that is allowed, and nothing else calls out."""
    agent = agent_of(AgentSpec())
    start = agent.start(TOLD)
    assert (agent.name, agent.image, agent.needs) == ("claude-code", IMAGE, ("claude",))
    assert start.command[start.command.index("--append-system-prompt") + 1] == TOLD.rules
    assert {value for name, value in start.env.items() if name.endswith("MODEL")} == {"claude-sonnet-4-5"}
    assert start.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"


def test_mini_swe_agent() -> None:
    """Its settings stay as shipped but for a few; what looks like a template in the rules is none."""
    start = agent_of(AgentSpec(), "mini-swe-agent").start(TOLD)
    said = json.loads(start.files["mini.yaml"])["agent"]["system_template"]
    assert said.startswith("{% raw %}Only solve.py.")
    assert said.count("{%") == 2
    assert "anthropic/claude-sonnet-4-5" in start.command


def test_any_command() -> None:
    """A command of the task's own is started as it is; its variables are added."""
    agent = agent_of(MINE)
    assert (agent.name, agent.image, agent.needs, agent.env) == ("mine", "mine:1", ("run",), {"A": "b"})
    assert agent.start(TOLD).command == ("run", "me")


def test_an_agent_of_a_package(packages: Packages) -> None:
    """It is started as its package says, in its package's image where the task names none."""
    packages.install(PRESET, POLITE)
    agent = agent_of(AgentSpec(), "polite")
    assert (agent.name, agent.image, agent.needs) == ("polite", "polite-agent:1", ("polite",))
    assert agent.start(TOLD).command[-1] == "claude-sonnet-4-5"
    assert agent_of(AgentSpec(name="polite", image="own:2")).image == "own:2"
    assert agent_of(AgentSpec()).image == IMAGE


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("claude-cod", 'did you mean "claude-code"'),
        ("zzz", "known are claude-code, mini-swe-agent"),
        ("pollite", 'there is no agent "pollite"; did you mean "polite"'),
    ],
)
def test_unknown_agent(packages: Packages, name: str, hint: str) -> None:
    """One line, with what to do; names of packages are among those that are told."""
    packages.install(PRESET, POLITE)
    with pytest.raises(TaskError, match=hint):
        agent_of(AgentSpec(), name)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import nosuchthing", "cannot be loaded (ModuleNotFoundError"),
        (PRESET.replace('Preset("polite", start, image="polite-agent:1")', "start"), "is no Preset but a function"),
        (PRESET.replace("interface = 1", "interface = 2"), "says blastdoor_interface = 2"),
    ],
)
def test_it_cannot_be_used(packages: Packages, code: str, says: str) -> None:
    """One line with its package."""
    packages.install(code, POLITE, package="polite")
    with pytest.raises(TaskError) as caught:
        agent_of(AgentSpec(name="polite"))
    assert str(caught.value).startswith('the agent "polite" of the package polite 1.2 ')
    assert says in str(caught.value)


@pytest.mark.parametrize("body", ["{}['missing']", "return 'polite'"])
def test_it_fails_when_it_is_started(packages: Packages, body: str) -> None:
    """The session ends with one line that names it."""
    packages.install(PRESET.replace("    return Start", f"    {body}\n    return Start"), POLITE)
    with pytest.raises(PluginFailed, match=r'the agent "polite" of the package .* failed: '):
        agent_of(AgentSpec(name="polite")).start(TOLD)


async def test_its_image_is_looked_at() -> None:
    """Before anything is charged. One line: which image, which agent, what is missing and what to do; a provider that
    does not answer is said to be that. Nothing is said of an image that has everything.
    """

    async def lacking(guest: Guest) -> int:
        guest.log(f"it has no {guest.job.command[-1]}\n".encode())
        return 1

    async def well(_: Guest) -> int:
        return 0

    made = Scene().proposer().door
    bad, good, away = (
        replace(made, backend=backend)
        for backend in (FakeBackend(lacking), FakeBackend(well), FakeBackend(well, FakeWorld(answers=False)))
    )
    assert await objection(bad, agent_of(AgentSpec())) == (
        "the image blastdoor-agent:latest cannot run the agent claude-code: it has no claude; "
        "build it again with `blastdoor images build agent`"
    )
    own = "the image mine:1 cannot run the agent mine: it has no run; add it, or change agent.image"
    assert await objection(bad, agent_of(MINE)) == own
    assert await objection(good, agent_of(AgentSpec())) is None
    assert "comes up" in (await objection(away, agent_of(AgentSpec())) or "")
