"""A campaign of any length in a moment: some attempts are really made on the fake backend, and their rows told over
and over under other names. What reads rows cannot tell it from one that took a week.
"""

import json
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.campaign import TASK, WIDTH, program
from benchmarks.fake_site import fake_site, write_task
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.state import State
from orchestrator.ledger import Entry, Ledger, canonical
from orchestrator.run_options import Flags
from orchestrator.wiring.ledgers import FILE
from orchestrator.wiring.opening import open_campaign

REAL = 40
_CHUNK = 2000
_STEP_S = 0.8
_KEEPS, _FAILS, _DEPTH = 0.01, 0.1, 20

Row = dict[str, Any]


async def make_long(folder: Path, nodes: int, seed: int = 1) -> None:
    """A task in `folder` with a campaign that looks as if it had made so many nodes."""
    write_task(folder, TASK, '{"x": 0.0, "y": 0}')
    flags = Flags(attempts=REAL, rate=1e6, seed=seed)
    async with open_campaign(folder, fake_site(program, WIDTH), flags=flags) as opened:
        await opened.campaign.run()
    with Ledger.open(folder / ".blastdoor" / FILE) as ledger:
        ledger.seize("benchmark")
        told = _Told(ledger.rows(), seed)
        for begun in range(0, nodes - REAL - 1, _CHUNK):
            for _ in range(min(_CHUNK, nodes - REAL - 1 - begun)):
                told.attempt()
            told.append_to(ledger)
        told.append_census_to(ledger)


class _Told:
    """Attempts like those that were made, one after the other."""

    def __init__(self, rows: Mapping[tuple[str, str], str], seed: int) -> None:
        self._rows = {key: json.loads(body) for key, body in rows.items()}
        nodes = [row for (kind, _), row in self._rows.items() if kind == "node"]
        self._models = [row for row in nodes if row.get("parent") and row.get("verdict")]
        self._run, self._campaign = self._rows["run", "1"], self._rows["campaign", "campaign"]
        self._now = datetime.fromisoformat(self._campaign["last_at"])
        self._parents: list[str] = [self._run["champions"][self._run["cohort"]]]
        self._best = max(row["verdict"]["metrics"]["score"] for row in self._models)
        self._order = max(max(row["opened_order"], row["ended_order"]) for row in nodes)
        self._children: dict[str, int] = {}
        self._draw = random.Random(seed)
        self._entries: list[Entry] = []
        self._new: dict[tuple[str, str], str | None] = {}

    def attempt(self) -> None:
        old, parent = self._draw.choice(self._models), self._draw.choice(self._parents[-6:])
        number = self._children[parent] = self._children.get(parent, REAL) + 1
        self._now += timedelta(seconds=_STEP_S)
        failed = self._draw.random() < _FAILS
        kept = not failed and self._draw.random() < _KEEPS and parent.count(".") < _DEPTH
        node = self._node(old, f"{parent}.{number}", parent, kept)
        if failed:
            node |= {"verdict": None, "verdicts": {}, "ending": "failed", "why": "exit 1"}
        self._tell(old, node)
        if kept:
            self._parents.append(node["id"])
            self._run["champions"][self._run["cohort"]] = node["id"]

    def _node(self, old: Row, name: str, parent: str, kept: bool) -> Row:
        draw, at = self._draw, self._now.isoformat()
        value = round(self._best + draw.random() if kept else self._best - draw.expovariate(0.2), 6)
        self._best = max(self._best, value)
        verdict, params = (
            {**old["verdict"], "metrics": {"score": value}},
            {"x": draw.random(), "y": draw.randint(1, 999)},
        )
        self._order += 1
        of = {"id": name, "parent": parent, "submitted": f"{name}-1", "trials": 1, "opened_at": at, "ended_at": at}
        of |= {"opened_order": self._order, "ended_order": self._order}
        said = {"params": params, "description": f"x={params['x']:.4f}, y={params['y']}", "kept": kept}
        return {**old, **of, **said, "verdict": verdict, "verdicts": {verdict["cohort"]: verdict}}

    def _tell(self, old: Row, node: Row) -> None:
        name = node["id"]
        trial = self._rows["trial", old["submitted"]] | {"id": f"{name}-1", "node": name, "verdict": node["verdict"]}
        draft = self._rows["draft", f"{old['id']}#{old['promoted']}"] | {"node": name, "params": node["params"]}
        told = {("node", name): node, ("trial", f"{name}-1"): trial, ("draft", f"{name}#{old['promoted']}"): draft}
        self._new |= {key: _body(row) for key, row in told.items()}
        ended = e.AttemptEnded(node=name, ending=Ending(node["ending"]), kept=node["kept"], why=node["why"])
        self._entries.append(Entry(ended.kind, canonical(ended.model_dump(mode="json"))))

    def append_to(self, ledger: Ledger) -> None:
        at = self._now.isoformat()
        self._new["campaign", "campaign"] = _body({**self._campaign, "last_at": at})
        self._new["run", "1"] = _body(self._run)
        ledger.append(self._entries, self._new, at)
        self._entries, self._new = [], {}

    def append_census_to(self, ledger: Ledger) -> None:
        """As the session that made them would have kept it."""
        rows = ledger.rows()
        kept = [key for key in rows if key[0] in ("census", "notable", "dots")]
        state = State.from_rows({key: rows[key] for key in rows.keys() - kept}, at_once=False)
        state.keep_census()
        self._entries.append(Entry("counted", "{}"))
        self._new = dict.fromkeys(kept) | {key: state.row(key) for key in state.touched}
        self.append_to(ledger)


def _body(row: Row) -> str:
    """As short as rows are written."""
    return json.dumps(row, separators=(",", ":"))
