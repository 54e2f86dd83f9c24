"""Every node of a run as columns of numbers: what a plot, a tree and a table of a hundred thousand are drawn from.

Names stand once in lists beside the columns. A node is known by its place, which never changes: a browser keeps the
columns, and is sent the rows that changed.
"""

import itertools
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import order_of, run_of
from orchestrator.domain.records import Node, OpenedPlace, Phase, Role, Run, opened_place
from orchestrator.domain.state import State, no_collection
from orchestrator.text import short
from orchestrator.views.campaign.looks import KEPT, LOOKS, look_of
from orchestrator.views.campaign.points import stair_of
from orchestrator.views.page.board_line import BoardLine
from orchestrator.views.page.columns import Columns
from orchestrator.views.render.model import Point

# A column for each metric follows them. `parent` is a place, -1 for the root; times are seconds since the run began.
COLUMNS = (
    "parent", "child", "look", "role", "operator", "model", "cohort", "island", "screened", "microdollars",
    "milliseconds", "tokens", "opened", "ended",
)  # fmt: skip
_TIMES = ("opened", "ended")
MOST_NODES = 200_000
_LOOKS = {look.word: place for place, look in enumerate(LOOKS)}
_ROLES = {role: place for place, role in enumerate(Role)}
_NAME = 120

Row = list[float | int]


@dataclass
class Names:
    """Each stands once, and is known by its place; -1 for none."""

    known: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, name: str | None) -> int:
        if not name:
            return -1
        if name not in self.places:
            self.places[name] = len(self.known)
            self.known.append(short(name, _NAME))
            self.own.append(name)
        return self.places[name]


