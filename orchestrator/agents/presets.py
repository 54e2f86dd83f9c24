"""Agents that are known by name, and any command in an image: what is started, with which variables and files."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from orchestrator.choices import AGENTS
from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, ProposerContext
from orchestrator.proposers.outside import blamed
from orchestrator.registry import ChoiceError, UnknownName
from orchestrator.task import AgentSpec, TaskError

IMAGE = "blastdoor-agent:latest"
# Where things are in an agent's chamber.
ROOT = "/work/src"
WORKSPACE = f"{ROOT}/workspace"
OURS = f"{ROOT}/.blastdoor"
BRIEF = f"{ROOT}/BRIEF.md"
PROMPT = f"Your task is described in {BRIEF}. Read it first, and then do what it asks, in {WORKSPACE}."
# A trial can take long: no tool of the agent's may be given up before the agent itself is.
_TOOL_S = 86_400


@dataclass(frozen=True)
class Told:
    """What an agent is told when it is started. `rules` is for its system prompt."""

    rules: str
    models: Sequence[str]
    max_output: int

    @property
    def model(self) -> str:
        return self.models[0]


@dataclass(frozen=True)
class Start:
    """`files` are put beside our own, in a folder that is not the workspace."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Agent:
    """`needs` are programs that its image must have."""

    name: str
    image: str
    needs: tuple[str, ...]
    start: Callable[[Told], Start]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """An agent that is known by name. Its image must have `program`; `image` is for a task that names none."""

    program: str
    start: Callable[[Told], Start]
    image: str = IMAGE


@dataclass(frozen=True)
class Planned:
    """An agent that has no chamber yet: enough to plan a campaign with."""

    agent: Agent
    serial = True
    branching = True

    def exhausted(self, number: int) -> str | None:
        del number
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        raise AssertionError(f"{brief.node}: {self.agent.name} has no chamber yet")


def planned(context: ProposerContext) -> Planned:
    """Only looked up: it works once it has a chamber, a line and its books (wiring/agents.py)."""
    return Planned(agent_of(context.task.agent, context.agent))


def agent_of(spec: AgentSpec, name: str | None = None) -> Agent:
    """The agent of a task; `name` is what a flag said instead. Raises TaskError for one that nobody knows."""
    name = name or spec.name
    if spec.command is not None and name == spec.name:
        command = spec.command
        return Agent(name, spec.image or IMAGE, (command[0],), lambda _: _plain(command), spec.env)
    preset = _preset(name)
    return Agent(name, spec.image or preset.image, (preset.program,), preset.start, spec.env)


def _preset(name: str) -> Preset:
    """Raises TaskError for one that nobody knows, or that cannot be used."""
    try:
        entry, preset = AGENTS.find(name), AGENTS.load(name)
    except UnknownName:
        known = AGENTS.names()
        near = get_close_matches(name, known, 1)
        hint = f'did you mean "{near[0]}"? For' if near else f"known are {', '.join(known)}; for"
        raise TaskError(f'there is no agent "{name}"; {hint} any other, give agent.command and agent.image') from None
    except ChoiceError as error:
        raise TaskError(str(error)) from None
    who = f'the agent "{name}"{entry}'
    if not isinstance(preset, Preset):
        raise TaskError(f"{who} is no Preset but a {type(preset).__name__}; see docs/plugins.md")
    return replace(preset, start=_started(preset.start, who)) if entry.is_outside else preset


def _started(start: Callable[[Told], Start], who: str) -> Callable[[Told], Start]:
    """What goes wrong in another package's code is told with its name."""

    def begin(told: Told) -> Start:
        with blamed(who):
            begun = start(told)
            if not isinstance(begun, Start):
                raise TypeError(f"it is started with a {type(begun).__name__}, not a Start")
            return begun

    return begin


def _plain(command: tuple[str, ...]) -> Start:
    """Rules in a file that many agents read unasked, and all else in variables."""
    return Start(command, {"BLASTDOOR_PROMPT": PROMPT, "BLASTDOOR_RULES": f"{ROOT}/AGENTS.md"})


def _claude_code(told: Told) -> Start:
    models = dict.fromkeys(
        (
            "ANTHROPIC_MODEL",
            "ANTHROPIC_SMALL_FAST_MODEL",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            "CLAUDE_CODE_SUBAGENT_MODEL",
        ),
        told.model,
    )
    command = ("claude", "--print", PROMPT, "--model", told.model, "--append-system-prompt", told.rules)
    # The chamber is the boundary: whatever the agent may do to itself in there, it may. Tools that need a network, or
    # describe themselves at length, would only cost.
    options = ("--dangerously-skip-permissions", "--disable-slash-commands", "--no-session-persistence")
    tools = ("--tools", "Bash,Read,Edit,Write,Glob,Grep")
    return Start(
        (*command, *options, *tools, "--output-format", "stream-json", "--verbose"),
        {
            **models,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(told.max_output),
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "BASH_DEFAULT_TIMEOUT_MS": str(_TOOL_S * 1000),
            "BASH_MAX_TIMEOUT_MS": str(_TOOL_S * 1000),
        },
    )


def _mini_swe_agent(told: Told) -> Start:
    """Its own settings stay as they are shipped, but for what is said in its system prompt and how long tools take."""
    raw = "{% raw %}" + told.rules.replace("{%", "{ %") + "{% endraw %}"
    settings = {
        "agent": {"system_template": raw, "mode": "yolo"},
        "environment": {"timeout": _TOOL_S},
        "model": {"model_kwargs": {"drop_params": True, "max_tokens": told.max_output}},
    }
    command = ("mini", "--model", f"anthropic/{told.model}", "--agent-class", "default", "--yolo", "--exit-immediately")
    where = ("--config", "mini.yaml", "--config", f"{OURS}/mini.yaml", "--output", "/work/tmp/trajectory.json")
    return Start(
        (*command, *where, "--cost-limit", "0", "--task", PROMPT),
        {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_SILENT_STARTUP": "1",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "4",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        {"mini.yaml": json.dumps(settings)},
    )


CLAUDE_CODE = Preset("claude", _claude_code)
MINI_SWE_AGENT = Preset("mini", _mini_swe_agent)
