"""The lines of a budget, and how people read what is on them."""

from enum import StrEnum


class Account(StrEnum):
    """A line of the budget."""

    ATTEMPTS = "attempts"
    TUNES = "tunes"
    COMBINATION = "combination"
    MINIMISATION = "minimisation"
    CONTROL = "control"
    USD = "usd"
    TOKENS = "tokens"
    SECONDS = "seconds"
    STALL_LOSSES = "stall losses"


_NOUNS = {
    Account.ATTEMPTS: "attempt",
    Account.TUNES: "tune",
    Account.COMBINATION: "combination attempt",
    Account.MINIMISATION: "minimising trial",
    Account.CONTROL: "control attempt",
    Account.TOKENS: "token",
}


def shown(account: Account, units: int) -> str:
    """For a person: "$5.00", "90s", "1,200 tokens", "1 attempt"."""
    if account in (Account.USD, Account.STALL_LOSSES):
        whole, rest = divmod(units, 1_000_000)
        digits = f"{rest:06}"
        return f"${whole:,}.{digits[:2]}{digits[2:].rstrip('0')}"
    if account is Account.SECONDS:
        whole, rest = divmod(units, 1000)
        return f"{whole:,}" + (f".{rest:03}".rstrip("0") if rest else "") + "s"
    return f"{units:,} {_NOUNS[account]}{'' if units == 1 else 's'}"
