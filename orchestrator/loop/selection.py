"""From which node a new branch starts, where that is not always the champion: by a rule, on each island for itself."""

import random
from collections.abc import Callable, Iterator

from orchestrator.domain import events as e
from orchestrator.domain.goodput import comparable
from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import order_of, run_of
from orchestrator.domain.records import Node, Role
from orchestrator.domain.state import State
from orchestrator.meta.chooser import Chooser
from orchestrator.population import Member, ParentRule
from orchestrator.population.base import member_of, standing_of
from orchestrator.population.rules import Several

SLOT = "parent"


class _Island:
    """`best` is the best of all that may be built on here, `own` that of those that came to be here or were brought."""

    def __init__(self, rule: ParentRule) -> None:
        self.rule = rule
        self.best: Member | None = None
        self.own: Member | None = None
        self.names: set[str] = set()

    def add(self, member: Member, *, own: bool) -> None:
        if member.node in self.names:
            return
        self.names.add(member.node)
        self.rule.add(member)
        self.best = max(filter(None, (self.best, member)), key=lambda it: it.place)
        if own:
            self.own = max(filter(None, (self.own, member)), key=lambda it: it.place)


class Population:
    """All that may be built on, kept as events come in: what a draw costs does not grow with the campaign.

    It is a function of the state alone, so a resume goes on with the same draws. The baseline and what a person brought
    belong to all islands. `make` makes the rule of one island, given the baseline.
    """

    def __init__(self, state: State, ranking: Ranking, make: Callable[[Member | None], ParentRule]) -> None:
        self._state = state
        self._ranking = ranking
        self._make = make
        self._of: tuple[int, str | None] | None = None
        self._islands: dict[int, _Island] = {}

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.AttemptEnded):
            self._take(event.node)
        elif isinstance(event, e.JudgingEnded):
            # A node of another cohort that was run again in the present one.
            self._take(self._state.trials[event.trial].node)
        elif isinstance(event, e.Migrated):
            for name, _island in event.moves:
                self._take(name)

    def start_of(self, branch: int, island: int = 0, chooser: Chooser | None = None) -> str | None:
        """The same node for the same branch of the same run and seed; None for the champion. Where one of several rules
        is to be taken, the `chooser` is asked, and knows it then.
        """
        run, here = self._state.run, self._present()[island]
        if island and here.own is None and (former := self._former(island)):
            return former.node
        rule, seed = here.rule, f"{run.seed}/{run.number}/branch {branch}"
        if chooser and isinstance(rule, Several):
            # Not for secrets: the seed is in the ledger.
            dice = random.Random(f"{seed}/rule")  # noqa: S311
            rule = rule.rules[chooser.choose(SLOT, dict.fromkeys(rule.rules, 1.0), dice) or ""]
        return rule.draw(seed) or (self._best_of(island) if island else None)

    @property
    def chooses(self) -> bool:
        """Whether one of several rules is taken for each branch."""
        return any(isinstance(island.rule, Several) for island in self._present().values())

    def moves(self) -> tuple[tuple[str, int], ...]:
        """What each island gets of the one before it, the first of the last: its best, where that is new there."""
        islands = self._present()
        found = []
        for island, here in islands.items():
            best = islands[(island - 2) % len(islands) + 1].own
            if best and best.node not in here.names:
                found.append((best.node, island))
        return tuple(found)

    def _best_of(self, island: int) -> str | None:
        """The champion where it may be built on, for it is certified."""
        here, champion = self._present()[island], self._state.champion()
        if champion and champion.id in here.names and champion.id != self._state.run.root:
            return champion.id
        return here.best.node if here.best else None

    def _present(self) -> dict[int, _Island]:
        """Another cohort's scores do not compare, so a new one begins with what was run again there."""
        run = self._state.run
        if self._of != (run.number, run.cohort):
            self._of = (run.number, run.cohort)
            self._gather()
        return self._islands

    def _gather(self) -> None:
        run = self._state.run
        root = self._state.nodes.get(run.root)
        baseline = self._member(root) if root else None
        numbers = range(1, run.islands + 1) if run.islands > 1 else (0,)
        self._islands = {number: _Island(self._make(baseline)) for number in numbers}
        for node in sorted(self._state.nodes.values(), key=lambda node: order_of(node.id)):
            self._add(node)

    def _take(self, name: str) -> None:
        if name == self._state.run.root:
            self._of = None  # rules may compare with it, so they begin again
        elif self._of == (self._state.run.number, self._state.run.cohort):
            self._add(self._state.nodes[name])

    def _add(self, node: Node) -> None:
        if member := self._member(node):
            for island in self._homes(node):
                self._islands[island].add(member, own=island in (node.island, *node.migrated))

    def _homes(self, node: Node) -> Iterator[int]:
        if node.role is Role.MINIMISED and node.parent:  # what is left of it is where it was
            node = self._state.nodes[node.parent]
        if node.island == 0:
            yield from self._islands
        else:
            yield from (it for it in (node.island, *node.migrated) if it in self._islands)

    def _member(self, node: Node) -> Member | None:
        return member_of(self._state, self._ranking, node, self._state.run)

    def _former(self, island: int) -> Member | None:
        """An island of which nothing was measured in the present cohort goes on with what was best of it before: its
        children are measured again.
        """
        run = self._state.run
        for cohort in reversed([it for it in run.champions if it != run.cohort]):
            before = run.model_copy(update={"cohort": cohort})
            found = [
                Member(node.id, node.number, standing_of(self._ranking, verdict.metrics))
                for node in self._state.nodes.values()
                if island in (node.island, *node.migrated) and run_of(node.id) == run.number
                if (verdict := comparable(node, before)) and not self._ranking.missing(verdict.metrics)
            ]
            if found:
                return max(found, key=lambda it: it.place)
        return None
