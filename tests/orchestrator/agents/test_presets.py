"""Agents that packages of others bring: known by name like ours, and at fault under their own name."""

from pathlib import Path

import pytest

from orchestrator.agents.presets import IMAGE, Told, agent_of
from orchestrator.choices import AGENTS
from orchestrator.proposers import PluginFailed
from orchestrator.task import AgentSpec, TaskError
from tests.plugins import Packages

PRESET = """
from orchestrator.agents.presets import PROMPT, Preset, Start

blastdoor_interface = 1


def start(told):
    return Start(("polite", PROMPT, "--model", told.model), {"POLITE": "1"})


POLITE = Preset("polite", start, image="polite-agent:1")
"""
POLITE = {"blastdoor.agents": {"polite": "{module}:POLITE"}}
TOLD = Told("be brief", ("large",), 1000)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", AGENTS.built_in)
def test_what_is_built_in(name: str) -> None:
    """Every declared agent can be started."""
    agent = agent_of(AgentSpec(name=name))
    assert agent.start(TOLD).command[0] == agent.needs[0]


def test_an_agent_of_a_package(packages: Packages) -> None:
    """It is started as its package says, in its package's image where the task names none."""
    packages.install(PRESET, POLITE)
    agent = agent_of(AgentSpec(), "polite")
    assert (agent.name, agent.image, agent.needs) == ("polite", "polite-agent:1", ("polite",))
    assert agent.start(TOLD).command[-1] == "large"
    assert agent_of(AgentSpec(name="polite", image="own:2")).image == "own:2"
    assert agent_of(AgentSpec()).image == IMAGE


def test_a_near_name(packages: Packages) -> None:
    """Names of packages are among those that are told."""
    packages.install(PRESET, POLITE)
    with pytest.raises(TaskError, match='there is no agent "pollite"; did you mean "polite"'):
        agent_of(AgentSpec(name="pollite"))


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
