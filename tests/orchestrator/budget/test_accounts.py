"""Reserve, settle, refund."""

import pickle
from collections.abc import Callable
from contextlib import suppress

import pytest

from orchestrator.budget import NOTHING, Account, Accounts, Amounts, DoesNotFit, Shortage, StallLosses, limits_of

ONE = Amounts.of(attempts=1)
WORST = Amounts.of(attempts=1, usd=0.5, tokens=1000, seconds=30)


def books(**limits: int) -> Accounts:
    return Accounts(limits_of(**limits))


def test_no_limit() -> None:
    """An account without a cap takes anything and has no rest."""
    accounts = Accounts()
    accounts.reserve("a", Amounts.of(attempts=10**6, usd=10**9))
    assert accounts.left(Account.USD) is None
    assert accounts.limit(Account.USD) is None
    assert accounts.held(Account.ATTEMPTS) == 10**6


def test_exactly_at_the_limit() -> None:
    """What is left can be reserved to the last unit, and not one unit more."""
    accounts = books(usd=5)
    accounts.reserve("a", Amounts.of(usd=4))
    assert not accounts.fits(Amounts.exact({Account.USD: 1_000_001}))
    accounts.reserve("b", Amounts.of(usd=1))
    assert accounts.left(Account.USD) == 0
    with pytest.raises(DoesNotFit):
        accounts.reserve("c", Amounts.exact({Account.USD: 1}))
    accounts.reserve("d", Amounts.of(tokens=1))


def test_a_reservation_may_wait() -> None:
    """While open holds could free enough, a reservation may wait; when they cannot, only a raised cap helps."""
    accounts = books(attempts=2)
    accounts.reserve("a", ONE)
    accounts.reserve("b", ONE)
    with pytest.raises(DoesNotFit, match="1 attempt needed, 0 attempts left; open work may free enough") as waits:
        accounts.reserve("c", ONE)
    assert (waits.value.account, waits.value.needed, waits.value.left) == (Account.ATTEMPTS, 1, 0)
    assert waits.value.may_wait
    accounts.settle("a", ONE)
    accounts.settle("b", ONE)
    with pytest.raises(DoesNotFit, match="raise the cap to go on") as final:
        accounts.reserve("c", ONE)
    assert not final.value.may_wait


def test_more_than_the_limit_never_fits() -> None:
    """What is over the whole cap does not wait, whatever is held."""
    accounts = books(tokens=100)
    accounts.reserve("a", Amounts.of(tokens=50))
    assert accounts.shortage(Amounts.of(tokens=101)) == Shortage(Account.TOKENS, 101, 50, could_fit_later=False)
    assert accounts.shortage(Amounts.of(tokens=100)) == Shortage(Account.TOKENS, 100, 50, could_fit_later=True)
    assert accounts.shortage(Amounts.of(tokens=50)) is None


def test_the_shortage_that_can_not_be_cured_is_named() -> None:
    """Where one account could wait and another could not, the second is the answer."""
    accounts = books(attempts=1, tokens=100)
    accounts.reserve("a", Amounts.of(attempts=1))
    short = accounts.shortage(Amounts.of(attempts=1, tokens=101))
    assert short is not None
    assert (short.account, short.could_fit_later) == (Account.TOKENS, False)


def test_extend_does_not_wait_for_itself() -> None:
    """A hold that wants more can wait for others, not for what it holds itself."""
    accounts = books(seconds=10)
    accounts.reserve("a", Amounts.of(seconds=6))
    with pytest.raises(DoesNotFit) as alone:
        accounts.extend("a", Amounts.of(seconds=5))
    assert not alone.value.may_wait
    accounts.reserve("b", Amounts.of(seconds=1))
    with pytest.raises(DoesNotFit) as beside:
        accounts.extend("a", Amounts.of(seconds=4))
    assert beside.value.may_wait
    accounts.extend("a", Amounts.of(seconds=3))
    assert accounts.holds == {"a": Amounts.of(seconds=9), "b": Amounts.of(seconds=1)}


def test_settle_frees_the_rest() -> None:
    """What was spent is used, the rest of the worst case is free again."""
    accounts = books(attempts=2, usd=1)
    accounts.reserve("a", WORST)
    booking = accounts.settle("a", Amounts.of(attempts=1, usd=0.2))
    assert booking.spent == Amounts.of(attempts=1, usd=0.2)
    assert booking.freed == Amounts.of(usd=0.3, tokens=1000, seconds=30)
    assert booking.overrun == NOTHING
    assert accounts.used(Account.USD) == 200_000
    assert accounts.held(Account.USD) == 0
    assert accounts.left(Account.USD) == 800_000
    assert accounts.losses == StallLosses()


