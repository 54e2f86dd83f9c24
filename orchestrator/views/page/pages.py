"""What each view of a campaign is told: sections that say it everywhere else too, and figures for plots of its own."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from orchestrator.domain import events as e
from orchestrator.domain.drift import drift
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import headline
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, Run
from orchestrator.domain.stalls import stall_tallies
from orchestrator.domain.state import State
from orchestrator.text import printable, short
from orchestrator.views.campaign.diff import winners_diff
from orchestrator.views.campaign.history import history_of
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.opening import material_of, metrics_of, ranking_of, task_of
from orchestrator.views.campaign.sections import Place, evidence, money, results, sections, work
from orchestrator.views.campaign.sections.combination import combination
from orchestrator.views.campaign.sections.control import control
from orchestrator.views.campaign.sections.material import Material, NodeMaterial
from orchestrator.views.campaign.sections.minimal import minimal
from orchestrator.views.campaign.sections.node import node_sections
from orchestrator.views.campaign.sections.playbook import playbook
from orchestrator.views.campaign.sections.population import population
from orchestrator.views.campaign.sections.pruning import pruning
from orchestrator.views.page.compared import comparison_of
from orchestrator.views.page.followed import WORDS, Followed, NotThere
from orchestrator.views.page.importance import importance
from orchestrator.views.page.money import money_and_time
from orchestrator.views.render.model import Section
from orchestrator.views.render.values import section_values

Make = Callable[[Material], Section]

# Which sections each view shows; the report shows them all.
VIEWS: dict[str, Sequence[Make]] = {
    "campaign": (
        work.waits, results.best, combination, minimal, control, population, work.requests, work.steering,
        results.frontier, work.shape, work.site,
    ),
    "money": (
        money.accounts, money.models, money.rented, money.unsettled, money.offers, money.outputs, results.goodput,
        results.pace, results.endings,
    ),
    "agents": (results.stalls, money.verifier, playbook),
    "trust": (
        work.tier, evidence.audited, evidence.heldout, evidence.certified, evidence.machine, evidence.too_short,
        evidence.screened, results.cohorts, work.answers, pruning, money.verifier,
    ),
}  # fmt: skip
MOST_ROWS = 200
MOST_COMPARED = 8
MOST_FOUND = 20_000
_PARAMETERS = 60
_TEXT = 2000
# What stalls are told from.
_STALL_KINDS = [
    kind.model_fields["kind"].default
    for kind in (
        e.RunStarted, e.ModelCallIntended, e.ModelCallEnded, e.AgentIntended, e.AgentEnded, e.StallFound,
        e.AttemptEnded, e.AttemptRequeued, e.AttemptQuarantined,
    )
]  # fmt: skip


def view(it: Followed, name: str, number: int | None) -> dict[str, Any]:
    run = it.run_numbered(number)
    if name == "report":
        reason = it.reading.state.campaign.stopped if run is it.reading.state.run else ""
        made = material_of(it.reading, run, diff=winners_diff(it.reading, run), reason=reason)
        return {"sections": section_values([*comparison_of(it), *sections(made, Place.REPORT)])}
    if name == "credit":
        return _credit(material_of(it.reading, run))
    if name not in VIEWS:
        raise NotThere(f"there is no view of that name; views are {', '.join([*VIEWS, 'credit', 'report'])}")
    made = material_of(it.reading, run)
    found = {"sections": section_values(make(made) for make in VIEWS[name])}
    more: dict[str, Callable[[], dict[str, Any]]] = {
        "money": lambda: money_and_time(it, run),
        "agents": lambda: _agents(it),
        "trust": lambda: _trust(it, run),
    }
    return found | (more[name]() if name in more else {})


def _each(state: State, run: Run) -> Iterator[Node]:
    """One after the other, in any order: all of them at once may be more than memory holds."""
    return (node for node in state.nodes.values() if run_of(node.id) == run.number)


def _credit(made: Material) -> dict[str, Any]:
    # All that learns comes with it.
    from orchestrator.views.campaign.sections.credit import credit

    section = credit(made)
    return {"sections": section_values([section]), "credit": (section.data or {}).get("credit")}


def _agents(it: Followed) -> dict[str, Any]:
    asked = it.reading.state.campaign.calls
    records = it.reading.ledger.read(kinds=_STALL_KINDS) if asked else ()
    tallies = [_plain(tally.record()) for tally in stall_tallies(e.read_event(record.body) for record in records)]
    return {"agents": tallies, "live": it.live(), "work": _at_work(it.reading.state)}


def _at_work(state: State) -> list[dict[str, Any]]:
    nodes = [state.nodes[name] for name in state.unfinished]
    return [{"node": it.id, "phase": str(it.phase), "agent": short(it.agent or "", 120)} for it in nodes[:MOST_ROWS]]


def _trust(it: Followed, run: Run) -> dict[str, Any]:
    state = it.reading.state
    findings: list[dict[str, str]] = []
    tiers: Counter[str] = Counter()
    for node in _each(state, run):
        findings += [_finding(node, why)] if (why := _doubt(node)) else []
        tiers.update([str(node.verdict.tier)] if node.verdict else [])
    asked = drift(state, metrics_of(it.reading, run)[0], run)
    left = {"asked": asked.asked, "askable": asked.askable} if asked else None
    return {"findings": findings[:MOST_ROWS], "count": len(findings), "heldout": left, "tiers": dict(tiers)}


def _doubt(node: Node) -> str:
    if node.ending is Ending.TAMPERED:
        return f"tampered: {node.why}"
    if node.verdict and node.verdict.suspect:
        return f"not believed: {', '.join(node.verdict.suspect)}"
    return f"the verifier says {node.finding}" if node.finding in ("flag", "hold") else ""


def _finding(node: Node, why: str) -> dict[str, str]:
    return {"node": node.id, "look": look_of(node).word, "why": short(why, 300)}


def rows(it: Followed, names: Sequence[str]) -> dict[str, Any]:
    """What a table shows of nodes beside numbers."""
    found = [it.reading.state.nodes[name] for name in names[:MOST_ROWS] if name in it.reading.state.nodes]
    return {node.id: {"description": short(node.description, WORDS), "why": short(node.why, WORDS)} for node in found}


def search(it: Followed, text: str, number: int | None) -> dict[str, Any]:
    """Places on the board of nodes whose words have a text in them."""
    run, wanted = it.run_numbered(number), text.casefold()
    board = it.board_of(run)
    nodes = _each(it.reading.state, run)
    found = [
        node.id for node in nodes if wanted in f"{node.id} {node.description} {node.why} {node.operator}".casefold()
    ]
    return {"places": sorted(board.place_of(name) for name in found[:MOST_FOUND]), "count": len(found)}


def node_page(it: Followed, text: str) -> dict[str, Any]:
    node, state = it.node(text), it.reading.state
    run = state.runs[text.split(".", 1)[0]]
    ranking, task = ranking_of(it.reading, run), task_of(it.reading, run)
    made = NodeMaterial(state, node, ranking, task, history_of(it.reading.ledger, node.id))
    trials = list(state.trials_of(node.id))
    texts = [{"what": "agent", "name": node.id, "title": "what the agent printed"}] if node.agent_log else []
    texts += [{"what": "trial", "name": it.id, "title": f"log of trial {it.id}"} for it in trials if it.log]
    texts += [
        {"what": "draft", "name": f"{node.id}#{draft.number}", "title": f"draft {draft.number}, as it was answered"}
        for draft in state.drafts(node.id)
        if draft.change
    ]
    look = look_of(node)
    children = it.run(lambda it: it.board_of(run).children_of(node.id, MOST_ROWS))
    return {
        "node": node.id,
        "run": run.number,
        "parent": node.parent,
        "children": children,
        "look": {"word": look.word, "sign": look.sign, "style": look.style},
        "description": short(node.description, _TEXT),
        "open": node.id in state.unfinished,
        "has_diff": node.commit is not None or node.diff is not None,
        "texts": texts,
        "scores": _scores(state, node),
        "sections": section_values(node_sections(made)),
    }


def _scores(state: State, node: Node) -> dict[str, Any]:
    found, verdict = headline(state, node), node.verdict
    tasks = verdict.tasks if verdict else {}
    return {
        "metrics": {printable(name): value for name, value in (found.metrics if found else {}).items()},
        "tasks": {short(name, 120): _finite(value) for name, value in list(tasks.items())[:_TEXT]},
    }


def compare(it: Followed, names: Sequence[str]) -> dict[str, Any]:
    """Several nodes side by side."""
    if not 1 <= len(names) <= MOST_COMPARED:
        raise NotThere(f"1 to {MOST_COMPARED} nodes can be compared")
    nodes = [it.node(name) for name in names]
    state = it.reading.state
    told = [
        {
            "node": node.id,
            "look": look_of(node).word,
            "description": short(node.description, _TEXT),
            "operator": short(node.operator, 120),
            "params": {short(name, 120): short(repr(value), 200) for name, value in (node.params or {}).items()},
            "spent": {"microdollars": node.spent.microdollars, "milliseconds": node.spent.milliseconds},
            **_scores(state, node),
        }
        for node in nodes
    ]
    return {"nodes": told}


def parameters(it: Followed, number: int | None) -> dict[str, Any]:
    """Every scored node with its parameters, as columns; how much of the score each of them explains alone."""
    run = it.run_numbered(number)
    state = it.reading.state
    metric = metrics_of(it.reading, run)[0]
    found = [
        (node.opened_place, node.id, value, node.params)
        for node in _each(state, run)
        if node.params and (value := _scored(state, node, metric.name)) is not None
    ]
    found.sort(key=lambda one: one[0])
    names = [name for name, _ in Counter(name for *_, params in found for name in params).most_common()]
    scores = [value for _, _, value, _ in found]
    columns = {name: [_plain(params.get(name)) for *_, params in found] for name in names[:_PARAMETERS]}
    return {
        "metric": short(metric.name, 120),
        "goal": str(metric.goal),
        "nodes": [name for _, name, _, _ in found],
        "scores": scores,
        "parameters": [
            {"name": short(name, 120), "values": values, "importance": importance(values, scores)}
            for name, values in columns.items()
        ],
        "left_out": max(0, len(names) - _PARAMETERS),
    }


def _scored(state: State, node: Node, metric: str) -> float | None:
    found = headline(state, node) if node.ending and node.ending.scoreable else None
    return _finite(found.metrics.get(metric)) if found else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """As JSON takes it; words are made harmless to the eye."""
    match value:
        case str():
            return short(value, 200)
        case float():
            return _finite(value)
        case dict():
            return {short(str(key), 200): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value
