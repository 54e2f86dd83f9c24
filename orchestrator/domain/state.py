"""The fold: events in, records out. It costs the same for the first event as for the last."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.node import path_to, run_of
from orchestrator.domain.records import (
    Campaign,
    Certification,
    Draft,
    Guard,
    HeldOut,
    Injection,
    Node,
    Phase,
    Purpose,
    Role,
    Run,
    Spent,
    Trial,
)
from orchestrator.domain.verdict import Verdict

Key = tuple[str, str]
Record = TypeVar("Record", bound=BaseModel)
_TYPES: dict[str, type[BaseModel]] = {"campaign": Campaign, "run": Run, "node": Node, "draft": Draft, "trial": Trial}
_TYPES["injection"] = Injection


class State:
    """Records by kind and id. `touched` has the keys that changed since they were last taken."""

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Any]] = {kind: {} for kind in _TYPES}
        self.touched: set[Key] = set()
        self.children: dict[str, int] = {}
        self.unfinished: dict[str, None] = {}
        self.branches: dict[int, list[str]] = {}

    @classmethod
    def from_rows(cls, rows: Mapping[Key, str]) -> "State":
        """The state as its rows tell it; rows of other kinds are somebody else's."""
        state = cls()
        for (kind, name), body in rows.items():
            if kind in _TYPES:
                state._records[kind][name] = _TYPES[kind].model_validate_json(body)
        for node in sorted(state.nodes.values(), key=lambda node: (node.opened_at, node.step)):
            state._index(node, new=True)
        return state

    def row(self, key: Key) -> str:
        record: BaseModel = self._records[key[0]][key[1]]
        return record.model_dump_json()

    @property
    def campaign(self) -> Campaign:
        record: Campaign = self._records["campaign"]["campaign"]
        return record

    @property
    def opened(self) -> bool:
        return bool(self._records["campaign"])

    @property
    def runs(self) -> dict[str, Run]:
        return self._records["run"]

    @property
    def run(self) -> Run:
        """The run that is worked on: the last one."""
        return self.runs[str(self.campaign.run)]

    @property
    def nodes(self) -> dict[str, Node]:
        return self._records["node"]

    @property
    def trials(self) -> dict[str, Trial]:
        return self._records["trial"]

    @property
    def injections(self) -> dict[int, Injection]:
        return {int(name): record for name, record in self._records["injection"].items()}

    def drafts(self, node: str) -> list[Draft]:
        count = self.nodes[node].drafts
        return [self._records["draft"][f"{node}#{number}"] for number in range(1, count + 1)]

    def trials_of(self, node: str) -> Iterator[Trial]:
        for number in range(1, self.nodes[node].trials + 1):
            yield self.trials[f"{node}-{number}"]

    def champion(self, run: Run | None = None) -> Node | None:
        """The best kept node of a run in its present cohort."""
        run = run or self.run
        name = run.champions.get(run.cohort or "")
        return self.nodes[name] if name else None

    def guards_of(self, node: str) -> list[Guard]:
        """The guards that a node inherits, from the root on; a later one of the same name replaces an earlier."""
        found = {guard.name: guard for place in path_to(node) for guard in self.nodes[place].guards}
        return list(found.values())

    def count(self, role: Role) -> int:
        """How many nodes of a role the present run has."""
        return self.campaign.counts.get(count_key(str(self.campaign.run), role), 0)

    def refunds_of(self, node: str) -> int:
        """The free endings of a node and of all that it descends from."""
        return sum(self.campaign.refunds.get(name, 0) for name in path_to(node))

    def next_child(self, parent: str) -> int:
        return self.children.get(parent, 0) + 1

    def apply(self, event: e.Event, at: str) -> None:
        """Fold one event in. Raises KeyError for one that speaks of something unknown: then the ledger is broken."""
        self._keep_time(event, at)
        if handler := _HANDLERS.get(type(event)):
            handler(self, event, at)

    def _keep_time(self, event: e.Event, at: str) -> None:
        if not self.opened or self.campaign.last_at == at:
            return
        now = self.campaign
        idle = isinstance(event, e.SessionStarted) or not now.session_open or not now.last_at
        passed = 0.0 if idle else _seconds(now.last_at, at)
        self._put("campaign", "campaign", elapsed_s=now.elapsed_s + max(0.0, passed), last_at=at)

    def _put(self, kind: str, name: str, **changes: Any) -> None:
        records = self._records[kind]
        records[name] = records[name].model_copy(update=changes)
        self.touched.add((kind, name))

    def _new(self, kind: str, name: str, record: BaseModel) -> None:
        self._records[kind][name] = record
        self.touched.add((kind, name))

    def _index(self, node: Node, *, new: bool = False) -> None:
        if node.parent:
            last = int(node.id.rpartition(".")[2])
            self.children[node.parent] = max(last, self.children.get(node.parent, 0))
        if node.phase is Phase.ENDED:
            self.unfinished.pop(node.id, None)
        else:
            self.unfinished[node.id] = None
        if node.branch and run_of(node.id) == self.campaign.run:
            self._index_branch(node, new)

    def _index_branch(self, node: Node, new: bool) -> None:
        """Branches that have steps left, and those whose last step is not over. One that is finished stays so."""
        if new:
            self.branches.setdefault(node.branch, []).append(node.id)
        if node.phase is Phase.ENDED and node.step >= self.run.depth:
            self.branches.pop(node.branch, None)

    def _node(self, name: str, **changes: Any) -> None:
        self._put("node", name, **changes)
        self._index(self.nodes[name])

    def _campaign(self, **changes: Any) -> None:
        self._put("campaign", "campaign", **changes)


