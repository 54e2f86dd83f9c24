"""Many attempts at once, in all phases and with all endings, in any order: the books balance after each step."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from orchestrator.budget import NOTHING, Account, Accounts, Amounts, DoesNotFit, StallLosses
from orchestrator.budget.amounts import SLOTS, USAGE

CHARGED = [
    "scored",
    "build failed",
    "failed",
    "timed out",
    "out of memory",
    "invalid",
    "tampered",
    "pruned",
]
FREE = ["stalled", "infrastructure", "interrupted", "cancelled"]
PHASES = ["propose", "provision", "upload", "run", "collect", "judge"]
PAYABLE = (*SLOTS, *USAGE)

UNITS = st.one_of(st.integers(0, 3), st.integers(0, 60))
USAGES = st.dictionaries(st.sampled_from(USAGE), UNITS).map(Amounts.exact)
SLOT = st.sampled_from(SLOTS)
LIMITS = st.dictionaries(st.sampled_from(Account), st.one_of(st.none(), st.integers(0, 200)))
WHICH = st.integers(0, 2**16)


@dataclass
class Attempt:
    """What a naive clerk writes down of one attempt."""

    slot: Account
    reserved: Amounts
    phase: str = PHASES[0]
    paid: list[Amounts] = field(default_factory=list)
    lost: list[Amounts] = field(default_factory=list)
    charged: int = 0
    refunds: int = 0
    is_open: bool = True


class Campaign(RuleBasedStateMachine):
    """The accounts beside a clerk who sums everything up again each time."""

    @initialize(limits=LIMITS)
    def start(self, limits: dict[Account, int | None]) -> None:
        self.accounts = Accounts(limits)
        self.limits: dict[Account, int | None] = dict.fromkeys(Account) | limits
        self.attempts: dict[str, Attempt] = {}
        self.over: Counter[Account] = Counter()
        self.log: list[Callable[[Accounts], object]] = [lambda books: books.raise_limits(limits)]

    def do(self, operation: Callable[[Accounts], object]) -> object:
        """Do it, and write it down for a replay."""
        result = operation(self.accounts)
        self.log.append(operation)
        return result

    def pick(self, which: int, is_open: bool) -> tuple[str, Attempt]:
        found = [(hold, attempt) for hold, attempt in self.attempts.items() if attempt.is_open == is_open]
        return found[which % len(found)]

    def try_to(self, operation: Callable[[Accounts], object], needed: Amounts, own: Amounts = NOTHING) -> bool:
        """Reserve or extend; whether it fits, and whether it may wait, must be as the clerk says."""
        before = self.accounts.as_rows()
        used, held = self.sums()
        short = {
            account: units <= limit - used[account] - own[account]
            for account, units in needed.entries
            if (limit := self.limits[account]) is not None and used[account] + held[account] + units > limit
        }
        if short:
            with pytest.raises(DoesNotFit) as refused:
                self.do(operation)
            assert refused.value.may_wait == all(short.values())
            assert refused.value.account in short
            assert self.accounts.as_rows() == before
            return False
        self.do(operation)
        for account in dict(needed.entries):
            left = self.accounts.left(account)
            assert left is None or left >= 0
        return True

    @rule(slot=SLOT, usage=USAGES)
    def launch(self, slot: Account, usage: Amounts) -> None:
        hold = f"1.{len(self.attempts) + 1}"
        worst = usage + Amounts.exact({slot: 1})
        if self.try_to(lambda books: books.reserve(hold, worst), worst):
            self.attempts[hold] = Attempt(slot, worst)

    @precondition(lambda self: any(a.is_open for a in self.attempts.values()))
    @rule(which=WHICH, more=USAGES, tunes=st.integers(0, 2))
    def next_phase(self, which: int, more: Amounts, tunes: int) -> None:
        """The attempt goes on; what the next phase can cost is added to its hold."""
        hold, attempt = self.pick(which, is_open=True)
        more += Amounts.of(tunes=tunes)
        if self.try_to(lambda books: books.extend(hold, more), more, own=attempt.reserved):
            attempt.reserved += more
            attempt.phase = PHASES[(PHASES.index(attempt.phase) + 1) % len(PHASES)]

    @precondition(lambda self: any(a.is_open for a in self.attempts.values()))
    @rule(which=WHICH, ending=st.sampled_from(CHARGED), usage=USAGES, worst=st.booleans())
    def ends_charged(self, which: int, ending: str, usage: Amounts, worst: bool) -> None:
        hold, attempt = self.pick(which, is_open=True)
        spent = attempt.reserved if worst else usage + Amounts.exact({attempt.slot: 1})
        self.close(hold, attempt, spent, lambda books: books.settle(hold, spent))
        attempt.charged += 1

    @precondition(lambda self: any(a.is_open for a in self.attempts.values()))
    @rule(which=WHICH, ending=st.sampled_from(FREE), usage=USAGES)
    def ends_free(self, which: int, ending: str, usage: Amounts) -> None:
        hold, attempt = self.pick(which, is_open=True)
        slots = [self.accounts.used(slot) for slot in SLOTS]
        self.refund(hold, attempt, usage)
        assert [self.accounts.used(slot) for slot in SLOTS] == slots

    def close(self, hold: str, attempt: Attempt, spent: Amounts, how: Callable[[Accounts], object]) -> None:
        booking = self.do(how)
        assert booking.freed + spent == attempt.reserved + booking.overrun  # type: ignore[attr-defined]
        self.over.update(dict(spent.over(attempt.reserved).entries))
        attempt.paid.append(spent)
        attempt.is_open = False

    @precondition(lambda self: any(not a.is_open and not a.charged for a in self.attempts.values()))
    @rule(which=WHICH)
    def runs_again(self, which: int) -> None:
        """A refunded attempt comes back under its own name; one that was charged does not."""
        free = [(hold, a) for hold, a in self.attempts.items() if not a.is_open and not a.charged]
        hold, attempt = free[which % len(free)]
        worst = Amounts.exact({attempt.slot: 1})
        if self.try_to(lambda books: books.reserve(hold, worst), worst):
            attempt.reserved, attempt.phase, attempt.is_open = worst, PHASES[0], True

    @precondition(lambda self: any(not a.is_open for a in self.attempts.values()))
    @rule(which=WHICH, usage=USAGES)
    def late_usage(self, which: int, usage: Amounts) -> None:
        attempt = self.pick(which, is_open=False)[1]
        lost = not attempt.charged
        self.do(lambda books: books.charge(usage, lost))
        self.over.update(dict(usage.entries))
        attempt.paid.append(usage)
        if lost:
            attempt.lost.append(usage)

    @rule(limits=LIMITS)
    def move_limits(self, limits: dict[Account, int | None]) -> None:
        """Refused as a whole when a cap would come down below what is used and held."""
        used, held = self.sums()
        too_low = {
            account
            for account, limit in limits.items()
            if limit is not None
            and limit < used[account] + held[account]
            and ((old := self.limits[account]) is None or limit < old)
        }
        if too_low:
            with pytest.raises(ValueError, match="is below"):
                self.do(lambda books: books.raise_limits(limits))
        else:
            self.do(lambda books: books.raise_limits(limits))
            self.limits |= limits

    @rule()
    def told_twice(self) -> None:
        """An ending that is told again, or a hold opened twice, is refused."""
        for hold, attempt in self.attempts.items():
            wrong = self.accounts.reserve if attempt.is_open else self.accounts.settle
            with pytest.raises(ValueError, match="already"):
                wrong(hold, NOTHING)

    @rule(from_rows=st.booleans(), usage=USAGES)
    def crash(self, from_rows: bool, usage: Amounts) -> None:
        """The orchestrator dies and comes back, from the projection or from the events; then what was open is free."""
        rows = json.loads(json.dumps(self.accounts.as_rows()))
        before = self.accounts
        self.accounts = Accounts.from_rows(rows) if from_rows else self.replayed()
        assert self.accounts == before
        assert list(self.accounts.holds) == list(before.holds)
        for hold in list(self.accounts.holds):
            self.refund(hold, self.attempts[hold], usage)

    def refund(self, hold: str, attempt: Attempt, usage: Amounts) -> None:
        self.close(hold, attempt, usage, lambda books: books.refund(hold, usage))
        attempt.refunds += 1
        attempt.lost.append(usage)

    def replayed(self) -> Accounts:
        books = Accounts()
        for operation in self.log:
            operation(books)
        return books

    def sums(self) -> tuple[Counter[Account], Counter[Account]]:
        """Used and held, from the clerk's notes alone."""
        used: Counter[Account] = Counter()
        held: Counter[Account] = Counter()
        for attempt in self.attempts.values():
            for paid in attempt.paid:
                used.update(dict(paid.entries))
            for lost in attempt.lost:
                used[Account.STALL_LOSSES] += lost[Account.USD]
            if attempt.is_open:
                held.update(dict(attempt.reserved.entries))
        return used, held

    @invariant()
    def books_balance(self) -> None:
        """limit = used + held + left, to the unit, and used and held are what the clerk has."""
        used, held = self.sums()
        for account in Account:
            assert self.accounts.used(account) == used[account]
            assert self.accounts.held(account) == held[account]
            limit, left = self.accounts.limit(account), self.accounts.left(account)
            assert limit == self.limits[account]
            assert (limit is None) == (left is None)
            if limit is not None and left is not None:
                assert limit == used[account] + held[account] + left

    @invariant()
    def reservations_stay_under_the_cap(self) -> None:
        """Only what was spent beyond its hold can ever be over a cap."""
        for account in PAYABLE:
            left = self.accounts.left(account)
            assert left is None or left + self.over[account] >= 0

    @invariant()
    def charged_at_most_once(self) -> None:
        """However often an attempt was refunded and run again, it takes one slot, and only when it ended charged."""
        assert all(attempt.charged <= 1 for attempt in self.attempts.values())
        charged = [attempt for attempt in self.attempts.values() if attempt.charged]
        for slot in (Account.ATTEMPTS, Account.COMBINATION, Account.CONTROL):
            assert self.accounts.used(slot) == sum(attempt.slot is slot for attempt in charged)

    @invariant()
    def losses_are_what_free_endings_spent(self) -> None:
        lost = sum((each for attempt in self.attempts.values() for each in attempt.lost), NOTHING)
        refunds = sum(attempt.refunds for attempt in self.attempts.values())
        assert self.accounts.losses == StallLosses(refunds, *(lost[account] for account in USAGE))
        limit = self.limits[Account.STALL_LOSSES]
        reached = limit is not None and lost[Account.USD] >= max(1, limit)
        assert self.accounts.stall_losses_exhausted == reached

    @invariant()
    def rows_are_exact(self) -> None:
        assert Accounts.from_rows(json.loads(json.dumps(self.accounts.as_rows()))) == self.accounts

    def teardown(self) -> None:
        if hasattr(self, "log"):
            assert self.replayed() == self.accounts


TestBooksBalance = Campaign.TestCase
TestBooksBalance.settings = settings(max_examples=settings().max_examples, stateful_step_count=50, deadline=None)


@pytest.mark.fuzz
def test_books_balance_for_long() -> None:
    """The same, for a minute or two."""
    run_state_machine_as_test(Campaign, settings=settings(max_examples=800, stateful_step_count=80, deadline=None))
