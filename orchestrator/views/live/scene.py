"""All that a picture of a campaign shows, as a value: made with each event, drawn at leisure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.text import Text

from orchestrator.budget import Account, Accounts
from orchestrator.domain.records import Node, Purpose, Role, Run
from orchestrator.domain.state import State
from orchestrator.text import short
from orchestrator.views.campaign.sections.material import slots_of
from orchestrator.views.live.pace import Pace
from orchestrator.views.render.model import Point, Step

WAITS_FOR_PERSON = "waits for you"
PROPOSING = "proposing"
# In the order in which they give way where there is no room.
_ACCOUNTS = (
    Account.ATTEMPTS,
    Account.COMBINATION,
    Account.CONTROL,
    Account.USD,
    Account.SECONDS,
    Account.TOKENS,
    Account.TUNES,
    Account.MINIMISATION,
)
_SLOTS = (Account.ATTEMPTS, Account.COMBINATION)
_PURPOSES = {
    Purpose.SUBMIT: "running",
    Purpose.TUNE: "tuning",
    Purpose.RERUN: "running again",
    Purpose.REPLAY: "replaying",
    Purpose.REPEAT: "repeating",
    Purpose.REFERENCE: "measuring the champion",
    Purpose.MINIMISE: "minimising",
}


@dataclass(frozen=True)
class Work:
    """An open attempt; times are in seconds on the ledger's clock. `tokens` and `microdollars` are what is booked."""

    node: str
    role: Role
    phase: str
    since: float
    opened: float
    tokens: int = 0
    microdollars: int = 0


@dataclass(frozen=True)
class Gauge:
    """A cap, or what is spent where there is none."""

    account: Account
    used: int
    held: int
    cap: int | None


@dataclass(frozen=True)
class Caps:
    """What the accounts do not know: the cap on the clock, how long without improvement, attempts at a time."""

    width: int
    wall_s: float | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Scene:
    """`asked` has a line for each node that waits for a person's word."""

    title: str
    run: Run
    caps: Caps
    gauges: Sequence[Gauge]
    pace: Pace
    elapsed_s: float
    at: float
    since_improvement: int
    best: str = ""
    best_node: str = ""
    gain: str = ""
    baseline: str = ""
    control: str = ""
    work: Sequence[Work] = ()
    waiting: int = 0
    quarantined: int = 0
    points: Sequence[Point] = ()
    steps: Sequence[Step] = ()
    endings: Sequence[Text] = ()
    paused: bool = False
    pause_why: str = ""
    away: str = ""
    asked: Sequence[str] = ()
    stopping: bool = False
    stopped: str = ""

    def elapsed(self, now: float) -> float:
        """Time goes on between two events while somebody works."""
        return self.elapsed_s + (0.0 if self.stopped else max(0.0, now - self.at))


def gauges_of(accounts: Accounts, run: Run) -> list[Gauge]:
    """Every account with a cap, and the attempts. Slots are a run's own, so what earlier runs used is left out."""
    found = []
    for account in _ACCOUNTS:
        limit, before = accounts.limit(account), run.before.get(account.value, 0)
        if account is Account.CONTROL and run.control is None:
            continue
        if account is Account.MINIMISATION and not accounts.used(account) and not accounts.held(account):
            continue
        if account in _SLOTS and account is not slots_of(run):
            continue
        if limit is not None or account in _SLOTS or (account is Account.USD and accounts.used(account)):
            cap = None if limit is None else limit - before
            found.append(Gauge(account, accounts.used(account) - before, accounts.held(account), cap))
    return found


def phase_of(state: State, node: Node) -> tuple[str, str]:
    """What an open attempt does now, and since when where that is on record."""
    trial = state.trials.get(f"{node.id}-{node.trials}")
    if node.guarding:
        return f"guard {short(node.guarding, 20)}", node.guarding_since
    if node.asking is not None:
        return "held-out", node.asking_since
    if trial and trial.judging:
        return "judging", trial.judging_since
    if trial and not trial.ended:
        return _PURPOSES.get(trial.purpose, short(trial.purpose, 20)), trial.started_at
    if node.waits_for_person:
        return WAITS_FOR_PERSON, node.promotion_since
    if trial:
        return ("judged" if trial.judged else "collected"), ""
    return ("proposed", "") if node.drafts else (PROPOSING, node.opened_at)


def seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
