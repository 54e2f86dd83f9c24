"""What an attempt sets aside, and what of it its proposer may ask a model for: the same number in both places."""

from dataclasses import dataclass

from orchestrator.budget import Account, Amounts, Shortage
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Guard, Role, Spent
from orchestrator.loop.money import usage, worst_of_attempt
from orchestrator.loop.spares import is_one_left
from orchestrator.loop.workbench import Workbench


@dataclass(frozen=True)
class Grant:
    """`asking` is the part of `amounts` that is for the proposer's line; None where it asks no model."""

    amounts: Amounts
    asking: Spent | None = None


def asks_nobody(bench: Workbench, node: str, parent: str) -> bool:
    """Whether an attempt, which need not be there yet, has its change already or will take up what a sibling got."""
    state = bench.state
    if node in state.nodes and any(not draft.tried for draft in state.drafts(node)):
        return True
    return bench.at_once > 1 and is_one_left(state, parent, to=node)


def grant_of(bench: Workbench, role: Role, guards: list[Guard], *, asks: bool) -> Grant | Shortage:
    """Where the whole allowance fits no more, and never will, what is left will do if it covers a question."""
    accounts, models = bench.book.accounts, bench.models
    full = worst_of_attempt(bench, role, guards)
    if models is None or role is not Role.SEARCH or ModelRole.USER not in models.allowances:
        return accounts.shortage(full) or Grant(full)
    allowance = models.allowances[ModelRole.USER]
    whole = Spent(microdollars=allowance.microdollars, tokens=allowance.tokens or 0)
    others = full - usage(whole)
    if not asks:
        return accounts.shortage(others) or Grant(others, Spent())
    short = accounts.shortage(full)
    if short is None or short.could_fit_later:
        return short or Grant(full, whole)
    if short := accounts.shortage(least_of_attempt(bench, guards)):
        # An arm that asks nobody can go on with what is left.
        return (accounts.shortage(others) or Grant(others, Spent())) if bench.has_free_arm else short
    asking = Spent(
        microdollars=whole.microdollars - _missing(bench, full, Account.USD),
        tokens=whole.tokens - _missing(bench, full, Account.TOKENS),
    )
    return Grant(others + usage(asking), asking)


def least_of_attempt(bench: Workbench, guards: list[Guard]) -> Amounts:
    """What a cap must cover so that the search can begin an attempt: its worst case, with one question to a model."""
    full, models = worst_of_attempt(bench, Role.SEARCH, guards), bench.models
    if models is None or ModelRole.USER not in models.allowances:
        return full
    allowance = models.allowances[ModelRole.USER]
    whole = Spent(microdollars=allowance.microdollars, tokens=allowance.tokens or 0)
    return full - usage(whole) + usage(models.grants.enough)


def _missing(bench: Workbench, amounts: Amounts, account: Account) -> int:
    left = bench.book.accounts.left(account)
    return 0 if left is None else max(0, amounts[account] - left)
