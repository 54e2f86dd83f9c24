"""The campaign's present: records by kind and id, as the fold left them."""

import gc
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any

from pydantic import BaseModel

from orchestrator.domain.census import Census, Counted, Notable, sort_key, take_census
from orchestrator.domain.dots import Dot, Dots, DotsLine, block_of, dot_of, take_dots
from orchestrator.domain.lines import (
    AnyDraft,
    AnyNode,
    AnyTrial,
    DraftLine,
    LateRecords,
    Line,
    NodeLine,
    Rest,
    TrialLine,
)
from orchestrator.domain.node import count_key, dropped_key, order_of, path_to, run_of
from orchestrator.domain.records import (
    Campaign,
    Draft,
    FieldOf,
    Guard,
    Injection,
    Node,
    OpenCall,
    Phase,
    PlaybookVersion,
    Role,
    Run,
    Spent,
    Standing,
    Trial,
    Unsettled,
)

Key = tuple[str, str]
TYPES: dict[str, type[BaseModel]] = {"campaign": Campaign, "run": Run, "node": Node, "draft": Draft, "trial": Trial}
TYPES |= {"injection": Injection, "call": OpenCall, "playbook": PlaybookVersion, "standing": Standing}
TYPES |= {"doubt": Unsettled}
TYPES |= {"census": Census, "notable": Notable, "dots": Dots}
_LINES: dict[str, type[Line]] = {"node": NodeLine, "draft": DraftLine, "trial": TrialLine, "dots": DotsLine}
_FIELDS = {kind: frozenset(model.model_fields) for kind, model in TYPES.items()}
# The kinds of which a campaign has few rows, however long it is.
SHORT_KINDS = tuple(kind for kind in TYPES if kind not in _LINES)


