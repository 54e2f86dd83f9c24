"""What a campaign needs to ask a model: key, prices, allowances, and the gateway that holds them together."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from orchestrator.agents.presets import agent_of
from orchestrator.awake import Awake
from orchestrator.budget import Account, micro_dollars, shown
from orchestrator.choices import PROPOSERS
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Allowance
from orchestrator.loop.book import Book
from orchestrator.loop.grants import Grants
from orchestrator.loop.models import Models
from orchestrator.settings import Settings
from orchestrator.task import ModelSpec, StallSpec, Task, TaskError, format_duration
from orchestrator.watch.config import Config
from orchestrator.watch.learning import learn_floor
from orchestrator.watch.replaying import lowest_rates
from orchestrator.wiring.least import TABLES, check_allowances, least_of
from orchestrator.wiring.options import Options

if TYPE_CHECKING:
    from orchestrator.llm.prices import Prices

# The better model for those who propose, a cheap and diverse pool for those who edit the playbook, one that reasons for
# those who check.
MODELS = {
    ModelRole.USER: ("claude-opus-5-5",),
    ModelRole.EVOLVER: ("claude-haiku-5-5", "claude-sonnet-5-5"),
    ModelRole.VERIFIER: ("claude-sonnet-5-5",),
}
_NO_KEY = "the proposer {} asks a model, and there is no key for one; set ANTHROPIC_API_KEY, or use another proposer"


def asks_a_model(options: Options) -> bool:
    return any(PROPOSERS.has(name, "asks_a_model") for name in options.proposers)


def has_free_arm(options: Options) -> bool:
    """Whether one of several proposers asks no model."""
    return bool(options.arms) and not all(PROPOSERS.has(name, "asks_a_model") for name in options.arms)


def allowances_of(task: Task, options: Options, settings: Settings) -> dict[ModelRole, Allowance]:
    """What one line of each role may use. An attempt's is never more than the campaign's whole cap.

    Raises TaskError for a cap that leaves nothing to ask with.
    """
    usd, tokens = capped(task.model, options["usd"], options["tokens"])
    spec = task.model
    roles = {
        ModelRole.USER: (spec.models, usd),
        ModelRole.EVOLVER: (task.roles.evolver.models, task.roles.evolver.usd) if task.roles.evolver else None,
        ModelRole.VERIFIER: (task.roles.verifier.models, task.roles.verifier.usd) if task.roles.verifier else None,
    }
    return {
        role: Allowance(
            role=role,
            models=given[0] or settings.models or MODELS[role],
            microdollars=micro_dollars(given[1]),
            tokens=tokens,
            per_minute=spec.per_minute,
        )
        for role, given in roles.items()
        if given
    }


def capped(spec: ModelSpec, usd: float | None, tokens: int | None) -> tuple[float, int]:
    """What one line may use: never more than the whole cap. Raises TaskError for a cap that leaves nothing."""
    for name, cap in (("usd", usd), ("tokens", tokens)):
        if cap == 0:
            raise TaskError(
                f"a cap of 0 {name} leaves nothing to ask a model with; raise --{name}, or use another proposer"
            )
    return min(spec.usd, usd or spec.usd), min(spec.tokens, tokens or spec.tokens)


def models_lines(task: Task, options: Options, settings: Settings) -> list[str]:
    """Whom each role asks and for how much, and where both come from; nothing where no model is asked."""
    if not asks_a_model(options):
        return []
    specs = {ModelRole.USER: task.model, ModelRole.EVOLVER: task.roles.evolver, ModelRole.VERIFIER: task.roles.verifier}
    lines = []
    for role, allowance in allowances_of(task, options, settings).items():
        spec = specs[role]
        whence = "task" if spec and spec.models else "user" if settings.models else "default"
        dollars = "task" if spec and "usd" in spec.model_fields_set else "default"
        if spec and allowance.microdollars < micro_dollars(spec.usd):
            dollars = options.sources["usd"]
        who = "model" if role is ModelRole.USER else f"{role} model"
        names, most = ", ".join(allowance.models), shown(Account.USD, allowance.microdollars)
        each = "an asking" if role is ModelRole.EVOLVER else "an attempt"
        lines.append(f"{who} {names} ({whence}), {most} {each} ({dollars})")
    return lines


def worst_of_asking(allowances: Mapping[ModelRole, Allowance]) -> Spent:
    """What one attempt sets aside for models: its proposer's line, and its verifier's."""
    mine = [it for role, it in allowances.items() if role is not ModelRole.EVOLVER]
    return Spent(microdollars=sum(it.microdollars for it in mine), tokens=sum(it.tokens or 0 for it in mine))


def watch_config(stall: StallSpec) -> Config:
    return Config(
        first_token_s=stall.first_token,
        floor=stall.floor,
        window_s=stall.window,
        grace_s=stall.grace,
        thinking_s=stall.thinking,
        tool_s=stall.tool,
        waiting_s=stall.waiting,
        loop=stall.loop,
    )


def learnt_config(stall: StallSpec, folder: Path, agent: str, model: str) -> tuple[Config, str]:
    """With the floor that the agent's own past allows and why it is that, where the task wants one learnt."""
    config = watch_config(stall)
    if stall.learn is None:
        return config, ""
    learnt = learn_floor(lowest_rates(folder, config, agent, model), config.floor, stall.learn)
    promised = "" if learnt.alarm_rate is None else f"; ends at most {100 * learnt.alarm_rate:.2g} % of healthy ones"
    return replace(config, floor=learnt.floor), f"{learnt.why}{promised}"


