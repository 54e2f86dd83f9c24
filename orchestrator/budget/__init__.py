"""Caps that hold: accounts to reserve from, rules to stop by, a rate, and a policy for what ends free.

Pure: the time and chance are arguments, nothing is read or written. `stops` and `amounts` are used by their names.
"""

from orchestrator.budget.accounts import BOOKS, Accounts, Booking, DoesNotFit, Limits, Shortage, StallLosses
from orchestrator.budget.amounts import NOTHING, Account, Amounts, limits_of, micro_dollars, milliseconds, shown
from orchestrator.budget.rate import RateLimit
from orchestrator.budget.refunds import Charge, Decision, Quarantine, RefundPolicy, Requeue
from orchestrator.budget.stops import Progress, Stop

__all__ = [
    "BOOKS",
    "NOTHING",
    "Account",
    "Accounts",
    "Amounts",
    "Booking",
    "Charge",
    "Decision",
    "DoesNotFit",
    "Limits",
    "Progress",
    "Quarantine",
    "RateLimit",
    "RefundPolicy",
    "Requeue",
    "Shortage",
    "StallLosses",
    "Stop",
    "limits_of",
    "micro_dollars",
    "milliseconds",
    "shown",
]
