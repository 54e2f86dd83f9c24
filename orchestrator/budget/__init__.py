"""Caps that hold: accounts to reserve from, rules to stop by, a rate, and a policy for what ends free.

Pure: the time and chance are arguments, nothing is read or written. `stops` and `refunds` are used by their names.
"""

from orchestrator.budget.accounts import BOOKS, Accounts, Booking, DoesNotFit, Limits, Shortage, StallLosses
from orchestrator.budget.amounts import NOTHING, Amounts, limits_of, micro_dollars, milliseconds
from orchestrator.budget.rate import RateLimit
from orchestrator.domain.account import Account, shown

__all__ = [
    "BOOKS",
    "NOTHING",
    "Account",
    "Accounts",
    "Amounts",
    "Booking",
    "DoesNotFit",
    "Limits",
    "RateLimit",
    "Shortage",
    "StallLosses",
    "limits_of",
    "micro_dollars",
    "milliseconds",
    "shown",
]