def count_key(node: str, role: Role) -> str:
    return f"{run_of(node)}/{role}"


def _seconds(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def _campaign_opened(state: State, event: e.CampaignOpened, at: str) -> None:
    record = Campaign(id=event.campaign, name=event.name, version=event.version, last_at=at)
    state._new("campaign", "campaign", record)


def _run_started(state: State, event: e.RunStarted, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "run"})
    state._new("run", str(event.run), Run(number=event.run, root=str(event.run), **fields))
    state._campaign(run=event.run, since_improvement=0, stopped="")
    state.branches.clear()


def _limits_set(state: State, event: e.LimitsSet, _: str) -> None:
    if state.runs:
        state._put("run", str(state.campaign.run), options=event.options)


def _session_started(state: State, event: e.SessionStarted, at: str) -> None:
    state._campaign(epoch=event.epoch, session_open=True, last_at=at, stopped="", paused=False)


def _session_ended(state: State, _: e.SessionEnded, __: str) -> None:
    state._campaign(session_open=False)


def _attempt_opened(state: State, event: e.AttemptOpened, at: str) -> None:
    fields = event.model_dump(exclude={"kind", "node"})
    state._new("node", event.node, Node(id=event.node, opened_at=at, **fields))
    state._index(state.nodes[event.node], new=True)
    now = state.campaign
    role = count_key(event.node, event.role)
    counts = {**now.counts, role: now.counts.get(role, 0) + 1}
    waiting = tuple(number for number in now.waiting if number != event.injection)
    state._campaign(counts=counts, branches=max(now.branches, event.branch), waiting=waiting)


def _injection_queued(state: State, event: e.InjectionQueued, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "injection"})
    state._new("injection", str(event.injection), Injection(id=event.injection, **fields))
    state._campaign(waiting=(*state.campaign.waiting, event.injection))


def _proposed(state: State, event: e.Proposed, _: str) -> None:
    fields = event.model_dump(exclude={"kind", "draft"})
    state._new("draft", f"{event.node}#{event.draft}", Draft(number=event.draft, **fields))
    told = {"operator": event.operator, "description": event.description, "params": event.params}
    state._node(event.node, drafts=event.draft, **told)


def _promoted(state: State, event: e.Promoted, _: str) -> None:
    draft = state._records["draft"].get(f"{event.node}#{event.draft}")
    told = {"operator": draft.operator, "description": draft.description, "params": draft.params} if draft else {}
    state._node(event.node, promoted=event.draft, commit=event.commit, diff=event.diff, size=event.size, **told)


def _trial_intended(state: State, event: e.TrialIntended, at: str) -> None:
    record = Trial(id=event.trial, node=event.node, purpose=event.purpose, draft=event.draft, started_at=at)
    state._new("trial", event.trial, record)
    more: dict[str, Any] = {"trials": state.nodes[event.node].trials + 1}
    if event.purpose is Purpose.SUBMIT:
        more["submitted"] = event.trial
    state._node(event.node, **more)


