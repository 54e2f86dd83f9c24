"""A run: how it starts, what it searches with and from, and its champions."""

from typing import Literal

from orchestrator.domain.events.base import NAMED, Amounts, Event, because
from orchestrator.domain.records import Brought, Combining, Injection, Role, Round, Run
from orchestrator.domain.state import State


class RunStarted(Event):
    """`before` has the slots that earlier runs used, `usd_before` the micro-dollars of the campaign until now.

    `brought` has what packages of others, or a caller in Python, put in. `islands` is the number of populations,
    `migrate` how many attempts lie between two migrations.
    """

    kind: Literal["run started"] = "run started"
    run: int
    task: str
    digests: dict[str, str]
    seed: int
    proposer: str
    control: str | None
    width: int
    depth: int
    why: str
    options: str
    lower_tier: bool
    noisy: bool = False
    before: Amounts
    usd_before: int = 0
    start: str | None = None
    brought: tuple[Brought, ...] = ()
    islands: int = 1
    migrate: int = 0
    combine: Combining | None = None

    def apply(self, state: State, _: str, /) -> None:
        record = Run(
            number=self.run,
            task=self.task,
            digests=self.digests,
            seed=self.seed,
            proposer=self.proposer,
            control=self.control,
            width=self.width,
            depth=self.depth,
            why=self.why,
            root=str(self.run),
            options=self.options,
            lower_tier=self.lower_tier,
            noisy=self.noisy,
            before=self.before,
            usd_before=self.usd_before,
            began_s=state.campaign.elapsed_s if state.runs else 0.0,
            start=self.start,
            brought=self.brought,
            islands=self.islands,
            migrate=self.migrate,
            combine=self.combine,
        )
        state.new("run", str(self.run), record)
        state.set_campaign(run=self.run, since_improvement=0, stopped="")
        state.branches.clear()

    @property
    def said(self) -> str:
        beside = f" beside the control {self.control}" if self.control else ""
        whose = [f" with the {it.kind} {it.name} of {it.package or 'a caller'} {it.version}" for it in self.brought]
        who = f"{self.proposer}{beside}{''.join(whose).rstrip()}"
        of = f" combines nodes of run {self.combine.base}" if self.combine else ""
        return f"run {self.run}{of} starts: {who}; width {self.width}, depth {self.depth} ({self.why})"


class Migrated(Event):
    """After so many attempts of a run, each of these nodes may be built on by one more island."""

    kind: Literal["migrated"] = "migrated"
    run: int
    after: int
    moves: tuple[tuple[str, int], ...]

    def apply(self, state: State, _: str, /) -> None:
        state.set_run(self.run, migrated=self.after)
        for name, island in self.moves:
            state.set_node(name, migrated=(*state.nodes[name].migrated, island))

    @property
    def said(self) -> str:
        moves = ", ".join(f"{node} to island {island}" for node, island in self.moves[:NAMED])
        return f"migration after {self.after} attempts: {moves or 'nothing new'}{', …' * (len(self.moves) > NAMED)}"


class RoundStarted(Event):
    """With --review: the session ends once this round is over. `size` is how many attempts of the search make it up,
    None for one asking with every change that it brings.
    """

    kind: Literal["round started"] = "round started"
    run: int
    number: int
    size: int | None

    def apply(self, state: State, at: str, /) -> None:
        opened, paid = state.count(Role.SEARCH), state.count_paid(Role.SEARCH)
        ended = state.campaign.endings
        begun = Round(run=self.run, number=self.number, size=self.size, opened=opened, paid=paid, ended=ended, at=at)
        state.set_campaign(round=begun)

    @property
    def said(self) -> str:
        return f"round {self.number} begins; the session ends with it, to be looked at"


class CohortOpened(Event):
    """Something that binds has changed: new baseline, and the champion is run again."""

    kind: Literal["cohort opened"] = "cohort opened"
    run: int
    cohort: str
    why: str

    def apply(self, state: State, _: str, /) -> None:
        state.set_run(self.run, cohort=self.cohort)

    @property
    def said(self) -> str:
        return f"run {self.run} has a new cohort {self.cohort}{because(self.why)}"


class ChampionChanged(Event):
    kind: Literal["champion changed"] = "champion changed"
    run: int
    node: str
    cohort: str
    over: str | None

    def apply(self, state: State, _: str, /) -> None:
        champions = {**state.runs[str(self.run)].champions, self.cohort: self.node}
        state.set_run(self.run, champions=champions, cohort=self.cohort)
        number = state.campaign.references + 1
        state.set_node(self.node, references={**state.nodes[self.node].references, self.cohort: number})
        state.set_campaign(references=number)

    @property
    def said(self) -> str:
        return f"{self.node} is the best" + (f", over {self.over}" if self.over else "")


class Steered(Event):
    """A person's instruction to all who propose, from now on."""

    kind: Literal["steered"] = "steered"
    text: str

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(steering=(*state.campaign.steering, self.text))

    @property
    def said(self) -> str:
        return f"steered{because(self.text)}"


class InjectionQueued(Event):
    """A person's change waits for a node; `injection` is the number of the request that brought it."""

    kind: Literal["injection queued"] = "injection queued"
    injection: int
    change: str
    description: str
    on: str | None

    def apply(self, state: State, _: str, /) -> None:
        record = Injection(id=self.injection, change=self.change, description=self.description, on=self.on)
        state.new("injection", str(self.injection), record)
        state.set_campaign(waiting=(*state.campaign.waiting, self.injection))

    @property
    def said(self) -> str:
        return f"a change by hand waits for a node{because(self.description)}"
