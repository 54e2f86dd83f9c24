"""What an attempt may cost at worst, and what it did cost, as amounts for the accounts."""

from orchestrator.budget import Account, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.records import Guard, Node, Role, Spent
from orchestrator.domain.verdict import Mode, Tier
from orchestrator.loop.workbench import Parts, Workbench
from sandbox import Job

_SLOTS = {Role.SEARCH: Account.ATTEMPTS, Role.INJECTED: Account.ATTEMPTS, Role.CONTROL: Account.CONTROL}


def slot(role: Role) -> Amounts:
    """The one slot that a node of this role uses up; a baseline uses none."""
    account = _SLOTS.get(role)
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
    """Slot, trial, two judgings (the second on the baseline, should the first break), the same for a replay, every
    guard, and held-out.
    """
    total = worst_of_trial(bench, Mode.SUBMIT)
    if role in (Role.SEARCH, Role.INJECTED) and bench.certify.replays:
        total += worst_of_trial(bench, Mode.SUBMIT)
    if role is not Role.CONTROL:
        for guard in guards:
            total += usage(bench.door.worst(bench.jobs.guard(guard)))
        total += worst_of_asking(bench)
    return slot(role) + total


def worst_of_asking(bench: Parts) -> Amounts:
    """One trial on the held-out split and one judging; nothing where the task has none."""
    if bench.task.heldout is None:
        return Amounts()
    judging = usage(bench.judge.door.worst(bench.jobs.judge(Mode.HELDOUT)))
    return usage(bench.door.worst(bench.jobs.trial(Mode.HELDOUT))) + judging


def worst_of_trial(bench: Parts, mode: Mode) -> Amounts:
    judging = usage(bench.judge.door.worst(bench.jobs.judge(mode)))
    trial = usage(bench.door.worst(trial_job(bench, mode)))
    # Where the judge calls, a second judging needs the baseline itself, not what it left.
    return trial + judging + judging + (trial if bench.tier is Tier.RELAY else Amounts())


def trial_job(parts: Parts, mode: Mode) -> Job:
    """What really runs as a trial: in shared mode it is the judge's command, under the judge's limits."""
    return parts.jobs.shared(mode, "0") if parts.tier is Tier.SHARED else parts.jobs.trial(mode)


def hold_of(node: Node) -> str:
    return f"{node.id}#{node.take}"


def unbooked(node: Node) -> Amounts:
    """What the node has spent that the accounts do not know of yet."""
    return usage(node.spent - node.booked)


def refund_all(bench: Workbench, node: Node) -> list[e.Refunded]:
    """Close every hold of a node; what was spent goes with the first."""
    mine = [hold for hold in bench.book.accounts.holds if hold.split("#", 1)[0] == node.id]
    spent = unbooked(node)
    refunds = []
    for hold in mine:
        refunds.append(e.Refunded(hold=hold, node=node.id, spent=spent.as_row()))
        spent = Amounts()
    return refunds
