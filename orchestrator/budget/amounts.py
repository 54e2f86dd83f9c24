"""What can be spent, counted in whole units: books that must balance to the last unit cannot be kept in floats.

A dollar is a million units (micro-dollars) and a second a thousand (milliseconds); all else is counted by the piece.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from orchestrator.domain.account import Account, shown

Number = int | float | Decimal | Fraction

# A float's last digits are noise (0.1 + 0.2); what is under a thousandth of a unit is not a spending.
_NOISE_DIGITS = 3
_NOISE = Decimal(1).scaleb(-_NOISE_DIGITS)
# So many digits that no float, however large, is rounded before its noise is.
_EXACT = Context(prec=400)


SLOTS = (Account.ATTEMPTS, Account.TUNES, Account.COMBINATION, Account.MINIMISATION, Account.CONTROL)
USAGE = (Account.USD, Account.TOKENS, Account.SECONDS)

_ORDER = dict.fromkeys((*SLOTS, *USAGE))


def micro_dollars(usd: Number) -> int:
    """Whole micro-dollars that cover the sum: rounded up. Raises ValueError for a negative or endless one."""
    return math.ceil(_scaled(usd, 1_000_000))


def milliseconds(seconds: Number) -> int:
    """Whole milliseconds that cover the time: rounded up. Raises ValueError for a negative or endless one."""
    return math.ceil(_scaled(seconds, 1000))


@dataclass(frozen=True)
class Amounts:
    """So much of each account, in whole units and never negative; what is zero is left out, so equal sums are equal.

    `of` takes dollars and seconds, `exact` and `from_row` take whole units.
    """

    entries: tuple[tuple[Account, int], ...] = ()

    def __post_init__(self) -> None:
        given = dict(self.entries)
        for account, units in self.entries:
            if account not in _ORDER:
                raise ValueError(f"{account} is a memo of what was lost; it cannot be spent or reserved")
            if type(units) is not int or units < 0:
                check_units(account, units)
        if len(given) < len(self.entries):
            raise ValueError("an account is named twice in one sum")
        kept = [*filter(given.get, _ORDER)]
        object.__setattr__(self, "entries", tuple(zip(kept, map(given.__getitem__, kept), strict=True)))

    @classmethod
    def of(
        cls,
        *,
        attempts: int = 0,
        tunes: int = 0,
        combination: int = 0,
        minimisation: int = 0,
        control: int = 0,
        usd: Number = 0,
        tokens: int = 0,
        seconds: Number = 0,
    ) -> "Amounts":
        """Dollars and seconds as people say them, rounded up to whole units."""
        slots = (attempts, tunes, combination, minimisation, control)
        return cls(tuple(zip(_ORDER, (*slots, micro_dollars(usd), tokens, milliseconds(seconds)), strict=True)))

    @classmethod
    def exact(cls, units: Mapping[Account, int]) -> "Amounts":
        return cls(tuple(units.items()))

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> "Amounts":
        """What as_row wrote. Raises ValueError for anything else."""
        return cls(tuple([(it := Account(name), check_units(it, units)) for name, units in row.items()]))

    def as_row(self) -> dict[str, int]:
        """Plain JSON: {"attempts": 1, "usd": 500000}."""
        return {str(account): units for account, units in self.entries}

    def only(self, accounts: Iterable[Account]) -> "Amounts":
        wanted = frozenset(accounts)
        return Amounts(tuple([entry for entry in self.entries if entry[0] in wanted]))

    def over(self, other: "Amounts") -> "Amounts":
        """By how much this is more than the other, account by account."""
        theirs = dict(other.entries)
        return Amounts(tuple([(account, max(0, units - theirs.get(account, 0))) for account, units in self.entries]))

    def __getitem__(self, account: Account) -> int:
        return dict(self.entries).get(account, 0)

    def __add__(self, other: "Amounts") -> "Amounts":
        if not self.entries:
            return other
        sums = dict(self.entries)
        for account, units in other.entries:
            sums[account] = sums.get(account, 0) + units
        return Amounts(tuple(sums.items()))

    def __sub__(self, other: "Amounts") -> "Amounts":
        """Raises ValueError where less than nothing would be left."""
        return Amounts(tuple((account, self[account] - other[account]) for account in _ORDER))

    def __le__(self, other: "Amounts") -> bool:
        """In every account; two sums may well be neither less nor more."""
        return all(units <= other[account] for account, units in self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __str__(self) -> str:
        return ", ".join(shown(account, units) for account, units in self.entries) or "nothing"


NOTHING = Amounts()


def limits_of(
    *,
    attempts: int | None = None,
    tunes: int | None = None,
    combination: int | None = None,
    minimisation: int | None = None,
    control: int | None = None,
    usd: Number | None = None,
    tokens: int | None = None,
    seconds: Number | None = None,
    stall_losses: Number | None = None,
) -> dict[Account, int]:
    """Caps in whole units. None is left out: no cap. Dollars (also of stall losses) and seconds are rounded down."""
    given: dict[Account, int | None] = {
        Account.ATTEMPTS: attempts,
        Account.TUNES: tunes,
        Account.COMBINATION: combination,
        Account.MINIMISATION: minimisation,
        Account.CONTROL: control,
        Account.USD: None if usd is None else math.floor(_scaled(usd, 1_000_000)),
        Account.TOKENS: tokens,
        Account.SECONDS: None if seconds is None else math.floor(_scaled(seconds, 1000)),
        Account.STALL_LOSSES: None if stall_losses is None else math.floor(_scaled(stall_losses, 1_000_000)),
    }
    return {account: check_units(account, units) for account, units in given.items() if units is not None}


def check_units(account: Account, units: object) -> int:
    """A whole number from zero on, or ValueError: rows come from a file, and JSON has floats and booleans too."""
    if not isinstance(units, int) or isinstance(units, bool):
        raise ValueError(f"{account}: {units!r} is not a whole number")
    if units < 0:
        raise ValueError(f"{account}: {units} is negative")
    return units


@lru_cache(maxsize=1024, typed=True)
def _scaled(value: Number, units: int) -> Fraction | Decimal:
    """Exact. Limits and prices stay the same from attempt to attempt; seconds that passed, which are floats, do not,
    and a decimal is made of one in a sixth of the time that a fraction takes.
    """
    exact: Fraction | Decimal
    try:
        if isinstance(value, float) and math.isfinite(value):
            exact = _EXACT.quantize(_EXACT.multiply(Decimal(str(value)), units), _NOISE)
        else:
            exact = round(Fraction(str(value) if isinstance(value, float) else value) * units, _NOISE_DIGITS)
    except (OverflowError, ValueError):
        raise ValueError(f"{value} is not an amount") from None
    if exact < 0:
        raise ValueError(f"{value} is negative")
    return exact
