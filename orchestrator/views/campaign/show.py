"""`blastdoor show NODE`: everything that is known about a node."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.domain.drift import asked_about
from orchestrator.domain.headline import LEGEND, headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import path_to, run_of
from orchestrator.domain.records import Calibration, Draft, Node, Role, Trial
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict
from orchestrator.loop.steering import unheard
from orchestrator.text import printable, printable_lines, short
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.certified import facts_for
from orchestrator.views.campaign.frontier import best_at
from orchestrator.views.campaign.heldout import heldout_facts
from orchestrator.views.campaign.history import History, history_of
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_node,
    json_option,
    metrics_for,
    node_and_task,
    node_record,
    open_campaign,
    print_json,
    words_argument,
)
from orchestrator.views.campaign.promotion import answered
from orchestrator.views.campaign.pruning import reports_of
from orchestrator.views.campaign.roles import finding_facts
from orchestrator.views.campaign.screen import open_screen

_FAINT = "bright_black"
_NOTES = 40


def show(
    state: State,
    node: Node,
    metrics: Sequence[Metric],
    history: History,
    *,
    certified: Mapping[str, str] | None = None,
    width: int = 100,
    unicode: bool = True,
) -> RenderableType:
    sections: list[tuple[str, RenderableType | None]] = [
        ("path", _path(state, node, metrics, width, unicode)),
        ("proposal", _proposal(node)),
        ("instructions", _instructions(state, node, history)),
        ("drafts", _drafts(state, node, metrics, history)),
        ("review", _facts(finding_facts(state.drafts(node.id)))),
        ("verdict", _verdict(state, node, metrics)),
        ("certified", _facts(certified or {})),
        ("channel", _channel(state, node)),
        ("trials", _trials(state, node, history)),
        ("reports", _facts(reports_of(state, node))),
        ("guards", _guards(state, node, history)),
        ("held-out", _facts(heldout_facts(asked_about(state, node, metrics[0])))),
        ("a person's word", _facts({"answer": answered(node)})),
        ("fingerprint", _fingerprint(state, node)),
        ("artifacts", _artifacts(state, node)),
        ("history", _told(history, width)),
    ]
    parts: list[RenderableType] = [_head(node, unicode)]
    for title, body in sections:
        if body is not None:
            parts += [Text(), Text(title, "bold cyan"), Padding(body, (0, 0, 0, 2), expand=False)]
    return Group(*parts)


def _head(node: Node, unicode: bool) -> Text:
    look = look_of(node)
    text = Text.assemble((node.id, "bold"), "  ", (f"{look.mark(unicode)} {look.word}", look.style), f"  [{node.role}]")
    text.append(f"  {printable(node.why)}" if node.why else "")
    when = f"\nopened {node.opened_at}" + (f", ended {node.ended_at}" if node.ended_at else "")
    times = f", take {node.take}" if node.take > 1 else ""
    stalls = f", stalled {figures.plural(node.stalls, 'time')}" if node.stalls else ""
    return text.append(f"{when}{times}{stalls}\nspent {figures.spent(node.spent)}", _FAINT)


def _path(state: State, node: Node, metrics: Sequence[Metric], width: int, unicode: bool) -> RenderableType:
    """What was done from the root to here, and what came of it."""
    lines = []
    for name in path_to(node.id):
        place = state.nodes[name]
        look = look_of(place)
        text = Text.assemble((name, "bold"), " ", (look.mark(unicode), look.style))
        text.append(f" {figures.headline(headline(state, place), metrics) or look.word}")
        text.append(
            f"  {short(place.description, max(20, width - text.cell_len - 4))}" if place.description else "", _FAINT
        )
        lines.append(text)
    return Text("\n").join(lines)


def _proposal(node: Node) -> RenderableType | None:
    rows = {"operator": node.operator, "description": node.description}
    rows |= {f"param {name}": repr(value) for name, value in (node.params or {}).items()}
    rows |= {"playbook": "" if node.playbook is None else f"version {node.playbook}"}
    rows |= {"commit": node.commit or ""}
    return _facts(rows)


def _instructions(state: State, node: Node, history: History) -> RenderableType | None:
    """What a person had said, where whoever proposed it reads that."""
    if node.role is not Role.SEARCH or unheard(state.runs[str(run_of(node.id))].proposer):
        return None
    return _facts({str(number): text for number, text in enumerate(history.steering, 1)})


def _drafts(state: State, node: Node, metrics: Sequence[Metric], history: History) -> RenderableType | None:
    drafts = state.drafts(node.id)
    if not drafts:
        return None
    table = _table("draft", "operator", "in tuning", "description", "")
    for draft in drafts:
        promoted = (
            Text(f"promoted: {printable(history.promoted_why)}", "green") if draft.number == node.promoted else Text()
        )
        table.add_row(
            str(draft.number), _cell(draft.operator), _tuned(draft, metrics), _cell(draft.description), promoted
        )
    return table


def _tuned(draft: Draft, metrics: Sequence[Metric]) -> Text:
    if draft.refused:
        return Text(f"refused: {short(draft.refused, 100)}", "red")
    return Text(figures.metrics(draft.verdict.metrics, metrics) if draft.verdict else "")


def _best_at(state: State, node: Node) -> list[str]:
    return best_at(state, state.runs[str(run_of(node.id))]).get(node.id, [])


def _verdict(state: State, node: Node, metrics: Sequence[Metric]) -> RenderableType | None:
    verdict, found, best = node.verdict, headline(state, node), _best_at(state, node)
    if not verdict or not found:
        return None
    rows = {
        printable(metric): f"{found.mark}{figures.score(value, 10)}{_goal(metric, metrics)}"
        for metric, value in found.metrics.items()
    }
    if found.runs:
        rows |= {"measured": f"median of {figures.plural(found.runs, 'repeat')}"}
        rows |= {"first run": f"{figures.metrics(verdict.metrics, metrics)} (only screened by)"}
    rows |= {"measured once": LEGEND if found.screened else ""}
    tasks = list(verdict.tasks.items())[:_NOTES]
    rows |= {f"task {name}": f"{figures.score(value)}{' (none is better)' * (name in best)}" for name, value in tasks}
    rows |= {"tier": verdict.tier, "mode": verdict.mode, "cohort": verdict.cohort}
    rows |= {"valid": "" if verdict.valid else "no: the judge says that it is no solution"}
    rows |= {"not believed": ", ".join(verdict.suspect)}
    rows |= {"may be less": ", ".join(verdict.at_most)}
    rows |= {f"cohort {name}": figures.metrics(other.metrics, metrics) for name, other in _others(node, verdict)}
    notes = list(printable_lines(verdict.notes))
    more = [f"and {len(notes) - _NOTES} lines more"] if len(notes) > _NOTES else []
    return _facts(rows | {"notes": "\n".join([*notes[:_NOTES], *more])})


def _others(node: Node, verdict: Verdict) -> Iterator[tuple[str, Verdict]]:
    return ((name, other) for name, other in node.verdicts.items() if name != verdict.cohort)


def _goal(name: str, metrics: Sequence[Metric]) -> str:
    found = [metric for metric in metrics if metric.name == name]
    return f" ({found[0].goal} is better)" if found else ""


def _channel(state: State, node: Node) -> RenderableType | None:
    """How the judge's calls were timed, for every trial in which it called."""
    found = [(trial.id, trial.calibration) for trial in state.trials_of(node.id) if trial.calibration]
    told = {
        name: f"an empty call takes {it.median_s * 1e3:.3g} ms, jitter {it.jitter_s * 1e3:.3g} ms; "
        f"{figures.plural(it.calls, 'call')}{_each(it)}; seed {it.seed}"
        for name, it in found
    }
    return _facts(told)


