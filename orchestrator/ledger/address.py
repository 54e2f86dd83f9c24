"""Where a campaign's ledger is when it is not in a file: a PostgreSQL database, and the campaign's place in it."""

import re
from dataclasses import dataclass

from pydantic import SecretStr

from orchestrator.ledger.errors import LedgerError

_CAMPAIGN = re.compile(r"[0-9a-f]{32}")
_URL = re.compile(r"postgres(?:ql)?://(?P<rest>.+)", re.DOTALL)
_ADVICE = "write it as postgresql://user:password@host/database, with %40 for @, %2F for / and so on in the password"


@dataclass(frozen=True)
class Address:
    """The URL may hold a password, so it is never printed; `campaign` is what the database knows the campaign by."""

    url: SecretStr
    campaign: str

    def __post_init__(self) -> None:
        """Raises LedgerError. What a library would say about a wrong URL might quote the password; this does not."""
        if not _CAMPAIGN.fullmatch(self.campaign):
            raise LedgerError(f"{self.campaign[:80]!r} names no campaign; it has 32 characters of 0-9 and a-f")
        found = _URL.fullmatch(self.url.get_secret_value())
        if not found:
            raise LedgerError(f"the ledger's URL is none of PostgreSQL; {_ADVICE}")
        authority = re.split("[/?#]", found["rest"], maxsplit=1)[0]
        if found["rest"].count("@") > 1 or ("@" in found["rest"] and "@" not in authority):
            raise LedgerError(
                f"the ledger's URL cannot be read: a name or the password has a bare @, / or ?; {_ADVICE}"
            )

    @property
    def schema(self) -> str:
        return f"blastdoor_{self.campaign}"
