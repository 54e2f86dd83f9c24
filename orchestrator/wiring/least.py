"""What a cap must cover at least: the smallest first question of each role, and one attempt at its worst.

One below that would end the campaign before it has begun, so it is said before anything is started.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.budget import Account, micro_dollars, shown
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.verifier import ANSWER_TOKENS
from orchestrator.task import Task, TaskError
from orchestrator.wiring.options import Options

if TYPE_CHECKING:
    from orchestrator.llm.prices import Prices

# No question with its rules and its files is smaller.
LEAST_INPUT = 3_000
TABLES = {ModelRole.USER: "model", ModelRole.EVOLVER: "roles.evolver", ModelRole.VERIFIER: "roles.verifier"}
_SAID = {"flag": "--{}", "campaign": "--{}", "task": "budget.{}", "user": "the setting {}"}


def least_of(task: Task, role: ModelRole, model: str, prices: "Prices") -> Spent:
    output = _output(task, role)
    cost = prices.of(model).worst(LEAST_INPUT, output, written=False, hour=False)
    return Spent(microdollars=cost, tokens=LEAST_INPUT + output)


def check_allowances(task: Task, options: Options, allowances: Mapping[ModelRole, Allowance], prices: "Prices") -> None:
    """Raises TaskError for an allowance that does not cover one question, with the key to raise."""
    for role, allowance in allowances.items():
        # Evolvers take turns, all others ask the first.
        for model in allowance.models if role is ModelRole.EVOLVER else allowance.models[:1]:
            least = least_of(task, role, model, prices)
            asked = f"one question to {model} and an answer of {_output(task, role):,} tokens"
            for account, had, needed in (
                (Account.USD, allowance.microdollars, least.microdollars),
                (Account.TOKENS, allowance.tokens, least.tokens),
            ):
                if had is not None and had < needed:
                    raise TaskError(
                        f"{_key(task, options, role, account)} of {shown(account, had)} is not enough for {asked}, "
                        f"which may take {shown(account, needed)}; raise it, or lower {_lowered(role)}"
                    )


def check_cap(needed: int, options: Options, site: str) -> None:
    """Raises TaskError where the cap on dollars does not even cover the baseline and one attempt after it, each by
    itself, in micro-dollars.
    """
    if options["usd"] is not None and (had := micro_dollars(options["usd"])) < needed:
        cap, most = _SAID[options.sources["usd"]].format("usd"), shown(Account.USD, needed)
        raise TaskError(
            f"{cap} of {shown(Account.USD, had)} is not enough for one attempt on {site}, which may cost {most} at its "
            "worst: the limits of all its chambers, and all that is charged before and after; raise it, or lower "
            "limits.wall"
        )


def _output(task: Task, role: ModelRole) -> int:
    if role is ModelRole.VERIFIER and task.roles.verifier:
        return ANSWER_TOKENS + task.roles.verifier.thinking
    return task.model.max_output


def _lowered(role: ModelRole) -> str:
    return "roles.verifier.thinking" if role is ModelRole.VERIFIER else "model.max_output"


def _key(task: Task, options: Options, role: ModelRole, account: Account) -> str:
    """What keeps the allowance so small: the key of the task, or the campaign's cap where that is less."""
    name = account.value
    own = task.model.tokens if account is Account.TOKENS else task.model.usd
    clipped = options[name] is not None and options[name] < own
    if clipped and (role is ModelRole.USER or account is Account.TOKENS):
        return _SAID[options.sources[name]].format(name)
    return f"{'model' if account is Account.TOKENS else TABLES[role]}.{name}"