def test_an_overrun_is_booked_and_told() -> None:
    """More spent than reserved is not hidden: it is used, it is reported, and the rest may fall below zero."""
    accounts = books(usd=1)
    accounts.reserve("a", Amounts.of(usd=1))
    assert accounts.settle("a", Amounts.of(usd=1.25, tokens=7)).overrun == Amounts.of(usd=0.25, tokens=7)
    assert accounts.used(Account.USD) == 1_250_000
    assert accounts.left(Account.USD) == -250_000
    short = accounts.shortage(Amounts.of(usd=0.1))
    assert str(short) == "usd: $0.10 needed, $0.00 left ($0.25 over the cap); raise the cap to go on"
    assert accounts.fits(ONE), "what takes nothing from an overdrawn account is not held up by it"


def test_refund_gives_the_slot_back_and_keeps_the_spending() -> None:
    """A free ending costs no slot; its dollars, tokens and seconds stay spent and are booked as lost."""
    accounts = books(attempts=1, tunes=3, usd=1)
    accounts.reserve("a", WORST + Amounts.of(tunes=2))
    booking = accounts.refund("a", Amounts.of(usd=0.3, tokens=400, seconds=2))
    assert booking.freed == Amounts.of(attempts=1, tunes=2, usd=0.2, tokens=600, seconds=28)
    assert (accounts.used(Account.ATTEMPTS), accounts.used(Account.TUNES)) == (0, 0)
    assert accounts.left(Account.ATTEMPTS) == 1
    assert accounts.left(Account.USD) == 700_000
    assert accounts.losses == StallLosses(endings=1, usd=300_000, tokens=400, seconds=2000)
    assert str(accounts.losses) == "1 free ending cost $0.30, 400 tokens, 2s"
    accounts.reserve("a", Amounts.of(attempts=1, usd=0.7))


def test_a_settled_hold_is_no_loss() -> None:
    """Only what ended free is in the losses."""
    accounts = Accounts()
    accounts.reserve("a", WORST)
    accounts.settle("a", WORST)
    accounts.charge(Amounts.of(usd=1))
    assert accounts.losses == StallLosses()
    assert str(accounts.losses) == "0 free endings cost nothing"


def test_late_usage() -> None:
    """Usage that arrives after the end is booked without a hold; as a loss too where the ending was free."""
    accounts = books(usd=1)
    assert accounts.charge(Amounts.of(usd=0.25)).overrun == Amounts.of(usd=0.25)
    accounts.charge(Amounts.of(usd=0.5, tokens=9), lost=True)
    assert accounts.used(Account.USD) == 750_000
    assert accounts.losses == StallLosses(endings=0, usd=500_000, tokens=9)


def test_the_cap_on_losses() -> None:
    """Stalls have a cap of their own; it is reached by dollars that were lost, and does not stop a reservation."""
    accounts = books(stall_losses=1, attempts=5)
    accounts.reserve("a", WORST)
    accounts.refund("a", Amounts.of(usd=0.999999))
    assert not accounts.stall_losses_exhausted
    assert accounts.left(Account.STALL_LOSSES) == 1
    accounts.charge(Amounts.exact({Account.USD: 1}), lost=True)
    assert accounts.stall_losses_exhausted
    assert accounts.left(Account.STALL_LOSSES) == 0
    assert accounts.held(Account.STALL_LOSSES) == 0
    assert accounts.fits(ONE)
    accounts.raise_limits(limits_of(stall_losses=2))
    assert not accounts.stall_losses_exhausted


def test_no_loss_allowed() -> None:
    """A cap of zero on losses is not reached before anything is lost."""
    accounts = books(stall_losses=0)
    assert not accounts.stall_losses_exhausted
    accounts.reserve("a", ONE)
    accounts.refund("a", NOTHING)
    assert not accounts.stall_losses_exhausted
    accounts.charge(Amounts.of(usd=0.01), lost=True)
    assert accounts.stall_losses_exhausted


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (lambda accounts: accounts.reserve("a", ONE), "reserved already"),
        (lambda accounts: accounts.extend("b", ONE), "not reserved, or closed already"),
        (lambda accounts: accounts.settle("b", ONE), "not reserved, or closed already"),
        (lambda accounts: accounts.refund("b", NOTHING), "not reserved, or closed already"),
        (lambda accounts: accounts.shortage(ONE, within="b"), "not reserved, or closed already"),
        (lambda accounts: accounts.refund("a", ONE), "a slot is used only where a hold is settled"),
        (lambda accounts: accounts.charge(Amounts.of(tunes=1)), "a slot is used only where a hold is settled"),
        (lambda accounts: accounts.raise_limits(limits_of(attempts=9, usd=0.25)), r"cap of \$0.25 is below the \$0.50"),
        (lambda accounts: accounts.raise_limits({Account.ATTEMPTS: 9, Account.TUNES: -1}), "tunes: -1 is negative"),
        (lambda accounts: accounts.reserve("c", Amounts.of(attempts=9, tokens=1)), "attempts: 9 attempts needed"),
        (lambda accounts: accounts.extend("a", Amounts.of(attempts=9, tokens=1)), "attempts: 9 attempts needed"),
    ],
)
def test_an_operation_that_raises_changes_nothing(operation: Callable[[Accounts], object], words: str) -> None:
    """An operation happens as a whole or not at all."""
    accounts = books(attempts=2, usd=1)
    accounts.reserve("a", WORST)
    before = accounts.as_rows()
    with pytest.raises((ValueError, DoesNotFit), match=words):
        operation(accounts)
    assert accounts.as_rows() == before
    assert accounts.held(Account.ATTEMPTS) == 1