def _trial_ended(state: State, event: e.TrialEnded, _: str) -> None:
    state._put("trial", event.trial, ended=True, **_fields(event, "kind", "trial"))
    trial = state.trials[event.trial]
    state._node(trial.node, spent=state.nodes[trial.node].spent + event.spent)


def _judging_intended(state: State, event: e.JudgingIntended, at: str) -> None:
    state._put("trial", event.trial, judging=event.judging, judging_since=at)


def _judging_ended(state: State, event: e.JudgingEnded, _: str) -> None:
    trial = state.trials[event.trial]
    node = state.nodes[trial.node]
    state._node(trial.node, spent=node.spent + event.spent)
    if event.on_baseline or event.interrupted:
        state._put("trial", event.trial, judging=None)
        return
    told = {"verdict": event.verdict, "fault": event.fault, "traces": event.traces, "calibration": event.calibration}
    state._put("trial", event.trial, judging=None, judged=True, **told)
    if event.verdict:
        _take_verdict(state, state.trials[event.trial], event.verdict)


def _take_verdict(state: State, trial: Trial, verdict: Verdict) -> None:
    node = state.nodes[trial.node]
    if trial.purpose is Purpose.TUNE:
        state._put("draft", f"{node.id}#{trial.draft}", verdict=verdict)
    else:
        first = {"verdict": verdict} if trial.purpose is Purpose.SUBMIT else {}
        # The first one of a cohort stands: a re-run that lands there again must not move the bar.
        of_cohort = {verdict.cohort: verdict} if verdict.valid else {}
        state._node(node.id, verdicts={**of_cohort, **node.verdicts}, **first)


def _certification_opened(state: State, event: e.CertificationOpened, _: str) -> None:
    test = Certification(since=state.nodes[event.node].trials, **event.model_dump(exclude={"kind", "node"}))
    state._node(event.node, certification=test)
    champion = state.nodes[event.champion]
    state._node(champion.id, challenged={**champion.challenged, event.cohort: event.against})
    state._campaign(tests=event.number)


def _guard_intended(state: State, event: e.GuardIntended, at: str) -> None:
    state._node(event.node, guarding=event.guard, guarding_since=at)


def _guard_ended(state: State, event: e.GuardEnded, _: str) -> None:
    node = state.nodes[event.node]
    learnt = {} if event.interrupted else {event.guard: event.passed}
    state._node(event.node, guarding=None, guarded={**node.guarded, **learnt}, spent=node.spent + event.spent)


def _guard_added(state: State, event: e.GuardAdded, _: str) -> None:
    others = tuple(guard for guard in state.nodes[event.node].guards if guard.name != event.guard.name)
    state._node(event.node, guards=(*others, event.guard))
    for name in state.unfinished:
        # One of the same name that passed before was another one.
        if event.guard.name in state.nodes[name].guarded:
            left = {guard: passed for guard, passed in state.nodes[name].guarded.items() if guard != event.guard.name}
            state._put("node", name, guarded=left)


def _held_out_intended(state: State, event: e.HeldOutIntended, at: str) -> None:
    state._node(event.node, asking=event.query, asking_since=at)
    state._campaign(asked=state.campaign.asked + 1, askable=event.queries)


def _held_out_asked(state: State, event: e.HeldOutAsked, _: str) -> None:
    node = state.nodes[event.node]
    spent = node.spent + event.spent
    if event.interrupted:
        state._node(event.node, asking=None, spent=spent)
        return
    answer = HeldOut(**{name: getattr(event, name) for name in HeldOut.model_fields})
    # The first one of a cohort stands, as with verdicts: where the baseline began is what drift is measured from.
    state._node(event.node, asking=None, heldout={event.cohort: answer, **node.heldout}, spent=spent)
    run = state.runs[str(run_of(event.node))]
    if event.released is not None:
        state._put("run", str(run.number), ladders={**run.ladders, event.cohort: event.released})


def _attempt_ended(state: State, event: e.AttemptEnded, at: str) -> None:
    node = state.nodes[event.node]
    told = _fields(event, "kind", "node")
    state._node(event.node, phase=Phase.ENDED, ended_at=at, **told)
    if event.ending.charged and node.role in ("search", "injected"):
        kept_none = 0 if event.kept else state.campaign.since_improvement + 1
        state._campaign(since_improvement=kept_none)


