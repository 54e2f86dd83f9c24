"""A campaign that never ran: synthetic events, folded like real ones, and on disk where a folder is given."""

import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.budget import BOOKS, Accounts
from orchestrator.change import Tree
from orchestrator.change.canonical import difference
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.folding import fold
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.node import child_of
from orchestrator.domain.records import Guard, Purpose, Role, Spent
from orchestrator.domain.state import State
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Verdict
from orchestrator.git import Candidates
from orchestrator.ledger import Artifacts, Entry, Ledger, canonical
from orchestrator.loop.book import book
from orchestrator.task import StoredTask, Task
from orchestrator.views.campaign.sections.material import Material

COHORT = "c0ffee0000000000"
FINGERPRINT = {"cpu": "Neoverse-N1", "cores": "2", "backend": "docker/runc", "limits": "wall=30", "image": "1" * 64}
TRIAL = Spent(microdollars=20_000, milliseconds=1500)
JUDGING = Spent(milliseconds=500)
TASK = {
    "name": "circle-packing",
    "statement": "Pack circles.",
    "editable": ["*.py", "params.json"],
    "trial": {"command": ["python3", "solve.py"]},
    "judge": {"command": ["python3", "judge.py"]},
}


class Story:
    """Tells events one after the other, each some seconds later; `state` and `accounts` follow. Openings are numbered,
    unless it is `unnumbered`, like an old ledger.

    With a task's folder, bytes and candidates are really stored, and `write` makes the ledger.
    """

    def __init__(self, folder: Path | None = None, step_s: float = 2.0, task: Mapping[str, Any] | None = None) -> None:
        self.state = State()
        self.accounts = Accounts()
        self.events: list[tuple[str, e.Event]] = []
        self.trees: dict[str, Tree] = {}
        self.task = Task.model_validate({**TASK, **(task or {})})
        self.folder = folder / ".blastdoor" if folder else None
        self._artifacts = Artifacts(self.folder / "artifacts") if self.folder else None
        self._candidates = Candidates(self.folder / "candidates.git") if self.folder else None
        self._now = datetime(2025, 3, 1, 9, 0, 0, tzinfo=UTC)
        self._step = timedelta(seconds=step_s)
        self._number = dict.fromkeys(Role, 0)
        self.unnumbered = False

    def tell(self, *events: e.Event) -> "Story":
        for event in events:
            if isinstance(event, e.AttemptOpened) and not self.unnumbered:
                event = event.model_copy(update={"order": self.state.campaign.openings + 1})
            self._now += self._step
            at = self._now.isoformat(timespec="microseconds")
            book(self.accounts, event)
            fold(self.state, event, at)
            self.events.append((at, event))
        return self

    def write(self) -> None:
        """The ledger as it is after all that was told."""
        assert self.folder
        rows: dict[tuple[str, str], str | None] = {key: self.state.row(key) for key in self.state.touched}
        rows[BOOKS] = json.dumps(self.accounts.as_rows())
        with Ledger.create(self.folder / "ledger.sqlite3") as ledger:
            ledger.seize("a test")
            last = len(self.events) - 1
            for number, (at, event) in enumerate(self.events):
                entry = Entry(event.kind, canonical(event.model_dump(mode="json")))
                ledger.append([entry], rows if number == last else {}, at)

    def keep(self, data: bytes) -> str:
        return self._artifacts.put(data) if self._artifacts else "d" * 64

    def keep_files(self, files: Mapping[str, bytes]) -> str:
        return self._artifacts.put_files(files) if self._artifacts else "e" * 64

    def open(
        self,
        run: int = 1,
        *,
        beside: str | None = None,
        cohort: str = COHORT,
        proposer: str = "random",
        usd_before: int = 0,
        begun: Mapping[str, Any] | None = None,
        **limits: int,
    ) -> "Story":
        if not self.state.opened:
            self.tell(e.CampaignOpened(campaign="4e1f", name=self.task.name, version="0.1.0"))
            self.tell(e.SessionStarted(epoch=1, holder="pid 4711 on host here"))
        started = e.RunStarted(
            run=run,
            task=self.keep(self.task.canonical().encode()),
            digests={},
            seed=7,
            proposer=proposer,
            control=beside,
            width=2,
            depth=5,
            why="width 2 (the backend holds 2), depth 5 (trials are short)",
            options="{}",
            lower_tier=False,
            noisy=self.task.certify.rule == "noisy",
            before={},
            usd_before=usd_before,
            **(begun or {}),
        )
        self.tell(e.LimitsSet(limits={"attempts": 60, **limits}), started)
        self.tell(e.AttemptOpened(node=str(run), parent=None, role=Role.BASELINE, number=1))
        self.tell(e.CohortOpened(run=run, cohort=cohort, why="the first"))
        return self

    def baseline(
        self,
        value: float = 1.0,
        run: int = 1,
        cohort: str = COHORT,
        files: Mapping[str, str] | None = None,
        **more: float,
    ) -> str:
        node = str(run)
        self.promote(node, 0, Tree.of(files or {"solve.py": "print(1)\n", "params.json": "{}\n"}))
        self.score(node, {"score": value, **more}, cohort)
        self.tell(e.AttemptEnded(node=node, ending=Ending.SCORED, kept=True, why="baseline"))
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
        verdict: Mapping[str, Any] | None = None,
        files: Mapping[str, str | bytes] | None = None,
        outputs: Mapping[str, bytes] | None = None,
        log: bytes = b"hello\n",
        island: int = 0,
        **proposed: Any,
    ) -> str:
        """One attempt from its first event to its last; without a value or an ending it is left at work."""
        node = self.opened(parent, role, island)
        told = {"operator": "random", "description": "rows=3 rate=0.1", "params": {"rows": 3, "rate": 0.1}, **proposed}
        self.tell(e.Proposed(node=node, draft=1, tree="b" * 64, **told))
        changed = Tree({**self.trees[parent], **Tree.of(files or {"params.json": f'{{"node": "{node}"}}\n'})})
        self.promote(node, 1, changed, parent)
        if value is not None:
            self.score(node, {"score": value}, cohort, outputs=outputs, log=log, **(verdict or {}))
        else:
            trial = self.trial(node)
            if not ending:
                return node
            failed = e.TrialEnded(
                trial=trial, ending=ending, reason="exit 1", exit_code=1, log=self.keep(log), spent=TRIAL
            )
            self.tell(failed)
        self.end(node, ending or Ending.SCORED, kept=kept)
        if kept:
            before = self.state.champion()
            over = before.id if before else None
            self.tell(e.ChampionChanged(run=self.state.campaign.run, node=node, cohort=cohort, over=over))
        return node

    def opened(self, parent: str, role: Role = Role.SEARCH, island: int = 0) -> str:
        node = child_of(parent, self.state.next_child(parent))
        self._number[role] += 1
        slot = "control" if role is Role.CONTROL else "attempts"
        self.tell(
            e.AttemptOpened(
                node=node,
                parent=parent,
                role=role,
                number=self._number[role],
                branch=len(self.state.nodes),
                step=1,
                island=island,
            ),
            e.Reserved(hold=f"{node}#1", amounts={slot: 1, "usd": 50_000}),
        )
        return node

    def end(self, node: str, ending: Ending, *, kept: bool = False, why: str = "") -> None:
        slot = "control" if self.state.nodes[node].role is Role.CONTROL else "attempts"
        if f"{node}#1" in self.accounts.holds:
            if ending.charged:
                self.tell(e.Settled(hold=f"{node}#1", node=node, spent={slot: 1, "usd": 20_000, "seconds": 1500}))
            else:
                self.tell(e.Refunded(hold=f"{node}#1", node=node, spent={"usd": 5_000}))
        why = why or ("better than the champion" if kept else "no better than the champion")
        self.tell(e.AttemptEnded(node=node, ending=ending, kept=kept, why=why))

    def guard(self, node: str, name: str, passed: bool, reason: str = "") -> None:
        self.tell(
            e.GuardIntended(node=node, guard=name), e.GuardEnded(node=node, guard=name, passed=passed, reason=reason)
        )

    def add_guard(self, node: str, name: str) -> None:
        self.tell(e.GuardAdded(node=node, guard=Guard(name=name, command=("python3", "-m", "unittest"))))

    def score(
        self,
        node: str,
        values: dict[str, float],
        cohort: str = COHORT,
        *,
        purpose: Purpose = Purpose.SUBMIT,
        outputs: Mapping[str, bytes] | None = None,
        log: bytes = b"hello\n",
        subject: str = "",
        **more: Any,
    ) -> None:
        trial = self.trial(node, purpose, subject)
        told = {"tier": Tier.DATA, "mode": purpose.mode, "cohort": cohort, **more}
        self.tell(
            e.TrialEnded(
                trial=trial,
                ending=None,
                exit_code=0,
                outputs=self.keep_files(outputs or {"packing.json": b"[]"}),
                log=self.keep(log),
                fingerprint=FINGERPRINT,
                spent=TRIAL,
            ),
            e.JudgingIntended(trial=trial, judging=f"{trial}/judge"),
            e.JudgingEnded(
                trial=trial, judging=f"{trial}/judge", verdict=Verdict(metrics=values, **told), spent=JUDGING
            ),
        )

    def promote(self, node: str, draft: int, tree: Tree, parent: str | None = None) -> None:
        self.trees[node] = tree
        commit = "b" * 40
        if self._candidates:
            above = self.state.nodes[parent].commit if parent else None
            commit = self._candidates.write(node, tree, above, node, self._now)
        diff = self.keep(difference(self.trees[parent] if parent else Tree(), tree).encode())
        self.tell(e.Promoted(node=node, draft=draft, why="the only draft", commit=commit, diff=diff))

    def trial(self, node: str, purpose: Purpose = Purpose.SUBMIT, subject: str = "") -> str:
        trial = f"{node}-{self.state.nodes[node].trials + 1}"
        self.tell(e.TrialIntended(trial=trial, node=node, purpose=purpose, draft=1, subject=subject))
        return trial