def test_settled_once() -> None:
    """A hold is closed once: an ending that is told twice is refused, and charged once."""
    accounts = books(attempts=3)
    accounts.reserve("a", ONE)
    accounts.settle("a", ONE)
    for again in (accounts.settle, accounts.refund):
        with pytest.raises(ValueError, match="closed already"):
            again("a", NOTHING)
    assert accounts.used(Account.ATTEMPTS) == 1


def test_limits_may_move() -> None:
    """A cap goes up, away, and down to what is used and held; those not named stay."""
    accounts = books(attempts=2, usd=1)
    accounts.reserve("a", WORST)
    accounts.raise_limits(limits_of(attempts=5))
    assert (accounts.left(Account.ATTEMPTS), accounts.left(Account.USD)) == (4, 500_000)
    accounts.raise_limits({Account.USD: None})
    assert accounts.left(Account.USD) is None
    accounts.raise_limits(limits_of(usd=0.5))
    assert accounts.left(Account.USD) == 0
    with pytest.raises(ValueError, match="below"):
        accounts.raise_limits({Account.USD: 499_999})


def test_a_raised_limit_may_still_be_short() -> None:
    """After an overrun a cap may be raised by less than the overrun: that makes nothing worse."""
    accounts = books(usd=1)
    accounts.charge(Amounts.of(usd=3))
    accounts.raise_limits(limits_of(usd=2))
    assert accounts.left(Account.USD) == -1_000_000
    with pytest.raises(ValueError, match="below"):
        accounts.raise_limits(limits_of(usd=1))


def test_a_copy_is_independent() -> None:
    """A copy can be tried out without touching the books."""
    accounts = books(attempts=2)
    accounts.reserve("a", ONE)
    before = accounts.as_rows()
    copy = accounts.copy()
    assert copy == accounts
    copy.refund("a", Amounts.of(tokens=1))
    copy.raise_limits(limits_of(attempts=9))
    assert accounts.as_rows() == before
    assert accounts.held(Account.ATTEMPTS) == 1
    assert accounts != 1


def test_holds_can_not_be_changed_from_outside() -> None:
    """What is open is shown, not handed out."""
    accounts = Accounts()
    with pytest.raises(TypeError):
        accounts.holds["a"] = ONE  # type: ignore[index]


def test_the_error_survives_a_process() -> None:
    """DoesNotFit can be sent on with all that it says."""
    with pytest.raises(DoesNotFit) as caught:
        books(attempts=0).reserve("a", ONE)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    assert (str(again), again.account, again.may_wait) == (str(caught.value), Account.ATTEMPTS, False)


def test_retry_storm() -> None:
    """T75: a thousand launches at once, each spending its worst case, stay within the cap: it was reserved first."""
    accounts = books(usd=10, attempts=1000)
    launched = []
    for number in range(1000):
        with suppress(DoesNotFit):
            accounts.reserve(str(number), Amounts.of(attempts=1, usd=0.3))
            launched.append(str(number))
    for hold in launched:
        accounts.refund(hold, Amounts.of(usd=0.3))
    assert len(launched) == 33
    assert accounts.used(Account.USD) == 9_900_000
    assert accounts.left(Account.ATTEMPTS) == 1000


def test_twenty_thousand_events_leave_nothing_behind() -> None:
    """What is closed is forgotten but for its sums, so the books do not grow with the campaign."""
    accounts = books(attempts=5000)
    size = len(accounts.as_rows())
    for number in range(10_000):
        accounts.reserve(f"1.{number}", WORST)
        if number % 2:
            accounts.settle(f"1.{number}", WORST)
        else:
            accounts.refund(f"1.{number}", Amounts.of(tokens=1))
    assert len(accounts.as_rows()) == size
    assert accounts.left(Account.ATTEMPTS) == 0
    assert accounts.losses.endings == 5000