def _attempt_requeued(state: State, event: e.AttemptRequeued, _: str) -> None:
    node = state.nodes[event.node]
    stalls = node.stalls + (event.ending is Ending.STALLED)
    state._node(
        event.node, phase=Phase.QUEUED, stalls=stalls, not_before=event.not_before, ending=event.ending, why=event.why
    )
    _count_refund(state, event.node, event.ending)


def _attempt_quarantined(state: State, event: e.AttemptQuarantined, _: str) -> None:
    stalls = state.nodes[event.node].stalls + (event.ending is Ending.STALLED)
    state._node(event.node, phase=Phase.QUARANTINED, stalls=stalls, ending=event.ending, why=event.why)
    _count_refund(state, event.node, event.ending)


def _count_refund(state: State, node: str, ending: Ending) -> None:
    """An interruption is our own doing and can not be farmed; it does not count."""
    if ending is not Ending.INTERRUPTED:
        refunds = state.campaign.refunds
        state._campaign(refunds={**refunds, node: refunds.get(node, 0) + 1})


def _attempt_released(state: State, event: e.AttemptReleased, _: str) -> None:
    lineage = path_to(event.node)
    refunds = {name: count for name, count in state.campaign.refunds.items() if name not in lineage}
    state._campaign(refunds=refunds)
    state._node(event.node, phase=Phase.QUEUED, stalls=0, not_before="", ending=None, kept=False, why=event.by)


def _attempt_resumed(state: State, event: e.AttemptResumed, _: str) -> None:
    take = state.nodes[event.node].take + 1
    state._node(event.node, phase=Phase.OPEN, take=take, ending=None, why="")


def _booked(state: State, event: e.Settled | e.Refunded, _: str) -> None:
    units = event.spent
    spent = Spent(microdollars=units.get("usd", 0), milliseconds=units.get("seconds", 0), tokens=units.get("tokens", 0))
    state._node(event.node, booked=state.nodes[event.node].booked + spent)


def _cohort_opened(state: State, event: e.CohortOpened, _: str) -> None:
    state._put("run", str(event.run), cohort=event.cohort)


def _champion_changed(state: State, event: e.ChampionChanged, _: str) -> None:
    run = state.runs[str(event.run)]
    champions = {**run.champions, event.cohort: event.node}
    state._put("run", str(event.run), champions=champions, cohort=event.cohort)
    number = state.campaign.references + 1
    state._node(event.node, references={**state.nodes[event.node].references, event.cohort: number})
    state._campaign(references=number)


def _request_taken(state: State, event: e.RequestTaken, _: str) -> None:
    state._campaign(request=event.request)


def _pause_set(state: State, event: e.PauseSet, _: str) -> None:
    state._campaign(paused=event.paused)


def _campaign_stopped(state: State, event: e.CampaignStopped, _: str) -> None:
    state._campaign(stopped=event.reason)


def _fields(event: BaseModel, *without: str) -> dict[str, Any]:
    return {name: getattr(event, name) for name in type(event).model_fields if name not in without}


_HANDLERS: dict[type[BaseModel], Callable[[State, Any, str], None]] = {
    e.CampaignOpened: _campaign_opened,
    e.RunStarted: _run_started,
    e.LimitsSet: _limits_set,
    e.SessionStarted: _session_started,
    e.SessionEnded: _session_ended,
    e.AttemptOpened: _attempt_opened,
    e.InjectionQueued: _injection_queued,
    e.Proposed: _proposed,
    e.Promoted: _promoted,
    e.TrialIntended: _trial_intended,
    e.TrialEnded: _trial_ended,
    e.JudgingIntended: _judging_intended,
    e.JudgingEnded: _judging_ended,
    e.CertificationOpened: _certification_opened,
    e.GuardIntended: _guard_intended,
    e.GuardEnded: _guard_ended,
    e.GuardAdded: _guard_added,
    e.HeldOutIntended: _held_out_intended,
    e.HeldOutAsked: _held_out_asked,
    e.AttemptEnded: _attempt_ended,
    e.AttemptRequeued: _attempt_requeued,
    e.AttemptQuarantined: _attempt_quarantined,
    e.AttemptReleased: _attempt_released,
    e.AttemptResumed: _attempt_resumed,
    e.Settled: _booked,
    e.Refunded: _booked,
    e.CohortOpened: _cohort_opened,
    e.ChampionChanged: _champion_changed,
    e.RequestTaken: _request_taken,
    e.PauseSet: _pause_set,
    e.CampaignStopped: _campaign_stopped,
}