def check_models(allowances: Mapping[ModelRole, Allowance], prices: "Prices") -> None:
    """Every model of every role has a price. Raises TaskError for one that has none, before the first call."""
    from orchestrator.llm.prices import UnknownModel

    for role, allowance in allowances.items():
        for model in allowance.models:
            try:
                prices.of(model)
            except UnknownModel as error:
                raise TaskError(f"{TABLES[role]}.models: {error}") from None


@dataclass(frozen=True)
class Ready:
    """What may be asked, and what it costs."""

    allowances: Mapping[ModelRole, Allowance]
    prices: "Prices"
    key: SecretStr


def ready_models(task: Task, options: Options, settings: Settings) -> Ready:
    """All that can be known without asking. Raises TaskError for what is missing: run, plan and check say the same."""
    key = key_of(settings, options["proposer"])
    allowances = allowances_of(task, options, settings)
    ready = Ready(allowances, prices_of(settings), key)
    check_models(allowances, ready.prices)
    check_allowances(task, options, allowances, ready.prices)
    return ready


def key_of(settings: Settings, proposer: str) -> SecretStr:
    """Raises TaskError where there is none."""
    if settings.api_key is None or not settings.api_key.get_secret_value().strip():
        raise TaskError(_NO_KEY.format(proposer))
    return settings.api_key


def prices_of(settings: Settings) -> "Prices":
    """Raises TaskError for a file of prices that cannot be read."""
    from orchestrator.llm.prices import BadPrices, Prices

    try:
        return Prices.load(settings.prices)
    except BadPrices as error:
        raise TaskError(str(error)) from None


def least_of_asking(task: Task, ready: Ready) -> int:
    """Micro-dollars that an attempt sets aside for models where no more is left: one question, and its review."""
    user = ready.allowances[ModelRole.USER]
    others = worst_of_asking(ready.allowances).microdollars - user.microdollars
    return others + least_of(task, ModelRole.USER, user.models[0], ready.prices).microdollars


@asynccontextmanager
async def open_models(
    task: Task, options: Options, settings: Settings, book: Book, folder: Path, awake: Awake
) -> AsyncIterator[Models | None]:
    """None where no model is asked. Raises TaskError for what is missing, before anything is asked or charged."""
    if not asks_a_model(options):
        yield None
        return
    ready = ready_models(task, options, settings)
    import orchestrator.llm.asking  # noqa: F401  # slow to load, which must not count as a model's silence
    from orchestrator.llm.gateway import Gateway
    from orchestrator.llm.upstream import Upstream

    agent = (options["agent"] or task.agent.name) if options["proposer"] == "agent" else options["proposer"]
    user = ready.allowances[ModelRole.USER]
    config, floor_why = learnt_config(task.stall, folder, agent, user.models[0])
    async with Gateway(Upstream(settings.api_url, ready.key), ready.prices, awake) as gateway:
        yield Models(
            provider=gateway,
            book=book,
            grants=Grants(book, ready.allowances, least_of(task, ModelRole.USER, user.models[0], ready.prices)),
            config=config,
            agent=agent,
            configuration=configuration_of(task, options["proposer"], options["agent"]),
            folder=folder,
            floor_why=floor_why,
            clock=awake,
        )


def configuration_of(task: Task, proposer: str, agent: str | None = None) -> str:
    """A short name for what shapes the work beside agent and model: stalls are counted by it."""
    if proposer == "agent":
        return f"{agent_of(task.agent, agent).image}, {format_duration(task.agent.limits.wall)} at most"
    form = f"{task.model.form}, " if proposer == "llm" else ""
    return f"{proposer}, {form}{task.model.proposals} a call"
