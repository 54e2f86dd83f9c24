"""What an attempt may cost at worst, and what it did cost, as amounts for the accounts."""

from collections.abc import Sequence

from orchestrator.budget import Account, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.records import Guard, Node, Role, Spent
from orchestrator.domain.verdict import Mode
from orchestrator.loop.backstop import (
    Walls,
    walls_of_asking,
    walls_of_attempt,
    walls_of_guard,
    walls_of_search,
    walls_of_trial,
    worst_of_walls,
)
from orchestrator.loop.workbench import Parts, Workbench
from sandbox import Limits

_SLOTS = {
    Role.SEARCH: Account.ATTEMPTS,
    Role.INJECTED: Account.ATTEMPTS,
    Role.CONTROL: Account.CONTROL,
    Role.MINIMISED: Account.MINIMISATION,
}


def account_of(bench: Parts) -> Account:
    """What attempts are drawn from: a combination stage has an account of its own."""
    return Account.ATTEMPTS if bench.jobs.pool is None else Account.COMBINATION


def slot(bench: Parts, role: Role) -> Amounts:
    """The one slot that a node of this role uses up; a baseline uses none."""
    account = _SLOTS.get(role)
    if account is Account.ATTEMPTS:
        account = account_of(bench)
    return Amounts.exact({account: 1}) if account else Amounts()


def usage(spent: Spent) -> Amounts:
    return Amounts.exact(
        {
            Account.USD: spent.microdollars,
            Account.TOKENS: spent.tokens,
            Account.SECONDS: spent.milliseconds,
        }
    )


def worst_of_attempt(bench: Parts, role: Role, guards: list[Guard]) -> Amounts:
    """Its slot, what it may use of models, and all chambers that it may need but those of tuning."""
    walls = [walls_of_guard(Limits.model_validate(guard.limits), guard.place) for guard in guards]
    asking = usage(bench.asking) if role is Role.SEARCH else Amounts()
    return slot(bench, role) + asking + _worst(bench, walls_of_attempt(bench.judge_mode, bench.task, role, walls))


def worst_of_search(bench: Parts) -> Amounts:
    """What an attempt of the search sets aside in all, tuning included."""
    chambers = sum((_worst(bench, walls) for walls in walls_of_search(bench.judge_mode, bench.task)), Amounts())
    return slot(bench, Role.SEARCH) + usage(bench.asking) + chambers


def worst_of_asking(bench: Parts) -> Amounts:
    return _worst(bench, walls_of_asking(bench.judge_mode, bench.task))


def worst_of_trial(bench: Parts, mode: Mode) -> Amounts:
    return _worst(bench, walls_of_trial(bench.judge_mode, bench.task, mode))


def worst_of_run(bench: Parts) -> Amounts:
    """Of one trial and one judging, where nobody asks twice."""
    return _worst(bench, bench.judge_mode.walls_of_run(bench.task, Mode.SUBMIT))


def worst_of_guard(bench: Parts, guard: Guard) -> Amounts:
    return _worst(bench, [walls_of_guard(Limits.model_validate(guard.limits), guard.place)])


def _worst(bench: Parts, walls: Sequence[Walls]) -> Amounts:
    """Each at the price of the place where it is run: candidates may be sent away, judges stay."""
    places = ((bench.door, True), (bench.home, False))
    return sum((usage(worst_of_walls(door.tariff, walls, away=away)) for door, away in places), Amounts())


def hold_of(node: Node) -> str:
    return f"{node.id}#{node.take}"


def unbooked(node: Node) -> Amounts:
    """What the node has spent that the accounts do not know of yet."""
    return usage(node.spent - node.booked)


def refund_all(bench: Workbench, node: Node, *, lost: bool) -> list[e.Refunded]:
    """Close every hold of a node; what was spent goes with the first. `lost` for what somebody else is to blame for."""
    mine = [hold for hold in bench.book.accounts.holds if hold.split("#", 1)[0] == node.id]
    spent = unbooked(node)
    refunds = []
    for hold in mine:
        refunds.append(e.Refunded(hold=hold, node=node.id, spent=spent.as_row(), lost=lost))
        spent = Amounts()
    return refunds
