"""Books as plain JSON, and back."""

import json
from collections.abc import Callable

import pytest

from orchestrator.budget import NOTHING, Accounts, Amounts, limits_of

ONE = Amounts.of(attempts=1)
WORST = Amounts.of(attempts=1, usd=0.5, tokens=1000, seconds=30)


def test_rows() -> None:
    """The books come back from JSON exact, open holds and their order too, and are then books of their own."""
    accounts = Accounts(limits_of(attempts=2, usd=1, stall_losses=1))
    accounts.reserve("1.3", WORST)
    accounts.reserve("1.2", NOTHING)
    accounts.refund("1.3", Amounts.of(usd=0.1))
    accounts.reserve("1.3", WORST)
    restored = Accounts.from_rows(json.loads(json.dumps(accounts.as_rows())))
    assert restored == accounts
    assert list(restored.holds) == ["1.2", "1.3"]
    restored.settle("1.3", ONE)
    assert restored != accounts
    assert accounts.holds["1.3"] == WORST


@pytest.mark.parametrize(
    "break_rows",
    [
        lambda rows: rows.pop(0),
        lambda rows: rows.append(rows[0]),
        lambda rows: rows.append(rows[7]),
        lambda rows: rows.append(rows[8]),
        lambda rows: rows[0].update(used=-1),
        lambda rows: rows[0].update(used=1.0),
        lambda rows: rows[0].update(limit="1"),
        lambda rows: rows[0].update(account="stall losses"),
        lambda rows: rows[0].update(account="cents"),
        lambda rows: rows[0].update(more=1),
        lambda rows: rows[7].update(more=1),
        lambda rows: rows[7].pop("usd"),
        lambda rows: rows[7].update(tokens=True),
        lambda rows: rows[8].update(amounts=[1]),
        lambda rows: rows[8].update(amounts={"usd": -1}),
        lambda rows: rows[8].update(hold=1),
        lambda rows: rows[8].update(kind="holt"),
    ],
)
def test_broken_rows(break_rows: Callable[[list[dict[str, object]]], object]) -> None:
    """Books that are not whole are refused."""
    accounts = Accounts(limits_of(attempts=2))
    accounts.reserve("a", ONE)
    rows = json.loads(json.dumps(accounts.as_rows()))
    break_rows(rows)
    with pytest.raises(ValueError, match=r"book|row|whole number|negative|Account"):
        Accounts.from_rows(rows)
