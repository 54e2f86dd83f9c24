"""What a proposer may look back on, kept up with every event: to look costs the same however long a campaign is."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import overload

from orchestrator.change import Reason, Tree
from orchestrator.domain import events as e
from orchestrator.domain.headline import headline
from orchestrator.domain.lines import AnyDraft, AnyNode
from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Phase, Role, was_or_will_be_run
from orchestrator.domain.state import State
from orchestrator.proposers import Tried

# What a person brought is never tried again by the search, but says nothing of the proposer's own steps.
_KNOWN_TO = {Role.SEARCH: (Role.SEARCH, Role.INJECTED), Role.CONTROL: (Role.CONTROL,)}
_RUNNING = (Phase.OPEN, Phase.QUEUED)


class _Shown(Sequence[Tried]):
    """Those that are known by name only are made when they are first looked at: few proposers look at all of a long
    past. What ended says the same whenever it is asked.
    """

    def __init__(self, make: Callable[[str], Tried]) -> None:
        self._make = make
        self._of: list[str | Tried] = []

    def append(self, tried: str | Tried) -> None:
        self._of.append(tried)

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, at: int) -> Tried: ...
    @overload
    def __getitem__(self, at: slice) -> list[Tried]: ...
    def __getitem__(self, at: int | slice) -> Tried | list[Tried]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self._of)))]
        found = self._of[at]
        if isinstance(found, str):
            found = self._of[at] = self._make(found)
        return found


class History:
    """The attempts of one role in the present run. Made again from the state on a resume, with the same content."""

    def __init__(
        self,
        state: State,
        ranking: Ranking,
        role: Role,
        baseline: Iterable[str],
        read: Callable[[str], Tree],
        *,
        notes: bool = False,
    ) -> None:
        self._state = state
        self._ranking = ranking
        self._role = role
        self.baseline = tuple(baseline)
        self._read = read
        self._tells_notes = notes
        self._gather()

    @property
    def ended(self) -> Sequence[Tried]:
        """Another list as soon as another cohort is the present one: what was measured elsewhere is left out."""
        return self._ended

    @property
    def running(self) -> Sequence[Tried]:
        """By their numbers, each with what was proposed and nothing of what came of it: a first verdict may not stand.
        It is the list itself, kept up as they come and go: a look at the last of them costs the same with thousands in
        flight.
        """
        return self._running

    def knows(self, digest: str) -> bool:
        return digest in self._trees

    def first_with(self, digest: str) -> str:
        """The node that had this tree first."""
        return self._trees[digest]

    def has_measured(self, digest: str) -> bool:
        """Whether it was a candidate, and not only a draft that another one was preferred to."""
        node = self._state.nodes[self._trees[digest]]
        drafts = self._state.drafts(node.id)
        return node.id == self._state.run.root or any(
            digest in _digests(it) and it.number == node.promoted for it in drafts
        )

    def tried(self, node: str) -> Tried:
        """Any node of the run, the root included."""
        return self._tried(self._state.nodes[node])

    def tree(self, node: str) -> Tree:
        if node not in self._state.nodes:
            raise LookupError(node)
        return self._read(node)

    def on_event(self, event: e.Event, at: str) -> None:
        del at
        match event:
            case e.Proposed() if self._is_known(event.node):
                self._propose(event.node, event)
            case e.Promoted() if self._is_mine(event.node):
                self._show_running(self._state.nodes[event.node])
            case e.AttemptEnded() if self._is_mine(event.node):
                self._end(self._state.nodes[event.node])
            case e.AttemptQuarantined() if self._is_known(event.node):
                self._leave(self._state.nodes[event.node])
                if not was_or_will_be_run(self._state.nodes[event.node]):
                    self._forget(event.node)
            case e.ChampionChanged() | e.CohortOpened() if self._state.run.cohort != self._cohort:
                self._gather()

    def _gather(self) -> None:
        state = self._state
        self._cohort = state.run.cohort
        self._ended = _Shown(lambda name: self._tried(state.nodes[name]))
        self._running: list[Tried] = []
        self._trees = dict.fromkeys(self.baseline, state.run.root)
        known = [node for node in state.node_lines() if self._counts(node)]
        for node in known:
            if not was_or_will_be_run(node):
                continue
            for draft in state.draft_lines(node):
                self._remember(node.id, draft)
            if node.drafts and node.phase in _RUNNING and node.role is self._role:
                self._show_running(state.nodes[node.id])
        mine = [node for node in known if node.role is self._role and node.phase is Phase.ENDED]
        for node in sorted(mine, key=lambda node: (node.ended_place, node.number)):
            if self._is_shown(node):
                self._ended.append(node.id)

    def _propose(self, node: str, draft: e.Proposed) -> None:
        self._remember(node, draft)
        if self._is_mine(node):
            self._show_running(self._state.nodes[node])

    def _remember(self, node: str, draft: AnyDraft | e.Proposed) -> None:
        for digest in _digests(draft):
            if draft.origin:
                # Offered to another one, but run here.
                self._trees[digest] = node
            else:
                self._trees.setdefault(digest, node)

    def _show_running(self, node: Node) -> None:
        """The order is that of numbers, not of proposals: a resume, which does not know the latter, has the same."""
        if node.phase not in _RUNNING:
            return
        at = self._place(node)
        known = at < len(self._running) and self._running[at].number == node.number
        self._running[at : at + known] = [
            Tried(
                node=node.id,
                number=node.number,
                parent=node.parent or "",
                operator=node.operator,
                description=node.description,
                params=node.params,
                merits=None,
                parent_merits=None,
                drawn=node.drawn,
            )
        ]

    def _leave(self, node: Node) -> None:
        at = self._place(node)
        if self._running[at : at + 1] and self._running[at].node == node.id:
            del self._running[at]

    def _place(self, node: Node) -> int:
        return bisect_left(self._running, node.number, key=lambda it: it.number)

    def _forget(self, node: str) -> None:
        """What was never run may be proposed again."""
        self._trees = {digest: name for digest, name in self._trees.items() if name != node}

    def _end(self, node: Node) -> None:
        self._leave(node)
        if not was_or_will_be_run(node):
            self._forget(node.id)
        if self._is_shown(node):
            self._ended.append(self._tried(node))

    def _is_shown(self, node: AnyNode) -> bool:
        """One that was used up, and not measured elsewhere only."""
        if node.ending is None or not node.ending.charged:
            return False
        here = node.verdict is None or self._cohort in (None, node.verdict.cohort)
        return here or self._cohort in self._state.nodes[node.id].verdicts

    def _tried(self, node: Node) -> Tried:
        return Tried(
            node=node.id,
            number=node.number,
            parent=node.parent or "",
            operator=node.operator,
            description=node.description,
            params=node.params,
            merits=self._merits(node),
            parent_merits=self._merits(self._state.nodes[node.parent]) if node.parent else None,
            kept=node.kept,
            ending=node.ending,
            fault=self._fault(node),
            drawn=node.drawn,
            usd=(node.cost or node.spent).microdollars / 1e6,
            seconds=(node.cost or node.spent).milliseconds / 1e3,
            certified=self._certified(node),
            parent_certified=self._certified(self._state.nodes[node.parent]) if node.parent else None,
            screened=self._state.run.noisy,
            notes=self._notes(node) if self._tells_notes else "",
        )

    def _notes(self, node: Node) -> str:
        trial = self._state.trials.get(node.submitted or "")
        verdict = (trial.verdict if trial else None) or node.verdict
        return verdict.notes if verdict else ""

    def _certified(self, node: Node) -> tuple[float, ...] | None:
        """By the repeats of its own test, which is over; those of a baseline grow, and would change what was learnt."""
        if node.certification is None or self._merits(node) is None:
            return None
        found = headline(self._state, node, self._cohort)
        if found is None or not found.runs or self._ranking.missing(found.metrics):
            return None
        return self._ranking.merits(found.metrics)

    def _fault(self, node: Node) -> str:
        """A fixed code, or the number that the candidate ended with; never a text of the judge or of a log."""
        trial = self._state.trials.get(node.submitted or "")
        if trial is None:
            refused = next((it.refused for it in self._state.drafts(node.id) if it.refused), "")
            code = refused.partition(":")[0]
            return f"change refused: {code}" if code in set(Reason) else ""
        if trial.fault:
            return trial.fault
        if trial.verdict and not trial.verdict.valid:
            return "not a solution"
        return f"exit code {trial.exit_code}" if trial.ending and trial.exit_code else ""

    def _merits(self, node: Node) -> tuple[float, ...] | None:
        verdict = node.verdicts.get(self._cohort or "") or node.verdict
        if verdict is None or not verdict.valid or verdict.suspect or self._ranking.missing(verdict.metrics):
            return None
        return self._ranking.merits(verdict.metrics)

    def _is_mine(self, name: str) -> bool:
        node = self._state.nodes[name]
        return node.role is self._role and self._counts(node)

    def _is_known(self, name: str) -> bool:
        return self._counts(self._state.nodes[name])

    def _counts(self, node: AnyNode) -> bool:
        """Whether its tree counts as tried: that of the same run, and never of the other arm of a comparison."""
        return node.role in _KNOWN_TO[self._role] and run_of(node.id) == self._state.campaign.run


def _digests(draft: AnyDraft | e.Proposed) -> list[str]:
    """All that its tree is known by."""
    form = draft.likeness.form if draft.likeness else None
    return [it for it in (draft.tree, draft.known_as, form) if it]
