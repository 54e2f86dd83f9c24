"""Where branches start, what each island has found, which cells of the archive are filled, and what was not run."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.domain import figures
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.render.model import Block, Figure, Part, Prose, Quote, Section, Table, Words, join

if TYPE_CHECKING:
    from orchestrator.population.base import Member

_ROWS = 20


def population(it: Material) -> Section:
    """Nothing where there is one population whose branches start at the champion, and every change was run."""
    rule, alike = _rule(it), it.state.campaign.alike
    members = _members(it) if it.run.islands > 1 or rule == "archive" else []
    islands = _islands(it, members)
    cells = _cells(it, members) if rule == "archive" else []
    told: list[list[Part]] = [[f"{it.run.islands} islands"]] if islands else []
    told += [["branches start by the rule ", Quote(rule)]] if rule != "champion" else []
    told += [[f"{figures.plural(len(cells), 'cell')} filled"]] if rule == "archive" else []
    told += [[f"{figures.plural(alike, 'change')} too much like others to be run"]] if alike else []
    body: list[Block] = [Table(["island", "attempts", "best", "metrics", "copied here"], islands)] if islands else []
    body += [Table(["cell", "best", "metrics"], cells[:_ROWS])] if cells else []
    body += [Prose(f"{len(cells) - _ROWS} more cells are filled.")] if len(cells) > _ROWS else []
    unknown = _unknown(it, members) if rule == "archive" else []
    told += [["no node has ", Quote(unknown[0]), ", so it is in no cell"]] if unknown else []
    data: dict[str, object] = {"rule": rule, "islands": it.run.islands, "cells": len(cells), "alike": alike}
    data |= {"unknown_features": unknown} if unknown else {}
    return Section("population", "Populations" if told else "", join(told, ", "), body, {"population": data})


def _members(it: Material) -> "list[Member]":
    # Loaded here: where branches start at the champion, the status need not wait for the other rules.
    from orchestrator.population.base import member_of

    return [member for node in it.nodes if (member := member_of(it.state, it.ranking, node, it.run))]


def _rule(it: Material) -> str:
    return str(json.loads(it.run.options).get("selection") or it.criteria.search.selection or "champion")


def _islands(it: Material, members: "Sequence[Member]") -> list[list[Words]]:
    rows: list[list[Words]] = []
    for island in range(1, it.run.islands + 1) if it.run.islands > 1 else ():
        own = [node for node in it.nodes if node.island == island]
        brought = [node.id for node in it.nodes if island in node.migrated]
        names = {*(node.id for node in own), *brought}
        best = max((one for one in members if one.node in names), key=lambda one: one.place, default=None)
        attempts = Figure(len(own), f"{len(own):,}")
        rows.append([str(island), attempts, *_place(it, best), figures.few(brought) if brought else ""])
    return rows


def _cells(it: Material, members: "Sequence[Member]") -> list[list[Words]]:
    from orchestrator.population.archive import Archive
    from orchestrator.population.base import ParentContext

    baseline = next((member for member in members if member.node == it.run.root), None)
    archive = Archive(ParentContext(it.task.search.archive, baseline))
    for member in members:
        archive.add(member)
    return [[", ".join(map(str, cell)), *_place(it, best)] for cell, best in sorted(archive.cells.items())]


def _unknown(it: Material, members: "Sequence[Member]") -> list[str]:
    """Features of the archive that no judge has reported."""
    archive = it.task.search.archive
    seen = {name for member in members for name in (*member.tasks, *member.metrics)}
    return [name for name in (archive.features if archive and members else ()) if name not in seen]


def _place(it: Material, best: "Member | None") -> list[Words]:
    if best is None:
        return ["", ""]
    return [best.node, Quote(figures.metrics(best.metrics, it.metrics))]