def material(story: Story, ranking: Ranking | None = None) -> Material:
    """What sections on the present run are made from."""
    state = story.state
    return Material(
        state,
        story.accounts,
        state.run,
        ranking or Ranking([Metric()]),
        StoredTask(story.task.canonical()),
        Path("my task"),
    )


def campaign(count: int = 60, seed: int = 3, folder: Path | None = None, spare: int = 20) -> Story:
    """A search that improves, stumbles and stalls like a real one."""
    story = Story(folder).open(beside="grid", attempts=count + spare, usd=5_000_000 + 50_000 * count, control=count)
    story.add_guard("1", "tests")
    story.baseline(0.96)
    draw = random.Random(seed)
    best, parent = 0.96, "1"
    bad = [Ending.FAILED, Ending.TIMED_OUT, Ending.INVALID, Ending.OUT_OF_MEMORY, Ending.STALLED, Ending.INFRASTRUCTURE]
    for number in range(count):
        role = Role.CONTROL if number % 4 == 3 else Role.SEARCH
        where = "1" if role is Role.CONTROL or draw.random() < 0.3 else parent
        rows = draw.randint(2, 9)
        told: dict[str, Any] = {
            "description": f"hexagonal rows={rows}, then relax the outer ring",
            "params": {"rows": rows},
        }
        if draw.random() < 0.2:
            story.attempt(where, ending=draw.choice(bad), role=role, **told)
            continue
        value = round(best + draw.gauss(-0.12, 0.14), 4)
        kept = value > best and role is Role.SEARCH
        node = story.attempt(where, value, kept=kept, role=role, **told)
        if kept:
            best, parent = value, node
    return story
