"""When a campaign ends: rules that compose, `attempts(40) | elapsed(hours=6) & no_improvement(attempts=20)`.

A rule answers with the reason to stop, in one line for a person, or with None. As in all of Python, & binds first.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from orchestrator.budget.accounts import Accounts
from orchestrator.budget.amounts import Number, limits_of
from orchestrator.domain.account import Account, shown


@dataclass(frozen=True)
class Progress:
    """How far a campaign is. Dollars and chamber seconds are in whole units, like in the accounts."""

    attempts_used: int = 0
    usd: int = 0
    tokens: int = 0
    seconds: int = 0
    elapsed_s: float = 0.0  # on the wall clock
    best: float | None = None  # the champion's first metric
    target_reached: bool = False
    since_improvement: int = 0  # attempts
    exhausted: bool = False  # the proposer has nothing left to offer
    stall_losses_exhausted: bool = False

    @classmethod
    def of(
        cls,
        accounts: Accounts,
        *,
        elapsed_s: float = 0.0,
        best: float | None = None,
        target_reached: bool = False,
        since_improvement: int = 0,
        exhausted: bool = False,
        attempts_used: int | None = None,
    ) -> "Progress":
        """What the accounts know, and what they do not. A cap on attempts may be one run's: `attempts_used` is then its
        own count.
        """
        return cls(
            attempts_used=accounts.used(Account.ATTEMPTS) if attempts_used is None else attempts_used,
            usd=accounts.used(Account.USD),
            tokens=accounts.used(Account.TOKENS),
            seconds=accounts.used(Account.SECONDS),
            elapsed_s=elapsed_s,
            best=best,
            target_reached=target_reached,
            since_improvement=since_improvement,
            exhausted=exhausted,
            stall_losses_exhausted=accounts.stall_losses_exhausted,
        )


class Stop(ABC):
    """A rule. `a | b` stops with the first reason there is, `a & b` only when both have one."""

    @abstractmethod
    def reason(self, progress: Progress) -> str | None: ...

    def __or__(self, other: "Stop") -> "Stop":
        return _Or(self, other)

    def __and__(self, other: "Stop") -> "Stop":
        return _And(self, other)


def attempts(limit: int) -> Stop:
    return _Used(Account.ATTEMPTS, limits_of(attempts=limit)[Account.ATTEMPTS])


def tokens(limit: int) -> Stop:
    return _Used(Account.TOKENS, limits_of(tokens=limit)[Account.TOKENS])


def spent(*, usd: Number) -> Stop:
    return _Used(Account.USD, limits_of(usd=usd)[Account.USD])


def chamber_time(*, seconds: Number) -> Stop:
    """Of all chambers together."""
    return _Used(Account.SECONDS, limits_of(seconds=seconds)[Account.SECONDS])


def elapsed(*, seconds: float = 0.0, minutes: float = 0.0, hours: float = 0.0) -> Stop:
    """On the wall clock."""
    return _Elapsed(seconds + 60 * minutes + 3600 * hours)


def target(value: float | None = None, goal: Literal["higher", "lower"] = "higher") -> Stop:
    """The best is as good as the value; without one: the targets that the task names are reached."""
    return _Target(value, goal)


def no_improvement(*, attempts: int) -> Stop:
    return _NoImprovement(attempts)


def exhausted() -> Stop:
    """The proposer has nothing left to offer."""
    return _Exhausted()


def stall_losses() -> Stop:
    """Stalls have cost as many dollars as they may."""
    return _StallLosses()


def never() -> Stop:
    """The rule to begin with, when others are added one by one: `never() | rule` is `rule`."""
    return _Never()


@dataclass(frozen=True)
class _Or(Stop):
    first: Stop
    second: Stop

    def reason(self, progress: Progress) -> str | None:
        return self.first.reason(progress) or self.second.reason(progress)


@dataclass(frozen=True)
class _And(Stop):
    first: Stop
    second: Stop

    def reason(self, progress: Progress) -> str | None:
        reasons = self.first.reason(progress), self.second.reason(progress)
        return f"{reasons[0]}, and {reasons[1]}" if reasons[0] and reasons[1] else None


@dataclass(frozen=True)
class _Used(Stop):
    account: Account
    limit: int

    def reason(self, progress: Progress) -> str | None:
        used = {
            Account.ATTEMPTS: progress.attempts_used,
            Account.USD: progress.usd,
            Account.TOKENS: progress.tokens,
            Account.SECONDS: progress.seconds,
        }[self.account]
        if used < self.limit:
            return None
        limit = shown(self.account, self.limit)
        if self.account is Account.USD:
            return f"{shown(self.account, used)} of {limit} is spent"
        if self.account is Account.SECONDS:
            return f"{shown(self.account, used)} of {limit} in chambers is used"
        return f"{used:,} of {limit} {'is' if self.limit == 1 else 'are'} used"


@dataclass(frozen=True)
class _Elapsed(Stop):
    seconds: float

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"{self.seconds} is not a time to stop at")

    def reason(self, progress: Progress) -> str | None:
        if progress.elapsed_s < self.seconds:
            return None
        return f"{progress.elapsed_s:,.0f}s of {self.seconds:,.0f}s have passed"


@dataclass(frozen=True)
class _Target(Stop):
    value: float | None
    goal: Literal["higher", "lower"]

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.value} is not a target")

    def reason(self, progress: Progress) -> str | None:
        if self.value is None:
            return "the target is reached" if progress.target_reached else None
        if progress.best is None:
            return None
        reached = progress.best >= self.value if self.goal == "higher" else progress.best <= self.value
        return f"the target is reached: {progress.best:g}, wanted {self.value:g} or {self.goal}" if reached else None


@dataclass(frozen=True)
class _NoImprovement(Stop):
    attempts: int

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"a patience of {self.attempts} attempts ends before it starts; give 1 or more")

    def reason(self, progress: Progress) -> str | None:
        if progress.since_improvement < self.attempts:
            return None
        return f"{shown(Account.ATTEMPTS, progress.since_improvement)} without improvement"


class _Exhausted(Stop):
    def reason(self, progress: Progress) -> str | None:
        return "the proposer has nothing left to offer" if progress.exhausted else None


class _StallLosses(Stop):
    def reason(self, progress: Progress) -> str | None:
        return (
            "stalls have cost as much as they may; raise --stall-losses to go on"
            if progress.stall_losses_exhausted
            else None
        )


class _Never(Stop):
    def reason(self, progress: Progress) -> str | None:  # noqa: ARG002  # no progress changes the answer
        return None
