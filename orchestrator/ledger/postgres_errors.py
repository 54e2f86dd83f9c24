"""What PostgreSQL's errors mean to us. Nothing that it or its driver says is passed on without a look for secrets."""

from collections.abc import Collection
from urllib.parse import quote

import psycopg

from orchestrator.ledger.errors import (
    Away,
    Busy,
    Corrupt,
    Exists,
    Full,
    LedgerError,
    Missing,
    NotALedger,
    ReadOnly,
)

_LONGEST = 300
# Codes by which the server ends a connection, or takes none; also that of a session that was idle for too long.
_AWAY = ("08", "57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "53300")
_BUSY = ("55P03", "57014", "40P01", "40001")
_EXISTS = ("42P06", "42P07", "23505")
_STRANGE = ("42P01", "42703", "3F000")


def translated(name: str, error: BaseException | None, secrets: Collection[str]) -> LedgerError:
    code = getattr(error, "sqlstate", None) or ""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    said = redacted(" ".join((primary or str(error)).split()), secrets)[:_LONGEST]
    if code.startswith(_AWAY) or (not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)):
        return Away(said)
    match code:
        case "53100":
            return Full(name)
        case "42501" | "25006":
            return ReadOnly(f"{name} cannot be used so: {said}; ask its owner for the right")
        case "3D000":
            return Missing(f"{name}: {said}; make it first")
        case "XX001" | "XX002":
            return Corrupt(f"{name} is damaged ({said}); keep it, and go back to a copy")
    if code in _BUSY:
        return Busy(f"{name} is kept locked by another session ({said}); end that one, or try again")
    if code in _EXISTS:
        return Exists(f"{name} is there already; open it, or name another")
    if code in _STRANGE:
        return NotALedger(f"{name} is not a ledger of blastdoor ({said}); name another")
    return LedgerError(f"{name}: {said}")


def redacted(text: str, secrets: Collection[str]) -> str:
    """As it was given, and as a URL writes it."""
    for secret in secrets:
        for form in (secret, quote(secret, safe=""), quote(secret)):
            text = text.replace(form, "***")
    return text