@contextmanager
def no_collection() -> Iterator[None]:
    """Many records are made and none goes: to look for garbage among them takes a quarter of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class State:
    """Records by kind and id. `touched` has the keys that changed since they were last taken. There is no `campaign`
    before it was opened.
    """

    campaign: Campaign
    runs: Mapping[str, Run]
    nodes: Mapping[str, Node]
    trials: Mapping[str, Trial]

    def __init__(self) -> None:
        self._hold({kind: {} for kind in TYPES})
        self.touched: set[Key] = set()
        self.children = {}
        self.unfinished: dict[str, None] = {}
        self.branches = {}
        self.asking: set[str] = set()
        self._trials_at_work: set[str] | None = None

    def _hold(self, records: dict[str, MutableMapping[str, Any]]) -> None:
        """Those that are asked for all the time have names of their own."""
        self.runs, self.nodes, self.trials = records["run"], records["node"], records["trial"]
        self.opened = bool(records["campaign"])
        if self.opened:
            self.campaign = records["campaign"]["campaign"]
        self._records = records

    @classmethod
    def from_rows(cls, rows: Mapping[Key, str], *, at_once: bool = True, rest: Rest | None = None) -> "State":
        """The state as its rows tell it; rows of other kinds are somebody else's. Of a long campaign, nodes, drafts and
        trials are better read when they are asked for. With a `rest`, the rows are those that `rows_to_glance` names:
        the others are read from there, for one who looks and changes nothing.
        """
        state = cls()
        with no_collection():
            bodies: dict[str, dict[str, str]] = {kind: {} for kind in TYPES}
            for (kind, name), body in rows.items():
                if kind in bodies:
                    bodies[kind][name] = body
            records: dict[str, MutableMapping[str, Any]] = {}
            for kind, model in TYPES.items():
                if kind in _LINES and not at_once:
                    # Dots and the census must be of one moment, or nobody knows whether there is a dot for each.
                    late = None if model is Dots else rest
                    records[kind] = LateRecords(kind, model, _LINES[kind], bodies[kind], late)
                else:
                    read = model.model_validate_json
                    records[kind] = {name: read(body) for name, body in bodies[kind].items()}
            state._hold(records)
            state._index_all(filter(None, map(state.node_line, bodies["node"])) if rest else state.node_lines())
            if rest:
                del state.children, state.branches  # of all nodes, so they are made when they are asked for
        return state

    @staticmethod
    def rows_to_glance(rows: Mapping[Key, str], *, dotted: bool = False) -> dict[str, list[str]] | None:
        """Given all rows of short kinds: those of other kinds that tell where the campaign stands, by their kinds. None
        where they are all needed, since nobody kept a census. `dotted`: all dots are among the rows, and a node that
        has one with scores is not needed.
        """
        told = {kind: rows.get((kind, kind)) for kind in ("campaign", "census")}
        campaign, census = told["campaign"], told["census"]
        if not campaign or not census:
            return None
        known = Census.model_validate_json(census)
        if not known.holds_for(Campaign.model_validate_json(campaign).epoch):
            return None
        names = [name for kind, name in rows if kind == "notable"]
        if dotted and known.dotted:
            names = [name for name in names if not Notable.model_validate_json(rows["notable", name]).dotted]
            blocks = (body for (kind, _), body in rows.items() if kind == "dots" and "null" in body)
            names += [dot.node for body in blocks for dot in Dots.model_validate_json(body).dots if dot.scores is None]
        return {"node": names}

    @cached_property
    def children(self) -> dict[str, int]:
        """The highest number among the children of each node."""
        self._index_all(self.node_lines())
        return self.children

    @cached_property
    def branches(self) -> dict[int, list[str]]:
        """Those with steps left, or whose last step is not over, with their nodes. One that is finished stays so."""
        self._index_all(self.node_lines())
        return self.branches

    def _index_all(self, nodes: Iterable[AnyNode]) -> None:
        """Only of what is not over the order matters, and sorting is what takes long."""
        self.children, self.branches = {}, {}
        nodes = list(nodes)
        run = self.runs.get(str(self.campaign.run)) if self.opened else None
        deep = [it for it in nodes if it.branch and run and it.step >= run.depth]
        over = {it.branch for it in deep if self._ends_branch(it)}
        later = []
        for node in nodes:
            if node.phase is Phase.ENDED and (not node.branch or node.branch in over or not self._is_of_run(node)):
                self._index_child(node)
                self._index_asking(node)
            else:
                later.append(node)
        # Not by the time at which they were opened: a resume on another host may have been earlier by its clock.
        for node in sorted(later, key=lambda node: (node.branch, node.step, order_of(node.id))):
            self.index(node, new=True)
        for branch in over:
            self.branches.pop(branch, None)

    def copy(self) -> "State":
        """One that can be gone on with while this one stays as it is."""
        other = State()
        other._hold(
            {
                kind: records.copy() if isinstance(records, LateRecords) else dict(records)
                for kind, records in self._records.items()
            }
        )
        other.children, other.unfinished = dict(self.children), dict(self.unfinished)
        other.asking = set(self.asking)
        other.branches = {number: list(nodes) for number, nodes in self.branches.items()}
        return other

    def counted(self) -> Counted:
        """Every node: plain ones by their number, of the others no more than a line, as a rule."""
        census = self._census()
        return Counted.of(census, filter(None, map(self.node_line, self._records["notable"])))

    def notable_names(self, role: Role) -> list[str]:
        """The nodes of a role that are not counted."""
        self._census()
        return [name for name, notable in self._records["notable"].items() if notable.role is role]

    def _census(self) -> Census:
        """Taken again where none was kept in this session, which costs a look at every node."""
        epoch = self.campaign.epoch if self.opened else 0
        known: Census | None = self._records["census"].get("census")
        if known is not None and known.holds_for(epoch):
            return known
        census, nodes = take_census(self.node_lines(), epoch)
        notable = {node.id: Notable(role=node.role) for node in nodes}
        self.touched |= {("notable", name) for name in self._records["notable"].keys() | notable.keys()}
        self._records["notable"] = notable
        self._keep_census(census)
        return census

    def _keep_census(self, census: Census) -> None:
        self._records["census"]["census"] = census
        self.touched.add(("census", "census"))

    def _count(self, before: Node | None, node: Node) -> None:
        """Before the change is made."""
        if before and before.phase is not Phase.ENDED and node.phase is not Phase.ENDED:
            return  # it is named already, and goes on to be
        known = self.keep_census()
        census, notable = known.after(before, node), self._records["notable"]
        if census is not known:
            self._keep_census(census)
        was, dot = dot_of(before) if before else None, dot_of(node)
        if was != dot:
            self._keep_dot(node.id, was, dot)
        now = None if sort_key(node) is not None else Notable(role=node.role, dotted=dot is not None)
        if now == notable.get(node.id):
            return
        if now is None:
            del notable[node.id]
        else:
            notable[node.id] = now
        self.touched.add(("notable", node.id))

    def _keep_dot(self, node: str, was: Dot | None, now: Dot | None) -> None:
        blocks = self._records["dots"]
        for name in {block_of(dot) for dot in (was, now) if dot}:
            there = now if now and block_of(now) == name else None
            blocks[name] = blocks.get(name, Dots()).with_dot(node, there)
            if not blocks[name].dots:
                del blocks[name]
            self.touched.add(("dots", name))

    def keep_census(self) -> Census:
        """As it is, with dots, for one who changes nodes. Where sessions before kept none, every node is looked at."""
        census = self._census()
        if census.dotted:
            return census
        nodes, notable = list(self.node_lines()), self._records["notable"]
        dots = take_dots(nodes)
        self.touched |= {("dots", name) for name in self._records["dots"].keys() | dots.keys()}
        self._records["dots"] = dots
        for node in nodes:
            if node.id in notable:
                notable[node.id] = Notable(role=node.role, dotted=dot_of(node) is not None)
                self.touched.add(("notable", node.id))
        self._keep_census(census := census.model_copy(update={"dotted": True}))
        return census

    def dotted(self) -> tuple[list[Dot], list[AnyNode]] | None:
        """Every node: most by their dots, the others by their lines. None where not every node is told: their openings
        were not numbered, or nobody kept dots.
        """
        census: Census | None = self._records.get("census", {}).get("census")
        if census is None or not census.dotted or not census.holds_for(self.campaign.epoch):
            return None
        dots = [dot for block in self._lines_of("dots") for dot in block.dots]
        notable = self._records["notable"]
        others = [name for name, it in notable.items() if not it.dotted]
        if len(dots) != sum(census.plain.values()) + len(notable) - len(others):
            return None
        others += [dot.node for dot in dots if dot.scores is None]
        whole = [dot for dot in dots if dot.scores is not None]
        return whole, list(filter(None, map(self.node_line, others)))

    def rows(self) -> dict[Key, str]:
        """All of them as they are written now."""
        keys = [(kind, name) for kind, records in self._records.items() for name in records]
        return {key: body for key in keys if (body := self.row(key))}

    def row(self, key: Key) -> str | None:
        """None for a record that was dropped."""
        record: BaseModel | None = self._records[key[0]].get(key[1])
        return record.model_dump_json(exclude_defaults=True) if record else None

    @staticmethod
    def row_of_today(key: Key, body: str) -> str:
        """A row that an earlier version wrote, as it is written now. Raises ValueError."""
        return TYPES[key[0]].model_validate_json(body).model_dump_json(exclude_defaults=True)

    def lines_of_now(self) -> Iterator[BaseModel | Line]:
        """All records as they are now, of some no more than a line; another thread may go through them."""
        return chain.from_iterable(
            [
                records.lines_of_now() if isinstance(records, LateRecords) else list(records.values())
                for records in list(self._records.values())
            ]
        )

    def node_lines(self) -> Iterable[AnyNode]:
        """Every node, of most no more than a line: what looks at all of a long campaign looks at these."""
        return self._lines_of("node")

    def node_line(self, name: str) -> AnyNode | None:
        """None where there is no such node."""
        records = self._records["node"]
        if not isinstance(records, LateRecords):
            return records.get(name)
        return records.line(name) if name in records else None

    def trial_lines(self) -> Iterable[AnyTrial]:
        return self._lines_of("trial")

    def draft_lines(self, node: AnyNode) -> list[AnyDraft]:
        records = self._records["draft"]
        read = records.line if isinstance(records, LateRecords) else records.__getitem__
        return [read(f"{node.id}#{number}") for number in range(1, node.drafts + 1)]

    def forget_lines(self) -> None:
        """When all was gone through: they are made again where somebody does so later."""
        for records in self._records.values():
            if isinstance(records, LateRecords):
                records.forget_lines()

    def _lines_of(self, kind: str) -> Iterable[Any]:
        records = self._records[kind]
        return records.lines() if isinstance(records, LateRecords) else records.values()

    @property
    def run(self) -> Run:
        """The run that is worked on: the last one."""
        return self.runs[str(self.campaign.run)]

    @property
    def injections(self) -> dict[int, Injection]:
        return {int(name): record for name, record in self._records["injection"].items()}

    @property
    def open_calls(self) -> Mapping[str, OpenCall]:
        """Calls to models that have not ended, by their ids."""
        return self._records["call"]

    @property
    def standing(self) -> Mapping[str, Standing]:
        """What is rented, stands ready and is not known to have ended, by its name."""
        return self._records["standing"]

    @property
    def doubts(self) -> Mapping[str, Unsettled]:
        """What is booked at its worst until its provider tells more, by the name of the chamber."""
        return self._records["doubt"]

    @property
    def playbooks(self) -> dict[int, PlaybookVersion]:
        """The versions of the playbook, in order."""
        return dict(sorted((int(name), record) for name, record in self._records["playbook"].items()))

    def drafts(self, node: str) -> list[Draft]:
        count = self.nodes[node].drafts
        return [self._records["draft"][f"{node}#{number}"] for number in range(1, count + 1)]

    def draft(self, name: str) -> Draft | None:
        found: Draft | None = self._records["draft"].get(name)
        return found

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
        return self.campaign.counts.get(count_key(self.campaign.run, role), 0)

    def count_all(self, role: Role) -> int:
        """How many nodes of a role all runs have."""
        counts = self.campaign.counts
        return sum([counts.get(count_key(run, role), 0) for run in self.runs])

    @property
    def attempts(self) -> int:
        """How many attempts all runs have opened, a person's included."""
        return self.count_all(Role.SEARCH) + self.count_all(Role.INJECTED)

    def count_paid(self, role: Role) -> int:
        """The same without those that were cancelled."""
        return self.count(role) - self.campaign.counts.get(dropped_key(self.campaign.run, role), 0)

    def refunds_of(self, node: str) -> int:
        """The free endings of a node and of all that it descends from."""
        return sum(self.campaign.refunds.get(name, 0) for name in path_to(node))

    def next_child(self, parent: str) -> int:
        return self.children.get(parent, 0) + 1

    @property
    def trials_at_work(self) -> set[str]:
        """Those that are not over, or that a judge looks at. To look for them once costs a look at every trial."""
        if self._trials_at_work is None:
            self._trials_at_work = {trial.id for trial in self.trial_lines() if _is_at_work(trial)}
        return self._trials_at_work

    def new(self, kind: str, name: str, record: BaseModel) -> None:
        self._put(kind, name, record)

    def drop(self, kind: str, name: str) -> None:
        """A record that is over; its row goes with it."""
        del self._records[kind][name]
        self.touched.add((kind, name))
        if self._trials_at_work is not None and kind == "trial":
            self._trials_at_work.discard(name)

    def index(self, node: AnyNode, *, new: bool = False) -> None:
        self._index_child(node)
        self._index_asking(node)
        if new and node.branch and self._is_of_run(node):
            self.branches.setdefault(node.branch, []).append(node.id)
        if node.phase is not Phase.ENDED:
            self.unfinished[node.id] = None
            return
        self.unfinished.pop(node.id, None)
        if self._ends_branch(node):
            self.branches.pop(node.branch, None)

    def _index_asking(self, node: AnyNode) -> None:
        if node.asking is not None:
            self.asking.add(node.id)
        else:
            self.asking.discard(node.id)

    def _index_child(self, node: AnyNode) -> None:
        parent, _, last = node.id.rpartition(".")
        if parent and int(last) > self.children.get(parent, 0):
            self.children[parent] = int(last)

    def _is_of_run(self, node: AnyNode) -> bool:
        return run_of(node.id) == self.campaign.run

    def _ends_branch(self, node: AnyNode) -> bool:
        ends = node.phase is Phase.ENDED and node.branch and self._is_of_run(node)
        return bool(ends) and node.step >= self.run.depth

    def spend(self, node: str, spent: Spent, at: str, *, trial: str = "", stood: bool = False) -> None:
        """Add it to a node, or to what no node has; what of it is booked at its worst is remembered."""
        run = run_of(node) if node else self.campaign.run
        for doubt in spent.doubts:
            told = doubt.model_dump() | {"node": node, "since": at, "run": run, "trial": trial, "stood": stood}
            self.new("doubt", doubt.chamber, Unsettled.model_validate(told))
        if node:
            self.set_node(node, spent=self.nodes[node].spent + spent.plain)
        else:
            self.set_campaign(unbooked=self.campaign.unbooked + spent.plain)

    def set_doubt(self, chamber: str, **changes: FieldOf[Unsettled]) -> None:
        self._change("doubt", chamber, changes)

    def set_campaign(self, **changes: FieldOf[Campaign]) -> None:
        self._change("campaign", "campaign", changes)

    def set_run(self, number: int, **changes: FieldOf[Run]) -> None:
        self._change("run", str(number), changes)

    def set_node(self, name: str, **changes: FieldOf[Node]) -> None:
        node: Node = self._change("node", name, changes)
        self.index(node)

    def set_draft(self, name: str, **changes: FieldOf[Draft]) -> None:
        """`1.3#2` is the second draft of a node."""
        self._change("draft", name, changes)

    def set_trial(self, name: str, **changes: FieldOf[Trial]) -> None:
        self._change("trial", name, changes)

    def set_playbook(self, version: int, **changes: FieldOf[PlaybookVersion]) -> None:
        self._change("playbook", str(version), changes)

    def _change(self, kind: str, name: str, changes: Mapping[str, object]) -> Any:
        if unknown := changes.keys() - _FIELDS[kind]:
            raise TypeError(f"a record of a {kind} has no {', '.join(sorted(unknown))}")
        before = self._records[kind][name]
        census = self.keep_census() if "epoch" in changes else None
        after = before.model_copy(update=changes)
        self._put(kind, name, after, before)
        if census:  # what was counted in the session before holds in this one
            self._keep_census(census.model_copy(update={"epoch": self.campaign.epoch}))
        return after

    def _put(self, kind: str, name: str, record: BaseModel, before: Any = None) -> None:
        if isinstance(record, Node):
            self._count(before, record)
        elif isinstance(record, Campaign):
            self.campaign, self.opened = record, True
        self._records[kind][name] = record
        self.touched.add((kind, name))
        if self._trials_at_work is not None and isinstance(record, Trial):
            (self._trials_at_work.add if _is_at_work(record) else self._trials_at_work.discard)(name)


def _is_at_work(trial: AnyTrial) -> bool:
    return not trial.ended or bool(trial.judging)
