"""A campaign that never ran: synthetic events, folded like real ones."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.budget import Account, Accounts, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import child_of
from orchestrator.domain.records import Guard, Purpose, Role, Spent
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Mode, Tier, Verdict

COHORT = "c0ffee0000000000"
FINGERPRINT = {"cpu": "Neoverse-N1", "cores": "2", "backend": "docker/runc", "limits": "wall=30", "image": "1" * 64}
SPENT = Spent(microdollars=20_000, milliseconds=1500, tokens=0)


class Story:
    """Tells events one after the other, each some seconds later; `state` and `accounts` follow."""

    def __init__(self, step_s: float = 2.0) -> None:
        self.state = State()
        self.accounts = Accounts()
        self.events: list[tuple[str, e.Event]] = []
        self._now = datetime(2025, 3, 1, 9, 0, 0, tzinfo=UTC)
        self._step = timedelta(seconds=step_s)
        self._number = {role: 0 for role in Role}

    def tell(self, *events: e.Event) -> "Story":
        for event in events:
            self._now += self._step
            at = self._now.isoformat(timespec="microseconds")
            self.state.apply(event, at)
            self.events.append((at, event))
        return self

    def open(self, run: int = 1, *, beside: str | None = None, cohort: str = COHORT, **limits: int) -> "Story":
        if not self.state.opened:
            self.tell(e.CampaignOpened(campaign="4e1f", name="circle-packing", version="0.1.0"))
            self.tell(e.SessionStarted(epoch=1, holder="pid 4711 on here"))
        caps = {"attempts": 60, **limits}
        self.accounts.raise_limits({Account(name): units for name, units in caps.items()})
        self.tell(
            e.LimitsSet(limits=caps),
            e.RunStarted(
                run=run,
                task="a" * 64,
                digests={},
                seed=7,
                proposer="random",
                control=beside,
                width=2,
                depth=5,
                why="2 cores, one run saturates one",
                lower_tier=False,
            ),
        )
        self.tell(e.AttemptOpened(node=str(run), parent=None, role=Role.BASELINE, number=1, branch=0, step=0))
        self.tell(e.CohortOpened(run=run, cohort=cohort, why="first"))
        return self

    def baseline(self, value: float = 1.0, run: int = 1, cohort: str = COHORT, **more: float) -> str:
        node = str(run)
        self._propose(node, {"operator": "baseline", "description": "the workspace as it is"})
        self._score(node, {"score": value, **more}, cohort)
        self.end(node, Ending.SCORED, kept=True)
        self.tell(e.ChampionChanged(run=run, node=node, cohort=cohort, over=None))
        return node

    def attempt(
        self,
        parent: str = "1",
        value: float | None = None,
        *,
        kept: bool = False,
        ending: Ending | None = None,
        role: Role = Role.SEARCH,
        cohort: str = COHORT,
        verdict: dict[str, Any] | None = None,
        **proposed: Any,
    ) -> str:
        """One attempt from its first event to its last; `value` None and no ending leaves it running."""
        node = self.opened(parent, role)
        self._propose(node, proposed)
        if value is not None:
            self._score(node, {"score": value}, cohort, **(verdict or {}))
        elif ending:
            self._fail(node, ending)
        else:
            return self._running(node)
        self.end(node, ending or Ending.SCORED, kept=kept)
        if kept:
            before = self.state.champion()
            over = before.id if before else None
            self.tell(e.ChampionChanged(run=self.state.campaign.run, node=node, cohort=cohort, over=over))
        return node

    def opened(self, parent: str, role: Role = Role.SEARCH) -> str:
        node = child_of(parent, self.state.next_child(parent))
        self._number[role] += 1
        account = Account.CONTROL if role is Role.CONTROL else Account.ATTEMPTS
        self.accounts.reserve(f"attempt {node}", Amounts.exact({account: 1, Account.USD: 50_000}))
        self.tell(
            e.AttemptOpened(node=node, parent=parent, role=role, number=self._number[role], branch=1, step=1),
            e.Reserved(hold=f"attempt {node}", amounts={account.value: 1, "usd": 50_000}),
        )
        return node

    def end(self, node: str, ending: Ending, *, kept: bool = False, why: str = "") -> None:
        hold = f"attempt {node}"
        if hold in self.accounts.holds:
            account = Account.CONTROL if self.state.nodes[node].role is Role.CONTROL else Account.ATTEMPTS
            if ending.charged:
                self.accounts.settle(hold, Amounts.exact({account: 1, Account.USD: 20_000, Account.SECONDS: 1500}))
            else:
                self.accounts.refund(hold, Amounts.exact({Account.USD: 5_000}))
        why = why or ("better than the champion" if kept else "no better than the champion")
        self.tell(e.AttemptEnded(node=node, ending=ending, kept=kept, why=why))

    def guard(self, node: str, name: str, passed: bool, reason: str = "") -> None:
        self.tell(
            e.GuardIntended(node=node, guard=name),
            e.GuardEnded(node=node, guard=name, passed=passed, reason=reason),
        )

    def add_guard(self, node: str, name: str) -> None:
        self.tell(e.GuardAdded(node=node, guard=Guard(name=name, command=("python3", "-m", "unittest"))))

    def _propose(self, node: str, given: dict[str, Any]) -> None:
        told = {"operator": "random", "description": "rows=3 rate=0.1", "params": {"rows": 3, "rate": 0.1}, **given}
        if told["operator"] == "baseline":
            told["params"] = None
        self.tell(e.Proposed(node=node, draft=1, tree="b" * 40, files="c" * 64, **told))
        self.tell(e.Promoted(node=node, draft=1, why="the only draft", commit="b" * 40, diff="d" * 64))

    def _score(self, node: str, values: dict[str, float], cohort: str, **more: Any) -> None:
        trial = self._trial(node)
        verdict = Verdict(metrics=values, tier=Tier.DATA, mode=Mode.SUBMIT, cohort=cohort, **more)
        self.tell(
            e.TrialEnded(
                trial=trial,
                ending=None,
                exit_code=0,
                outputs="e" * 64,
                log="f" * 64,
                fingerprint=FINGERPRINT,
                spent=SPENT,
            ),
            e.JudgingIntended(trial=trial, judging=f"{trial}-j1"),
            e.JudgingEnded(trial=trial, judging=f"{trial}-j1", verdict=verdict, spent=Spent(milliseconds=500)),
        )

    def _fail(self, node: str, ending: Ending) -> None:
        trial = self._trial(node)
        self.tell(e.TrialEnded(trial=trial, ending=ending, reason="exit 1", exit_code=1, log="f" * 64, spent=SPENT))

    def _running(self, node: str) -> str:
        self._trial(node)
        return node

    def _trial(self, node: str) -> str:
        trial = f"{node}-{self.state.nodes[node].trials + 1}"
        self.tell(e.TrialIntended(trial=trial, node=node, purpose=Purpose.SUBMIT, draft=1))
        return trial


def campaign(count: int = 60, seed: int = 3) -> Story:
    """A search that improves, stumbles and stalls like a real one."""
    story = Story().open(beside="grid", attempts=80, usd=5_000_000, control=30)
    story.add_guard("1", "tests")
    story.baseline(0.96)
    draw = random.Random(seed)
    best, parent = 0.96, "1"
    bad = [Ending.FAILED, Ending.TIMED_OUT, Ending.INVALID, Ending.OUT_OF_MEMORY, Ending.STALLED, Ending.INFRASTRUCTURE]
    for number in range(count):
        role = Role.CONTROL if number % 4 == 3 else Role.SEARCH
        where = "1" if role is Role.CONTROL or draw.random() < 0.3 else parent
        rows = draw.randint(2, 9)
        told = {"description": f"hexagonal rows={rows}, then relax the outer ring", "params": {"rows": rows}}
        if draw.random() < 0.2:
            story.attempt(where, ending=draw.choice(bad), role=role, **told)
            continue
        value = round(best + draw.gauss(-0.12, 0.14), 4)
        kept = value > best and role is Role.SEARCH
        node = story.attempt(where, value, kept=kept, role=role, **told)
        if kept:
            best, parent = value, node
    return story