def _each(it: Calibration) -> str:
    """What a call took, the way there and back included, and whether the channel was measured more than once."""
    took = f" of {it.call_s * 1e3:.3g} ms" if it.call_s is not None else ""
    return took + (f", measured {it.measured} times" if it.measured > 1 else "")


def _trials(state: State, node: Node, history: History) -> RenderableType | None:
    trials = list(state.trials_of(node.id))
    if not trials:
        return None
    table = _table("trial", "purpose", "draft", "started", "took", "ending", "exit", "cost")
    for trial in trials:
        took = history.took(trial.id)
        table.add_row(
            trial.id,
            trial.purpose,
            str(trial.draft),
            figures.clock(trial.started_at),
            figures.duration(took) if took is not None else "",
            _cell(_ending(trial)),
            "" if trial.exit_code is None else str(trial.exit_code),
            figures.spent(trial.spent),
        )
    return table


def _ending(trial: Trial) -> str:
    if not trial.ended:
        return "runs"
    if trial.ending:
        return f"{trial.ending}: {trial.reason}" if trial.reason else trial.ending
    if trial.fault:
        return f"the judge's fault code: {trial.fault}"
    return "judged" if trial.judged else "waits for the judge"


def _guards(state: State, node: Node, history: History) -> RenderableType | None:
    """Each with the node that it came from: the nearest one wins."""
    origins = {guard.name: place for place in path_to(node.id) for guard in state.nodes[place].guards}
    if not origins:
        return None
    table = _table("guard", "from", "in", "command", "")
    for guard in state.guards_of(node.id):
        passed = node.guarded.get(guard.name)
        word = {True: Text("passes", "green"), False: Text("does not pass", "red"), None: Text("not asked", _FAINT)}[
            passed
        ]
        if reason := history.guard_reasons.get(guard.name):
            word = Text.assemble(word, f": {short(reason, 120)}")
        table.add_row(_cell(guard.name), origins[guard.name], guard.place, _cell(" ".join(guard.command)), word)
    return table


