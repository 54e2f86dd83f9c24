"""What must hold of the books of a campaign that pays somebody, whatever was killed: they cover the provider's."""

from collections.abc import Sequence
from pathlib import Path

from orchestrator.budget import Account, Accounts
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.events import read_event
from orchestrator.domain.records import Phase
from orchestrator.domain.state import State
from tests.orchestrator.loop.books import check_books, ledger_of


def checked(folder: Path, billed: float, attempts: int) -> dict[str, object]:
    """What a finished campaign decided, once its books are found to be whole and to cover what the provider charged."""
    with ledger_of(folder) as ledger:
        check_books(ledger)
        rows = ledger.rows()
        events = [read_event(record.body) for record in ledger.read()]
    state, accounts = State.from_rows(rows), Accounts.from_ledger(rows)
    assert not accounts.holds
    assert not state.standing
    assert not state.open_calls
    assert all(node.phase is Phase.ENDED for node in state.nodes.values())
    assert accounts.used(Account.ATTEMPTS) == attempts, "each attempt is charged once"
    spent = sum(node.spent.microdollars for node in state.nodes.values()) + state.campaign.standing.microdollars
    assert accounts.used(Account.USD) == spent, "booked once, and to somebody"
    assert spent >= round(billed * 1_000_000, 3), "no less than the provider charges"
    never_more_than_reserved(events)
    champion = state.champion()
    told = {node.id: (node.params, node.ending, node.verdict and node.verdict.metrics) for node in state.nodes.values()}
    return {**told, "champion": champion and champion.id}


def never_more_than_reserved(events: Sequence[e.Event]) -> None:
    held: dict[str, int] = {}
    for event in events:
        if isinstance(event, e.Reserved):
            held[event.hold] = held.get(event.hold, 0) + event.amounts.get("usd", 0)
        elif isinstance(event, e.Settled | e.Refunded):
            assert event.spent.get("usd", 0) <= held.pop(event.hold), f"{event.hold} cost more than was set aside"


def lost(folder: Path) -> int:
    """Micro-dollars that the ledger books for what nobody saw the end of."""
    with ledger_of(folder) as ledger:
        events = [read_event(record.body) for record in ledger.read()]
    trials = [it.spent for it in events if isinstance(it, e.TrialEnded) and it.ending is Ending.INTERRUPTED]
    standing = [it.spent for it in events if isinstance(it, e.StandingEnded) and it.interrupted]
    return sum(spent.microdollars for spent in (*trials, *standing))
