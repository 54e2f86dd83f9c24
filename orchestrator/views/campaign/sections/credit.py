"""What each choice of the search was worth: by itself, by what was built on it, and how likely it is now."""

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from orchestrator.change import Tree
from orchestrator.domain import figures
from orchestrator.domain.proposal import Arm, Drawn
from orchestrator.domain.records import Role
from orchestrator.domain.state import State
from orchestrator.meta.chooser import Learnt
from orchestrator.meta.credit import Crediting, Price
from orchestrator.meta.policy import Learning
from orchestrator.meta.standings import ArmStanding, Standings, standings
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.render.model import Block, Figure, Prose, Quote, Section, Table, Words

if TYPE_CHECKING:
    from orchestrator.proposers import Tried

_NONE = "No attempt that ended has its choices on record, so there is nothing to credit."
_COLUMNS = ("slot", "arm", "attempts", "better", "lift", "lineage", "cost", "share now")


def credit(it: Material) -> Section:
    learnt = _learnt(it)
    found = standings(_ended(it), learnt)
    return Section("credit", "Credit", _line(found), _body(found, learnt), {"credit": _record(found, learnt)})


def _learnt(it: Material) -> Learnt:
    """As the run was begun: a flag wins over its task."""
    flags = json.loads(it.run.options)
    said = {name: flags.get(name) or getattr(it.task.search, name) for name in ("meta", "credit", "price")}
    return Learnt(
        Learning(said["meta"] or Learning.OFF),
        Crediting(said["credit"] or Crediting.LIFT),
        Price(said["price"] or Price.NONE),
    )


def _line(found: Standings) -> Words:
    if not found.arms:
        return ""
    gained = [arm for arm in found.arms if arm.better]
    if not gained:
        return "no choice made anything better yet"
    best = max(gained, key=lambda arm: arm.lift)
    told = f"{figures.plural(best.attempts, 'attempt')}, {best.better:,} better, lift {best.lift:+.2f}"
    return [f"best {best.slot} ", Quote(best.arm), f": {told}"]


def _body(found: Standings, learnt: Learnt) -> list[Block]:
    if not found.arms:
        return [Prose(_NONE)]
    price = "" if learnt.price is Price.NONE else f", at what it cost in {learnt.price}"
    how = f"meta {learnt.learning}, credit {learnt.credit}, price {learnt.price}"
    said = (
        f"Advantage over what was expected of the parent{price}, in units of what is usual, shrunk towards 0: lift "
        f"of the attempts themselves, lineage with their part in later gains. This run: {how}."
    )
    body: list[Block] = [Prose(said), Table(_COLUMNS, [_row(arm) for arm in found.arms])]
    if found.knobs:
        rows = [
            (it.knob, f"{it.attempts:,}", Figure(it.at_first, f"{it.at_first:.3g}"), Figure(it.now, f"{it.now:.3g}"))
            for it in found.knobs
        ]
        body.append(Table(("knob", "attempts", "at first", "now"), rows))
    return body


def _row(arm: ArmStanding) -> list[Words]:
    cost = figures.dollars(round(arm.usd * 1e6)) + f", {figures.duration(arm.seconds)}"
    share = "" if arm.share is None else Figure(arm.share, f"{arm.share:.0%}")
    return [
        arm.slot,
        Quote(arm.arm),
        f"{arm.attempts:,}",
        f"{arm.better:,}",
        Figure(arm.lift, f"{arm.lift:+.2f}"),
        Figure(arm.lineage, f"{arm.lineage:+.2f}"),
        cost,
        share,
    ]


def _record(found: Standings, learnt: Learnt) -> dict[str, object]:
    return {**{name: str(value) for name, value in asdict(learnt).items()}, **asdict(found)}


def _ended(it: Material) -> "list[Tried]":
    """The run's attempts that ended, each with all that it was made by; an older ledger tells the operator alone."""
    # It knows all proposers, which takes long to load.
    from orchestrator.loop.history import History

    state = it.state
    if it.run is not state.run:
        state = state.copy()
        state.set_campaign(run=it.run.number)
    past = History(state, it.ranking, Role.SEARCH, (), _no_tree)
    return [replace(tried, drawn=_made_by(state, tried)) for tried in past.ended]


def _made_by(state: State, tried: "Tried") -> Drawn:
    """What was drawn by chance, and what else is on record."""
    node = state.nodes[tried.node]
    draft = state.draft(f"{node.id}#{node.promoted}")
    told = {
        "operator": tried.operator,
        "model": draft.model if draft else None,
        "playbook": None if node.playbook is None else f"version {node.playbook}",
    }
    known = {slot: Arm(option=one, p=1.0, among={one: 1.0}) for slot, one in told.items() if one}
    drawn = tried.drawn or Drawn()
    return Drawn(arms={**known, **drawn.arms}, knobs=drawn.knobs)


def _no_tree(node: str) -> Tree:
    raise LookupError(node)
