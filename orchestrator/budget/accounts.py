"""The books of a campaign: reserve the worst case before anything starts, settle what it cost, refund what was not
its fault. A cap cannot be overrun by concurrency, because a reservation counts as spent until it is closed.

Every operation takes plain values and either happens as a whole or raises and changes nothing, so that a replay of the
same operations gives the same books. Each costs the same however long the campaign is: totals are kept, not summed.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from orchestrator.budget.amounts import NOTHING, SLOTS, USAGE, Amounts, check_units
from orchestrator.domain.account import Account, shown

# Where a ledger keeps them among its rows.
BOOKS = ("accounts", "books")

Limits = Mapping[Account, int | None]
Row = dict[str, object]
# Books of before there was such an account have no row for it, and neither have those that do not use it.
_LATER = {Account.MINIMISATION}


@dataclass(frozen=True)
class Shortage:
    """What does not fit. `left` is below zero where more was spent than had been reserved."""

    account: Account
    needed: int
    left: int
    could_fit_later: bool

    def __str__(self) -> str:
        left = f"{shown(self.account, max(0, self.left))} left"
        over = f" ({shown(self.account, -self.left)} over the cap)" if self.left < 0 else ""
        next_step = "open work may free enough" if self.could_fit_later else "raise the cap to go on"
        return f"{self.account}: {shown(self.account, self.needed)} needed, {left}{over}; {next_step}"


class DoesNotFit(Exception):
    """A reservation is over a cap. When it may wait, open holds could free enough; else only a raised cap helps."""

    def __init__(self, shortage: Shortage) -> None:
        super().__init__(shortage)
        self.account = shortage.account
        self.needed = shortage.needed
        self.left = shortage.left
        self.may_wait = shortage.could_fit_later


@dataclass(frozen=True)
class Booking:
    """What closing a hold did."""

    spent: Amounts
    reserved: Amounts

    @property
    def freed(self) -> Amounts:
        return self.reserved.over(self.spent)

    @property
    def overrun(self) -> Amounts:
        """What was spent beyond the hold; it is booked like the rest."""
        return self.spent.over(self.reserved)


@dataclass(frozen=True)
class StallLosses:
    """What free endings cost, in whole units. A memo: the same sums are in the accounts, where they stay spent."""

    endings: int = 0
    usd: int = 0
    tokens: int = 0
    seconds: int = 0

    @property
    def cost(self) -> Amounts:
        return Amounts.exact({account: getattr(self, account) for account in USAGE})

    def __str__(self) -> str:
        return f"{self.endings:,} free ending{'' if self.endings == 1 else 's'} cost {self.cost}"


_OF_LOSSES = asdict(StallLosses()).keys()


class Accounts:
    """Limits (none given: no cap), what is used, and what open holds keep. For each account and at any time,
    limit = used + held + left.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits: dict[Account, int | None] = dict.fromkeys(Account)
        self._used = dict.fromkeys((*SLOTS, *USAGE), 0)
        self._held = dict.fromkeys((*SLOTS, *USAGE), 0)
        self._holds: dict[str, Amounts] = {}
        self._losses = StallLosses()
        self.raise_limits(limits or {})

    def limit(self, account: Account) -> int | None:
        return self._limits[account]

    def used(self, account: Account) -> int:
        """Of stall losses: the dollars among them."""
        return self._losses.usd if account is Account.STALL_LOSSES else self._used[account]

    def held(self, account: Account) -> int:
        return self._held.get(account, 0)

    def left(self, account: Account) -> int | None:
        """None: no cap. Below zero where more was spent than had been reserved."""
        limit = self._limits[account]
        return None if limit is None else limit - self.used(account) - self.held(account)

    @property
    def holds(self) -> Mapping[str, Amounts]:
        """The open ones, oldest first."""
        return MappingProxyType(self._holds)

    @property
    def losses(self) -> StallLosses:
        return self._losses

    @property
    def stall_losses_exhausted(self) -> bool:
        """Whether stalls have cost what they may. A cap of zero is reached by the first loss, not before."""
        limit = self._limits[Account.STALL_LOSSES]
        return limit is not None and self._losses.usd > 0 and self._losses.usd >= limit

    def fits(self, amounts: Amounts) -> bool:
        return self.shortage(amounts) is None

    def shortage(self, amounts: Amounts, within: str | None = None) -> Shortage | None:
        """None when it fits. Of several, one that waiting cannot cure goes first: then there is no use in waiting.

        `within` names the open hold that wants more: it cannot wait for what it holds itself. Holds that all want
        more of the same account can wait for each other; the caller must let one of them end.
        """
        own = NOTHING if within is None else self._open(within)
        found = None
        for account, needed in amounts.entries:
            left = self.left(account)
            if left is None or needed <= left:
                continue
            later = needed <= left + self.held(account) - own[account]
            if found is None or (found.could_fit_later and not later):
                found = Shortage(account, needed, left, later)
        return found

    def reserve(self, hold: str, amounts: Amounts) -> None:
        """Open a hold for the worst case. Raises DoesNotFit, or ValueError where the hold is open already."""
        if hold in self._holds:
            raise ValueError(f"{hold!r} is reserved already; extend it, or close it first")
        self._require(amounts, None)
        self._holds[hold] = amounts
        self._hold(amounts, 1)

    def extend(self, hold: str, amounts: Amounts) -> None:
        """Add to an open hold: a trial more for an attempt. Raises like reserve."""
        total = self._open(hold) + amounts
        self._require(amounts, hold)
        self._holds[hold] = total
        self._hold(amounts, 1)

    def settle(self, hold: str, spent: Amounts) -> Booking:
        """Close a hold whose ending is charged: what was spent is used, the rest is free again."""
        return self._close(hold, spent)

    def refund(self, hold: str, spent: Amounts, *, lost: bool = True) -> Booking:
        """Close a hold whose ending is not charged: slots go back, what was spent stays spent. `lost` says that it is
        counted as a loss, too.

        Raises ValueError for a slot in `spent`: a trial that was charged has a hold of its own, to be settled.
        """
        _check_usage(spent)
        booking = self._close(hold, spent)
        if lost:
            self._lose(spent, endings=1)
        return booking

    def charge(self, spent: Amounts, lost: bool = False) -> Booking:
        """Book usage that arrived after its hold was closed; `lost` when that ending was free. No slots."""
        _check_usage(spent)
        self._use(spent)
        if lost:
            self._lose(spent, endings=0)
        return Booking(spent=spent, reserved=NOTHING)

    def credit(self, freed: Amounts, lost: bool = False) -> None:
        """Take back what was booked too much; `lost` where it is among the losses of free endings."""
        _check_usage(freed)
        books = self._losses.cost if lost else NOTHING
        if any(units > self._used[account] for account, units in freed.entries) or (lost and not freed <= books):
            raise ValueError(f"{freed}: more than was booked")
        for account, units in freed.entries:
            self._used[account] -= units
        if lost:
            old = self._losses
            self._losses = replace(
                old,
                usd=old.usd - freed[Account.USD],
                tokens=old.tokens - freed[Account.TOKENS],
                seconds=old.seconds - freed[Account.SECONDS],
            )

    def raise_limits(self, limits: Limits) -> None:
        """Set caps again; None lifts one, and those not named stay. A cap may come down, but not below what is used
        and held: ValueError, and then none is changed.
        """
        for account, limit in limits.items():
            if limit is None:
                continue
            old = self._limits[account]
            bound = self.used(account) + self.held(account)
            if check_units(account, limit) < bound and (old is None or limit < old):
                raise ValueError(
                    f"{account}: a cap of {shown(account, limit)} is below the {shown(account, bound)} used and held"
                )
        self._limits.update(limits)

    def copy(self) -> "Accounts":
        other = Accounts()
        other._limits = self._limits.copy()
        other._used = self._used.copy()
        other._held = self._held.copy()
        other._holds = self._holds.copy()
        other._losses = self._losses
        return other

    def as_rows(self) -> list[Row]:
        """Plain JSON, exact: a row for each account, one for the losses and their cap, one for each open hold."""
        accounts: list[Row] = [
            {"kind": "account", "account": str(account), "limit": self._limits[account], "used": used}
            for account, used in self._used.items()
            if account not in _LATER or used or self._limits[account] is not None
        ]
        losses: Row = {"kind": "losses", "limit": self._limits[Account.STALL_LOSSES], **vars(self._losses)}
        holds: list[Row] = [
            {"kind": "hold", "hold": hold, "amounts": amounts.as_row()} for hold, amounts in self._holds.items()
        ]
        return [*accounts, losses, *holds]

    @classmethod
    def from_ledger(cls, rows: Mapping[tuple[str, str], str]) -> "Accounts":
        """Those among all rows of a ledger; empty ones where none were written yet."""
        return cls.from_rows(json.loads(rows[BOOKS])) if BOOKS in rows else cls()

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, object]]) -> "Accounts":
        """What as_rows wrote. Raises ValueError for anything else: books that cannot be read are not guessed."""
        books = cls()
        missing = set(Account)
        for row in rows:
            read = books._read(row)
            if read is not None and read not in missing:
                raise ValueError(f"{read} is in the books twice")
            missing -= {read}
        if missing := missing - _LATER:
            raise ValueError(f"not in the books: {', '.join(sorted(missing))}")
        return books

    def _read(self, row: Mapping[str, object]) -> Account | None:
        """Take one row in; the account that it is about, or None for a hold."""
        match row:
            case {"kind": "account", "account": str(name), "limit": limit, "used": used, **rest} if not rest:
                account = Account(name)
                if account not in self._used:
                    raise ValueError(f"not an account's row: {row}")
                self._used[account] = check_units(account, used)
            case {"kind": "losses", "limit": limit, **fields} if fields.keys() == _OF_LOSSES:
                account = Account.STALL_LOSSES
                self._losses = StallLosses(**{name: check_units(account, units) for name, units in fields.items()})
            case {"kind": "hold", "hold": str(hold), "amounts": Mapping() as amounts, **rest} if not rest:
                if hold in self._holds:
                    raise ValueError(f"hold {hold!r} is in the books twice")
                self._holds[hold] = Amounts.from_row(amounts)
                self._hold(self._holds[hold], 1)
                return None
            case _:
                raise ValueError(f"not a row of the books: {row}")
        self._limits[account] = None if limit is None else check_units(account, limit)
        return account

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Accounts):
            return NotImplemented
        return self._state() == other._state()

    def _state(self) -> tuple[object, ...]:
        return self._limits, self._used, self._held, self._holds, self._losses

    def _open(self, hold: str) -> Amounts:
        try:
            return self._holds[hold]
        except KeyError:
            raise ValueError(f"{hold!r} is not reserved, or closed already") from None

    def _require(self, amounts: Amounts, within: str | None) -> None:
        shortage = self.shortage(amounts, within)
        if shortage:
            raise DoesNotFit(shortage)

    def _close(self, hold: str, spent: Amounts) -> Booking:
        reserved = self._open(hold)
        del self._holds[hold]
        self._hold(reserved, -1)
        self._use(spent)
        return Booking(spent=spent, reserved=reserved)

    def _hold(self, amounts: Amounts, sign: int) -> None:
        for account, units in amounts.entries:
            self._held[account] += sign * units

    def _use(self, amounts: Amounts) -> None:
        for account, units in amounts.entries:
            self._used[account] += units

    def _lose(self, spent: Amounts, endings: int) -> None:
        old = self._losses
        self._losses = StallLosses(
            endings=old.endings + endings,
            usd=old.usd + spent[Account.USD],
            tokens=old.tokens + spent[Account.TOKENS],
            seconds=old.seconds + spent[Account.SECONDS],
        )


def _check_usage(spent: Amounts) -> None:
    slots = spent.only(SLOTS)
    if slots:
        raise ValueError(f"{slots}: a slot is used only where a hold is settled")
