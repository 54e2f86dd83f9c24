"""What is started next: queued attempts first, then changes by hand, then what the search and its control are due."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from orchestrator.budget import RateLimit, Shortage
from orchestrator.budget.stops import Progress, Stop
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.node import child_of, run_of
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.loop.granting import asks_nobody, grant_of
from orchestrator.loop.guards import guard_record
from orchestrator.loop.keeping import nothing_can_be_kept
from orchestrator.loop.money import account_of, hold_of
from orchestrator.loop.openings import Opening, control_is_due, next_opening
from orchestrator.loop.proposing import seed_of
from orchestrator.loop.rounds import Rounds, Stand
from orchestrator.loop.selection import Population
from orchestrator.loop.workbench import BaselineFailed, Workbench
from orchestrator.meta.chooser import Chooser
from orchestrator.units import stamp

_REPEATS_IN_A_ROW = 20
# A node's name is that of a branch, and so of a file.
_LONGEST_NAME = 200
# Not now: a place, a reservation or a moment has to come free first.
_LATER = "later"


class Scheduler:
    """Opens attempts, each with its reservation in one transaction, and hands their names to `start`."""

    def __init__(
        self,
        bench: Workbench,
        stop: Stop,
        rate: RateLimit | None,
        width: int,
        selection: Population | None,
        start: Callable[[str], None],
        *,
        review: bool,
    ) -> None:
        self._bench = bench
        self._stop = stop
        self._rate = rate
        self._width = width
        self._selection = selection
        self._start = start
        self._exhausted: dict[Role, str] = {}
        self._nothing_new: dict[Role, int] = {}
        self.short = False
        self._winner = ""
        self._begun = ""
        self.rounds = Rounds(bench, width, self._next_opening) if review else None

    def fill(self, free: int) -> str | None:
        """Fill so many free places; the reason when there is nothing left to start. `short`: one waits for money."""
        bench = self._bench
        self.short = False
        for _ in range(free):
            if bench.state.campaign.paused or bench.breaker.is_open:
                return None
            root = bench.state.nodes.get(bench.state.run.root)
            if root is None:
                return self._open(Opening("", Role.BASELINE))
            if root.phase is Phase.QUARANTINED:
                raise BaselineFailed(f"the baseline could not be run: {root.why}")
            if root.phase is Phase.ENDED and root.ending is not Ending.SCORED:
                raise BaselineFailed(f"the baseline of run {root.id} ended as {root.ending}: {root.why}")
            if reason := self._start_one(root):
                return reason if reason != _LATER else None
        return None

    def minimise(self, winner: str) -> None:
        """From here on, nothing is started but the taking apart of one node."""
        self._winner = winner

    @property
    def minimises(self) -> bool:
        return bool(self._winner)

    def _start_one(self, root: Node) -> str | None:
        queued = self._ready()
        if queued and not (self._failed_a_try(queued) and self._start_new(root) is None):
            self._begun = queued.id if self._winner else ""
            return self._resume(queued)
        return None if queued else self._start_new(root)

    def _start_new(self, root: Node) -> str | None:
        if self._winner:
            return self._take_apart()
        if root.phase is not Phase.ENDED:
            return _LATER
        if self._bench.state.campaign.waiting:
            return self._open_injected()
        reason = self._stop.reason(self.progress()) or nothing_can_be_kept(self._bench.rules, self._bench.state)
        reason = reason or self._round_is_made()
        if reason and not self._control_may_draw():
            return reason
        if self._rate and self._rate.wait(time.monotonic()) > 0:
            return _LATER
        return self._catch_up(reason) if reason else self._open_next()

    def _take_apart(self) -> str | None:
        """The winner's node that was begun and not ended, begun by this session or another; else a new one."""
        nodes = self._bench.state.nodes
        begun = [nodes[name] for name in self._bench.state.unfinished if self._is_of_winner(nodes[name])]
        if begun and begun[-1].phase is not Phase.QUARANTINED:
            self._begun = begun[-1].id
            return _LATER
        if begun:
            return f"{begun[-1].id} is quarantined: {begun[-1].why}; blastdoor release {begun[-1].id} lets it go on"
        if self._begun:
            return f"{self._winner} is taken apart: {nodes[self._begun].why}"
        if reason := nothing_can_be_kept(self._bench.rules, self._bench.state):
            return reason
        found = self._open(Opening(self._winner, Role.MINIMISED))
        self._begun = child_of(self._winner, self._bench.state.children.get(self._winner, 0)) if found is None else ""
        return found

    def _may_go_on(self, node: Node) -> bool:
        """What takes a node apart goes on where that is asked for, and then nothing else does."""
        return self._is_of_winner(node) if self._winner else node.role is not Role.MINIMISED

    def _is_of_winner(self, node: Node) -> bool:
        return node.role is Role.MINIMISED and node.parent == self._winner

    def _round_is_made(self) -> str | None:
        if self.rounds is None:
            return None
        return {Stand.ROOM: None, Stand.WAITS: _LATER, Stand.OVER: self.rounds.over}[self.rounds.stand()]

    def _open_next(self) -> str | None:
        bench = self._bench
        if self._slots_are_promised():
            return _LATER
        if self._control_may_draw():
            return self._open(Opening(bench.state.run.root, Role.CONTROL))
        proposer = bench.proposers[Role.SEARCH]
        number = bench.state.count(Role.SEARCH) + 1
        if reason := self._exhausted.get(Role.SEARCH) or proposer.exhausted(number):
            return _LATER if self._has_queued() else reason
        self._migrate()
        opening = self._next_opening()
        return _LATER if opening is None else self._open(opening)

    def _migrate(self) -> None:
        run, made = self._bench.state.run, self._bench.state.count_paid(Role.SEARCH)
        if self._selection and run.islands > 1 and made - run.migrated >= run.migrate:
            self._bench.book.record(e.Migrated(run=run.number, after=made, moves=self._selection.moves()))

    def _next_opening(self) -> Opening | None:
        bench = self._bench
        return next_opening(
            bench.state,
            bench.ranking,
            branching=bench.proposers[Role.SEARCH].branching,
            width=self._width + bool(bench.breaker.tried_in_vain),
            selection=self._selection,
            several=bench.at_once > 1,
            walk=bench.walk,
            choosing=self._chooser_of,
        )

    def _chooser_of(self, branch: int) -> Chooser:
        """With dice of its own: those of attempts have numbers above 0."""
        run, past = self._bench.state.run, self._bench.pasts[Role.SEARCH]
        return self._bench.meta.chooser(past.ended, seed_of(run, Role.SEARCH), -branch, 0, past.running)

    def _control_may_draw(self) -> bool:
        bench = self._bench
        if not control_is_due(bench.state) or Role.CONTROL in self._exhausted:
            return False
        if through := bench.proposers[Role.CONTROL].exhausted(bench.state.count(Role.CONTROL) + 1):
            self._exhausted[Role.CONTROL] = through
        return not through

    def _catch_up(self, reason: str) -> str | None:
        """A rule has stopped the search; the control still gets what it is owed, so that all of it can be compared."""
        found = self._open(Opening(self._bench.state.run.root, Role.CONTROL))
        return found if found in (None, _LATER) else reason

    def _open_injected(self) -> str | None:
        state = self._bench.state
        injection = state.injections[state.campaign.waiting[0]]
        champion = state.champion()
        # What was meant for a node of an earlier run is tried on the present best.
        on = injection.on if injection.on and run_of(injection.on) == state.campaign.run else None
        parent = on or (champion.id if champion else state.run.root)
        return self._open(Opening(parent, Role.INJECTED, injection=injection.id))

    def _open(self, opening: Opening) -> str | None:
        """Reserve and open in one transaction; a reservation that does not fit waits while others may free enough."""
        bench, state = self._bench, self._bench.state
        parent = opening.parent or None
        node = child_of(parent, state.next_child(parent)) if parent else state.run.root
        if len(node) > _LONGEST_NAME:
            return f"the tree is as deep as names allow; go on with `run --new-run --from {parent}`"
        guards = state.guards_of(parent) if parent else []
        grant = grant_of(bench, opening.role, guards, asks=not asks_nobody(bench, node, opening.parent))
        if isinstance(grant, Shortage):
            return self._too_little(grant)
        opened = e.AttemptOpened(
            node=node,
            parent=parent,
            role=opening.role,
            number=state.count(opening.role) + 1,
            branch=opening.branch,
            step=opening.step,
            injection=opening.injection,
            island=opening.island,
            drawn=opening.drawn,
        )
        specs = bench.task.guards if opening.role is Role.BASELINE else ()
        hung = [e.GuardAdded(node=node, guard=guard_record(spec)) for spec in specs]
        bench.book.record(opened, e.Reserved(hold=f"{node}#1", amounts=grant.amounts.as_row()), *hung)
        if bench.models and grant.asking:
            bench.models.grants.grant(node, grant.asking)
        if self._rate:
            self._rate.take(time.monotonic())
        self._start(node)
        return None

    def _resume(self, node: Node) -> str | None:
        bench = self._bench
        asks = not asks_nobody(bench, node.id, node.parent or "")
        grant = grant_of(bench, node.role, bench.state.guards_of(node.id), asks=asks)
        if isinstance(grant, Shortage):
            return self._too_little(grant)
        hold = hold_of(node.model_copy(update={"take": node.take + 1}))
        bench.book.record(e.AttemptResumed(node=node.id), e.Reserved(hold=hold, amounts=grant.amounts.as_row()))
        if bench.models and grant.asking:
            bench.models.grants.grant(node.id, grant.asking)
        self._start(node.id)
        return None

    def _too_little(self, shortage: Shortage) -> str:
        self.short = shortage.could_fit_later
        return _LATER if shortage.could_fit_later else str(shortage)

    def _ready(self) -> Node | None:
        """The queued attempt whose time has come. One that is beyond every back-off comes of a clock that was set
        back, and does not wait for it.
        """
        now = self._bench.book.now()
        soon, late = stamp(now), stamp(now + timedelta(seconds=self._bench.refunds.backoff_cap_s))
        queued = (node for node in self._queued() if self._may_go_on(node))
        ready = (node for node in queued if not soon < node.not_before <= late)
        return min(ready, key=self._failed_a_try, default=None)

    def _failed_a_try(self, node: Node) -> bool:
        """What fails for reasons of its own must not be all that is ever tried."""
        return node.id == self._bench.breaker.tried_in_vain

    def _slots_are_promised(self) -> bool:
        """Whether those that wait for their back-off need all the attempts that are left."""
        left = self._bench.book.accounts.left(account_of(self._bench))
        if left is None or left <= 0:
            return False
        return left <= sum(it.role in (Role.SEARCH, Role.INJECTED) for it in self._queued())

    def _has_queued(self) -> bool:
        return any(node.role is not Role.MINIMISED for node in self._queued())

    def _queued(self) -> list[Node]:
        state = self._bench.state
        return [node for name in state.unfinished if (node := state.nodes[name]).phase is Phase.QUEUED]

    def see_what_is_left(self, node: Node, exhausted: str | None) -> None:
        """A proposer that says so has nothing more, and so has one that only repeats itself."""
        charged = node.phase is Phase.ENDED and node.ending is not None and node.ending.charged
        repeats = 0 if charged else self._nothing_new.get(node.role, 0) + (node.ending is Ending.CANCELLED)
        self._nothing_new[node.role] = repeats
        if exhausted is None and repeats >= _REPEATS_IN_A_ROW:
            exhausted = f"{repeats} times in a row nothing new was proposed; {node.why}"
        if exhausted:
            self._exhausted[node.role] = exhausted

    def progress(self) -> Progress:
        state, run = self._bench.state, self._bench.state.run
        champion = state.champion(run)
        found = headline(state, champion, run.cohort) if champion else None
        # A value of one lucky run must not end the campaign: under noise, repeats are waited for.
        values = found.metrics if found and found.cohort == run.cohort and not found.screened else None
        first = self._bench.ranking.metrics[0].name
        # A cap on attempts is one run's; the accounts count the whole campaign.
        account = account_of(self._bench)
        used = self._bench.book.accounts.used(account) - run.before.get(account, 0)
        return Progress.of(
            self._bench.book.accounts,
            elapsed_s=state.campaign.elapsed_s + self._since_last_event(),
            best=values[first] if values else None,
            target_reached=bool(values and self._bench.ranking.reached(values)),
            since_improvement=state.campaign.since_improvement,
            attempts_used=used,
        )

    def _since_last_event(self) -> float:
        last = datetime.fromisoformat(self._bench.state.campaign.last_at)
        return max(0.0, (self._bench.book.now() - last).total_seconds())