class Board:
    """Of one run. `update` is told which nodes changed: what it costs depends on those, not on all that there are."""

    def __init__(self, state: State, metrics: Sequence[Metric], run: Run) -> None:
        self.run = run.number
        self._combines = run.combine.base if run.combine else None
        self.missing = 0
        self._state = state
        self._metrics = metrics
        self._lists = {name: Names() for name in ("operators", "models", "cohorts")}
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._began = 0.0
        scores = [f"metric {number}" for number in range(len(metrics))]
        floats = {*_TIMES, *scores}
        self._columns: dict[str, array[Any]] = {
            name: array("d" if name in floats else "q") for name in (*COLUMNS, *scores)
        }

    def fill(self, nodes: Iterable[BoardLine]) -> None:
        """With all that there are, in any order; those of other runs are left out."""
        own = f"{self.run}."
        with no_collection():
            found = [
                (opened_place(node.id, node.opened_order, node.opened_at), node.id, node.parent, self._row(node))
                for node in nodes
                if node.id.startswith(own) or node.id == own[:-1]
            ]
            found.sort(key=lambda one: one[0])
            self.missing = max(0, len(found) - MOST_NODES)
            self._take(found[:MOST_NODES])

    def _take(self, found: Sequence[tuple[OpenedPlace, str, str | None, Row]]) -> None:
        """All at once, column by column: one by one takes half as long again."""
        if not found:
            return
        (_, began, _), *_ = found[0]
        self._began = _seconds(began)
        self._names = [name for _, name, _, _ in found]
        self._places = {name: place for place, name in enumerate(self._names)}
        by_column = zip(self._columns.values(), zip(*(row for *_, row in found), strict=True), strict=True)
        for column, values in by_column:
            column.extend(values)
        parents = (self._places.get(parent, -1) if parent else -1 for _, _, parent, _ in found)
        self._columns["parent"] = array("q", parents)
        for name in _TIMES:
            since = (round(at - self._began, 1) if at >= 0 else -1.0 for at in self._columns[name])
            self._columns[name] = array("d", since)

    def kept_beside(self) -> dict[str, Any]:
        """What a board is made from again, beside its columns and what they are of."""
        state, own = self._state, {name: it.own for name, it in self._lists.items()}
        named = {"names": self._names, "began": self._began, "own": own}
        return {**named, "children": state.children, "unfinished": [*state.unfinished]}

    def restore(self, told: Mapping[str, Any], columns: Sequence[tuple[str, "array[Any]"]]) -> bool:
        """Of an empty one, all that was kept; False where that was of other columns, metrics, looks or roles, or of
        another run.
        """
        about = self.about()
        same = ("run", "combines", "looks", "roles", "metrics")
        if [name for name, _ in columns] != [*self._columns] or any(told[name] != about[name] for name in same):
            return False
        for name, values in columns:
            kind = self._columns[name].typecode
            self._columns[name] = array(kind, map(int, values) if kind == "q" else values)
        for name, it in self._lists.items():
            for each in told["own"][name]:
                it.place(each)
        self._names, self._began, self.missing = list(told["names"]), float(told["began"]), int(told["missing"])
        self._places = {name: place for place, name in enumerate(self._names)}
        self._state.children.update(told["children"])
        self._state.unfinished.update(dict.fromkeys(told["unfinished"]))
        return True

    def update(self, nodes: Iterable[Node]) -> list[list[Any]]:
        """The rows that are new or changed, each with its place before it."""
        own = sorted((node for node in nodes if run_of(node.id) == self.run), key=lambda node: node.opened_place)
        places = [self._put(node.id, node.parent, self._row(node)) for node in own]
        return [[place, *self._told(place)] for place in places if place is not None]

    def _put(self, name: str, parent: str | None, row: Row) -> int | None:
        self._began = self._began or row[12]
        row[0] = self._places.get(parent, -1) if parent else -1
        row[12] = round(row[12] - self._began, 1)
        row[13] = round(row[13] - self._began, 1) if row[13] >= 0 else -1.0
        place = self._places.get(name)
        if place is None and len(self._names) >= MOST_NODES:
            self.missing += 1
            return None
        if place is None:
            place = self._places[name] = len(self._names)
            self._names.append(name)
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)
        else:
            for column, value in zip(self._columns.values(), row, strict=True):
                column[place] = value
        return place

    def _told(self, place: int) -> list[Any]:
        return [_plain(column[place]) for column in self._columns.values()]

    def steps(self) -> list[list[float | int]]:
        """The stair of the best: from which place on, at which score, whose, and whether it starts again."""
        found = stair_of(self._state, self._points(), self._metrics[0])
        return [[it.order - 1, it.score, self._places[it.node], int(it.fresh)] for it in found]

    def _points(self) -> list[Point]:
        """Those that a stair is made of: what was kept, and the first of each cohort."""
        looks, cohorts, screened = (self._columns[name] for name in ("look", "cohort", "screened"))
        scores, known = self._columns["metric 0"], self._lists["cohorts"].own
        firsts = {cohorts.index(cohort) for cohort in range(len(known)) if cohort in cohorts}
        kept = _LOOKS[KEPT.word]
        return [
            Point(
                self._names[place],
                place + 1,
                LOOKS[int(looks[place])],
                _plain(scores[place]),
                known[int(cohorts[place])] if cohorts[place] >= 0 else None,
                bool(screened[place]),
            )
            for place, look in enumerate(looks)
            if look == kept or place in firsts
        ]

    def lists(self) -> dict[str, list[str]]:
        return {name: names.known for name, names in self._lists.items()}

    def whole(self) -> dict[str, Any]:
        columns = {
            name: [_plain(value) for value in column] if column.typecode == "d" else column.tolist()
            for name, column in self._columns.items()
        }
        return {**self.head(), "columns": columns}

    def columns(self) -> Columns:
        return {name: (column, name in _TIMES) for name, column in self._columns.items()}

    def head(self) -> dict[str, Any]:
        """All but the columns."""
        return {**self.about(), "steps": self.steps(), "champion": self.champion()}

    def about(self) -> dict[str, Any]:
        """What the columns are of; no row is read for it."""
        return {
            "run": self.run,
            "combines": self._combines,
            "looks": [{"word": it.word, "sign": it.sign, "style": it.style} for it in LOOKS],
            "roles": [str(role) for role in _ROLES],
            "metrics": [{"name": short(it.name, _NAME), "goal": str(it.goal)} for it in self._metrics],
            **self.lists(),
            "count": len(self._names),
            "missing": self.missing,
        }

    def champion(self) -> int:
        found = self._state.champion(self._state.runs[str(self.run)])
        return self.place_of(found.id) if found else -1

    def names(self) -> Sequence[str]:
        return self._names

    def kept(self) -> list[str]:
        kept = _LOOKS[KEPT.word]
        return [name for name, look in zip(self._names, self._columns["look"], strict=True) if look == kept]

    def place_of(self, node: str) -> int:
        return self._places.get(node, -1)

    def children_of(self, node: str, most: int) -> list[str]:
        parents, place = self._columns["parent"], self.place_of(node)
        found = (name for name, parent in zip(self._names, parents, strict=True) if parent == place)
        return sorted(itertools.islice(found, most), key=order_of) if place >= 0 else []

    def _row(self, node: Node | BoardLine) -> Row:
        """With times as they are, and without the place of its parent."""
        metrics, cohort, screened = self._shown(node)
        lists, spent = self._lists, node.spent
        return [
            -1,
            int(node.id.rpartition(".")[2]),
            _LOOKS[look_of(node).word],
            _ROLES[node.role],
            lists["operators"].place(node.operator),
            lists["models"].place(self._model(node)),
            lists["cohorts"].place(cohort),
            node.island,
            int(screened),
            spent.microdollars,
            spent.milliseconds,
            spent.tokens,
            _seconds(node.opened_at),
            _seconds(node.ended_at) if node.phase is Phase.ENDED and node.ended_at else -1.0,
            *(metrics.get(metric.name, math.nan) for metric in self._metrics),
        ]

    def _shown(self, node: Node | BoardLine) -> tuple[Mapping[str, float], str | None, bool]:
        """The metrics that it is shown with, their cohort, and whether it was only screened."""
        if node.verdict is None or not (node.ending and node.ending.scoreable):
            return {}, None, False
        if isinstance(node, BoardLine) and not node.has_repeats:
            noisy = self._state.runs[str(self.run)].noisy
            return node.verdict.metrics, node.verdict.cohort, node.verdict.valid and noisy
        found = headline(self._state, node if isinstance(node, Node) else self._state.nodes[node.id])
        return (found.metrics, found.cohort, found.screened) if found else ({}, None, False)

    def _model(self, node: Node | BoardLine) -> str | None:
        """Drafts are many, and few campaigns ask models."""
        if not self._state.campaign.asked_models or not node.drafts:
            return None
        draft = self._state.draft(f"{node.id}#{node.promoted or node.drafts}")
        return draft.model if draft else None


def _plain(value: float) -> float | None:
    """As JSON has it: a score that is missing is none."""
    return value if math.isfinite(value) else None


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
