"""All that is said about one node, in its order. To say more, write a function and name it in `SECTIONS`."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from orchestrator.domain import figures
from orchestrator.domain.drift import asked_about
from orchestrator.domain.headline import LEGEND, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import path_to
from orchestrator.domain.records import Draft, Role
from orchestrator.domain.verdict import Verdict
from orchestrator.loop.steering import unheard
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.sections import trials
from orchestrator.views.campaign.sections.certified import facts_of
from orchestrator.views.campaign.sections.combination import members
from orchestrator.views.campaign.sections.evidence import growth, released
from orchestrator.views.campaign.sections.material import NodeMaterial, node_record
from orchestrator.views.campaign.sections.minimal import of_node
from orchestrator.views.campaign.sections.results import best_at
from orchestrator.views.campaign.sections.work import answered
from orchestrator.views.render.model import (
    BREAK,
    Figure,
    Lines,
    Own,
    Part,
    Quote,
    Section,
    Table,
    Words,
    facts,
    others,
)

_FAINT = "bright_black"
_NOTES = 40
_CELL = 500


def head(it: NodeMaterial) -> Section:
    node, look = it.node, look_of(it.node)
    line: list[Part] = [Own(node.id, "bold"), "  ", look, Own(f" {look.word}", look.style), f"  [{node.role}]"]
    line += ["  ", Quote(node.why, _CELL)] if node.why else []
    when = f"opened {node.opened_at}" + (f", ended {node.ended_at}" if node.ended_at else "")
    when += f", take {node.take}" if node.take > 1 else ""
    when += f", stalled {figures.plural(node.stalls, 'time')}" if node.stalls else ""
    line += [BREAK, Own(when, _FAINT), BREAK, Own(f"spent {figures.spent(node.spent)}", _FAINT)]
    return Section("node", f"Node {node.id}", line, data={"node": node_record(it.state, node)})


def path(it: NodeMaterial) -> Section:
    """What was done from the root to here, and what came of it."""
    rows: list[list[Part]] = []
    names = path_to(it.node.id)
    for name in names:
        place = it.state.nodes[name]
        look = look_of(place)
        told = figures.headline(headline(it.state, place), it.metrics) or look.word
        words: list[Part] = ["  ", Quote(place.description, _CELL, _FAINT)] if place.description else []
        rows.append([Own(name, "bold"), " ", look, f" {told}", *words])
    data = {"path": {name: it.state.nodes[name].description for name in names}}
    return Section("path", "path", "", [Lines(rows, cut=True)], data)


def proposal(it: NodeMaterial) -> Section:
    node = it.node
    rows = {"operator": node.operator, "description": node.description}
    rows |= {f"param {name}": repr(value) for name, value in (node.params or {}).items()}
    rows |= {"playbook": "" if node.playbook is None else f"version {node.playbook}"}
    return Section("proposal", "proposal", "", others(rows | {"commit": node.commit or ""}), {})


def instructions(it: NodeMaterial) -> Section:
    """What a person had said, where its proposer reads that."""
    heard = it.node.role is Role.SEARCH and not unheard(it.run)
    rows = {str(number): text for number, text in enumerate(it.history.steering, 1)} if heard else {}
    return Section("instructions", "instructions", "", others(rows), {"steering": list(it.history.steering)})


def drafts(it: NodeMaterial) -> Section:
    found = it.state.drafts(it.node.id)
    if it.node.role is Role.MINIMISED:  # selections of parts, of which their table tells more
        return Section("drafts", "drafts", data={"drafts": [draft.model_dump(mode="json") for draft in found]})
    rows: list[list[Words]] = [
        [
            str(draft.number),
            Quote(draft.operator, _CELL),
            _tuned(draft, it.metrics),
            Quote(draft.description, _CELL),
            Quote(f"promoted: {it.history.promoted_why}", _CELL, "green") if draft.number == it.node.promoted else "",
        ]
        for draft in found
    ]
    table = [Table(["draft", "operator", "in tuning", "description", ""], rows)] if rows else []
    data = {"drafts": [draft.model_dump(mode="json") for draft in found], "promoted_why": it.history.promoted_why}
    return Section("drafts", "drafts", "", table, data)


def _tuned(draft: Draft, metrics: Sequence[Metric]) -> Words:
    if draft.refused:
        return Quote(f"refused: {draft.refused}", 100, "red")
    return figures.metrics(draft.verdict.metrics, metrics) if draft.verdict else ""


def review(it: NodeMaterial) -> Section:
    """What the verifier said of each draft."""
    found = [draft for draft in it.state.drafts(it.node.id) if draft.finding]
    rows = {
        f"draft {draft.number}": f"{draft.finding}{f': {draft.reasons}' if draft.reasons else ''}" for draft in found
    }
    return Section("review", "review", "", others(rows, 600), {})


def verdict(it: NodeMaterial) -> Section:
    given, found, metrics = it.node.verdict, headline(it.state, it.node), it.metrics
    # Asked only of one that has tasks: to find who is best at each is a look at every node.
    best = best_at(it.state, it.run).get(it.node.id, []) if given and given.tasks else []
    data = {"best_at": best}
    if not given or not found:
        return Section("verdict", "verdict", data=data)
    rows = {
        metric: f"{found.mark}{figures.score(value, 10)}{_goal(metric, metrics)}"
        for metric, value in found.metrics.items()
    }
    if found.runs:
        rows |= {"measured": f"median of {figures.plural(found.runs, 'repeat')}"}
        rows |= {"first run": f"{figures.metrics(given.metrics, metrics)} (only screened by)"}
    rows |= {"measured once": LEGEND if found.screened else ""}
    tasks = list(given.tasks.items())[:_NOTES]
    rows |= {f"task {name}": f"{figures.score(value)}{' (none is better)' * (name in best)}" for name, value in tasks}
    rows |= {"tier": given.tier, "mode": given.mode, "cohort": given.cohort}
    rows |= {"valid": "" if given.valid else "no: the judge says that it is no solution"}
    rows |= {"not believed": ", ".join(given.suspect)}
    rows |= {"may be less": ", ".join(given.at_most)}
    rows |= {
        f"cohort {name}": figures.metrics(other.metrics, metrics)
        for name, other in it.node.verdicts.items()
        if name != given.cohort
    }
    return Section("verdict", "verdict", "", others(rows | {"notes": _notes(given)}), data)


def _notes(given: Verdict) -> str:
    lines = given.notes.removesuffix("\n").split("\n")
    more = [f"and {len(lines) - _NOTES} lines more"] if len(lines) > _NOTES else []
    return "\n".join([*lines[:_NOTES], *more])


def _goal(name: str, metrics: Sequence[Metric]) -> str:
    found = [metric for metric in metrics if metric.name == name]
    return f" ({found[0].goal} is better)" if found else ""


def certified(it: NodeMaterial) -> Section:
    rows = facts_of(it.state, it.node, it.ranking, it.task.certify.certify())
    return Section("certified", "certified", "", others(rows), {"certified": rows})


def heldout(it: NodeMaterial) -> Section:
    asked = asked_about(it.state, it.node, it.metrics[0])
    if asked is None:
        return Section("heldout", "held-out", data={"heldout": None})
    rows: dict[str, Words] = {
        "query": Figure(asked.query, str(asked.query)),
        "answer": "better" if asked.better else "not better",
        "released": released(asked),
        "gap against the baseline's": growth(asked),
    }
    return Section("heldout", "held-out", "", facts(rows), {"heldout": asdict(asked)})


def a_persons_word(it: NodeMaterial) -> Section:
    return Section("answer", "a person's word", "", others({"answer": answered(it.node)}), {})


def history(it: NodeMaterial) -> Section:
    rows: list[list[Part]] = [
        [Own(f"{figures.clock(at)} ", _FAINT), Quote(line, _CELL, _FAINT)] for at, line in it.history.lines
    ]
    data = {"events": [event.model_dump(mode="json") | {"at": at} for at, event in it.history.events]}
    return Section("history", "history", "", [Lines(rows, cut=True)] if rows else [], data)


SECTIONS: Sequence[Callable[[NodeMaterial], Section]] = (
    head,
    path,
    proposal,
    of_node,
    instructions,
    drafts,
    review,
    verdict,
    members,
    certified,
    trials.channel,
    trials.trials,
    trials.reports,
    trials.guards,
    heldout,
    a_persons_word,
    trials.fingerprint,
    trials.artifacts,
    history,
)


def node_sections(material: NodeMaterial) -> list[Section]:
    return [make(material) for make in SECTIONS]