def _fingerprint(state: State, node: Node) -> RenderableType | None:
    trial = state.trials.get(node.submitted or "")
    return _facts(trial.fingerprint) if trial else None


def artifacts_of(state: State, node: Node) -> dict[str, str]:
    """Digests of what is stored of a node, by what they are."""
    found = {"diff": node.diff, "agent log": node.agent_log}
    for draft in state.drafts(node.id):
        found |= {f"draft {draft.number} text": draft.change}
    for trial in state.trials_of(node.id):
        parts = (
            {"log": trial.log} if trial.let_go else {"outputs": trial.outputs, "log": trial.log, "traces": trial.traces}
        )
        found |= {f"trial {trial.id} {part}": digest for part, digest in parts.items()}
    return {name: digest for name, digest in found.items() if digest}


def _artifacts(state: State, node: Node) -> RenderableType | None:
    gone = {
        f"trial {it.id} outputs": "let go, to keep within --artifacts" for it in state.trials_of(node.id) if it.let_go
    }
    return _facts({**artifacts_of(state, node), **gone})


def _told(history: History, width: int) -> RenderableType | None:
    lines = [Text(f"{figures.clock(at)} {short(line, max(40, width - 12))}", _FAINT) for at, line in history.lines]
    return Text("\n").join(lines) if lines else None


def _facts(rows: Mapping[str, str]) -> RenderableType | None:
    """Names and values; a value is escaped line by line, and what is empty is left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style=_FAINT, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        if value:
            table.add_row(_cell(name), Text("\n".join(printable_lines(value))))
    return table if table.row_count else None


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=_FAINT)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _cell(text: str) -> Text:
    return Text(short(text, 500))


def record(state: State, node: Node, history: History, metrics: Sequence[Metric]) -> dict[str, Any]:
    asked = asked_about(state, node, metrics[0])
    return {
        "node": node_record(state, node),
        "path": {name: state.nodes[name].description for name in path_to(node.id)},
        "drafts": [draft.model_dump(mode="json") for draft in state.drafts(node.id)],
        "promoted_why": history.promoted_why,
        "steering": list(history.steering),
        "trials": [trial.model_dump(mode="json") for trial in state.trials_of(node.id)],
        "guards": [guard.model_dump(mode="json") for guard in state.guards_of(node.id)],
        "best_at": _best_at(state, node),
        "heldout": asdict(asked) if asked else None,
        "artifacts": artifacts_of(state, node),
        "events": [event.model_dump(mode="json") | {"at": at} for at, event in history.events],
    }


@click.command("show", cls=CampaignCommand)
@json_option
@words_argument
def command(words: tuple[str, ...], as_json: bool) -> None:
    """Show everything about NODE (default: the best): proposal, verdict, trials, guards, cost, history."""
    node, task = node_and_task(words)
    with open_campaign(task) as reading:
        found = chosen_node(reading.state, node or "best")
        history = history_of(reading.ledger, found.id)
        metrics = metrics_for(reading, found)
        certified = facts_for(reading, found)
    if as_json:
        print_json(record(reading.state, found, history, metrics) | {"certified": certified})
        return
    screen = open_screen()
    width, unicode = screen.width, screen.unicode
    screen.show(show(reading.state, found, metrics, history, certified=certified, width=width, unicode=unicode))
