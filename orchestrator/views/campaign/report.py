"""`blastdoor report`: a campaign as one Markdown document."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from orchestrator.budget import Account, Accounts, shown
from orchestrator.domain.control import Comparison, compare
from orchestrator.domain.drift import Drift, drift
from orchestrator.domain.ending import Ending
from orchestrator.domain.goodput import Goodput, goodput, in_order
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Ranking
from orchestrator.domain.node import path_to
from orchestrator.domain.records import Campaign, Node, Phase, Run
from orchestrator.domain.savings import Savings, savings
from orchestrator.domain.state import State
from orchestrator.domain.steadiness import machine_drift
from orchestrator.domain.verdict import Tier
from orchestrator.loop.steering import LONGEST
from orchestrator.task import Task
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.certified import certified
from orchestrator.views.campaign.chart import chart
from orchestrator.views.campaign.control import control_record, control_sentence
from orchestrator.views.campaign.diff import diff_of
from orchestrator.views.campaign.export import STDOUT, writing
from orchestrator.views.campaign.heldout import heldout_section
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.markdown import block, code, table
from orchestrator.views.campaign.offers import offers_line, offers_record
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    chosen_run,
    json_option,
    json_text,
    node_record,
    open_campaign,
    ranking_of,
    run_option,
    task_argument,
    task_of,
)
from orchestrator.views.campaign.playbook import playbook_record, playbook_section
from orchestrator.views.campaign.promotion import answered
from orchestrator.views.campaign.pruning import pruning_sentences
from orchestrator.views.campaign.roles import roles_record, roles_section
from orchestrator.views.campaign.sites import sites_section
from orchestrator.views.campaign.standing import let_go_line, standing_line
from orchestrator.wiring import Reading

_DIFF_LINES = 400
_CHART = (100, 24)
_NAMED = 20


@dataclass(frozen=True)
class Material:
    """What a report is made from; `diff` is the winner's against the baseline of its run."""

    state: State
    accounts: Accounts
    run: Run
    ranking: Ranking
    task: Task
    diff: str = ""

    @property
    def goodput(self) -> Goodput:
        usd = self.accounts.used(Account.USD)
        return goodput(self.state, usd=usd, elapsed_s=self.state.campaign.elapsed_s, run=self.run)

    @property
    def savings(self) -> Savings:
        return savings(self.state, self.run)

    @property
    def comparison(self) -> Comparison:
        return compare(self.state, self.ranking, self.run)

    @property
    def drift(self) -> Drift | None:
        return drift(self.state, self.ranking.metrics[0], self.run)

    @property
    def winner(self) -> Node | None:
        return self.state.champion(self.run)


def report(material: Material) -> str:
    state, run = material.state, material.run
    nodes = in_order(state, run)
    sections = [
        (f"{code(state.campaign.name)}, run {run.number}", _summary(material)),
        ("Winner", _winner(material)),
        ("Every node", _chart(material)),
        ("The way to the best", _path(material)),
        ("Endings", _endings(material.goodput)),
        ("What it cost", _cost(material.accounts, material.state.campaign)),
        ("Models and roles", roles_section(state, material.accounts, material.task, nodes)),
        ("Goodput", _goodput(material.goodput)),
        ("Against the control", [control_sentence(material.comparison, run, material.ranking.metrics, code)]),
        ("Held-out split", heldout_section(material.drift, material.ranking.metrics[0])),
        ("Pruning", pruning_sentences(material.savings)),
        *(("Instructions", body) for body in [_instructions(state)] if body),
        *(("A person's word", body) for body in [_answers(nodes)] if body),
        ("Playbook", playbook_section(state, material.ranking, run.number)),
        *(("Where it ran", body) for body in [sites_section(run)] if body),
        ("Cohorts", _cohorts(nodes, run)),
        ("Stalls and quarantine", _stalls(nodes, state)),
    ]
    lines: list[str] = []
    for depth, (title, body) in enumerate(sections):
        lines += [f"{'#' if depth == 0 else '##'} {title}", "", *body, ""]
    return "\n".join(lines)


def _summary(material: Material) -> list[str]:
    state, run, counts = material.state, material.run, material.goodput
    beside = f" beside the control {code(run.control)}" if run.control else ""
    lines = [
        f"Proposer {code(run.proposer)}{beside}; {code(run.why)}.",
        f"{figures.plural(counts.ended, 'attempt')} ended, {counts.scored} scored, {counts.kept} kept, in "
        f"{figures.duration(state.campaign.elapsed_s)} of work{' of all runs' if len(state.runs) > 1 else ''}.",
    ]
    if caveat := Tier(material.task.judge.mode).caveat:
        lines.append(f"Tier {caveat}.")
    if offers := offers_line(state.campaign):
        lines.append(f"{offers}.")
    if (tested := certified(state, in_order(state, run))).tested:
        lines.append(f"{tested.words}.")
    if unsteady := machine_drift(state, run, material.ranking):
        lines.append(f"{unsteady.words[0].upper()}{unsteady.words[1:]}.")
    told = ((node.id, headline(state, node)) for node in in_order(state, run) if node.ending is Ending.SCORED)
    if short := [name for name, found in told if found and found.at_most]:
        lines.append(f"Their calls were too short for the channel, so they may be faster than is said: {_few(short)}.")
    if state.campaign.stopped and run is state.run:
        lines.append(f"It stopped: {code(state.campaign.stopped)}.")
    return lines


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _winner(material: Material) -> list[str]:
    node, run = material.winner, material.run
    verdict = node.verdicts.get(run.cohort or "", node.verdict) if node else None
    if node is None or verdict is None or not (found := headline(material.state, node, run.cohort)):
        return ["Nothing is kept yet."]
    if node.id == run.root:
        return [f"The baseline {node.id} is still the best."]
    root = material.state.nodes[run.root]
    before = headline(material.state, root, run.cohort) if run.cohort in root.verdicts else None
    rows = []
    for metric in material.ranking.metrics:
        value, start = found.metrics.get(metric.name), before.metrics.get(metric.name) if before else None
        gain = figures.signed(value - start) if value is not None and start is not None else ""
        rows.append(
            [f"{code(metric.name)} ({metric.goal} is better)", figures.score(value), figures.score(start), gain]
        )
    lines = [f"{node.id}: {code(node.description)} (tier {verdict.tier}, cohort {verdict.cohort})", ""]
    lines += [*table(["metric", f"{node.id}", "baseline", "difference"], rows), ""]
    if found.runs:
        lines += [f"Values are medians of repeats, {found.runs} of {node.id}; a first run decides nothing.", ""]
    if node.params:
        lines += [f"Parameters: {code(json_text(node.params, indent=None), 1000)}", ""]
    return [*lines, *(block(material.diff, "diff", _DIFF_LINES) if material.diff else ["No difference is stored."])]


def _chart(material: Material) -> list[str]:
    width, height = _CHART
    picture = chart(material.state, material.ranking.metrics[0], width=width, height=height, run=material.run)
    return block(picture.plain, "text")


def _path(material: Material) -> list[str]:
    if material.winner is None:
        return ["None yet."]
    rows = []
    for name in path_to(material.winner.id):
        node = material.state.nodes[name]
        scores = figures.headline(headline(material.state, node), material.ranking.metrics)
        rows.append([name, look_of(node).word, code(scores), code(node.operator), code(node.description)])
    return table(["node", "", "metrics", "operator", "description"], rows)


def _endings(counts: Goodput) -> list[str]:
    if not counts.endings:
        return ["No attempt has ended."]
    return table(["ending", "attempts"], [[ending, f"{count:,}"] for ending, count in counts.endings.items()])


def _cost(accounts: Accounts, campaign: Campaign) -> list[str]:
    rows = []
    for account in Account:
        limit, used = accounts.limit(account), accounts.used(account)
        if limit is not None or used:
            cap = "no cap" if limit is None else shown(account, limit)
            rows.append([account.value, shown(account, used), shown(account, accounts.held(account)), cap])
    losses = accounts.losses
    lost = [f"Of that, lost: {losses}."] if losses.cost else []
    stood = [f"Of that, {line}."] if (line := standing_line(campaign)) else []
    gone = [f"{line[0].upper()}{line[1:]}."] if (line := let_go_line(campaign)) else []
    runs = (
        [f"All {campaign.run} runs together; attempts of earlier runs are in the caps, too."]
        if campaign.run > 1
        else []
    )
    return [*table(["account", "used", "held", "cap"], rows), "", *runs, *lost, *stood, *gone]


def _goodput(counts: Goodput) -> list[str]:
    rates = counts.rates
    rows = [
        ["dollars", f"{counts.dollars:.4f}", _rate(rates.per_dollar)],
        ["hours of work", f"{counts.hours:.3f}", _rate(rates.per_hour)],
        ["GPU-hours", f"{counts.gpu_hours:.3f}", _rate(rates.per_gpu_hour)],
        ["chamber-hours", f"{counts.chamber_hours:.3f}", _rate(rates.per_chamber_hour)],
    ]
    raw = f"{counts.charged} charged attempts, {counts.trials} trials, {counts.scored} scores"
    useful = figures.plural(counts.useful, "comparable useful result")
    told = f"{useful} (scored, valid, of the present cohort); raw: {raw}."
    return [told, "", *table(["spent", "", "useful results for one"], rows)]


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"


def _cohorts(nodes: Iterable[Node], run: Run) -> list[str]:
    scored: dict[str, int] = {}
    for node in nodes:
        for cohort in node.verdicts:
            scored[cohort] = scored.get(cohort, 0) + 1
    if not scored:
        return ["No score yet."]
    rows = [
        [cohort, f"{count:,}", run.champions.get(cohort, ""), "present" if cohort == run.cohort else ""]
        for cohort, count in scored.items()
    ]
    return table(["cohort", "nodes with a verdict", "best", ""], rows)


def _instructions(state: State) -> list[str]:
    return [f"{number}. {code(text, LONGEST)}" for number, text in enumerate(state.campaign.steering, 1)]


def _answers(nodes: Sequence[Node]) -> list[str]:
    """Of those that a person was asked about before they could become the best."""
    rows = [[node.id, look_of(node).word, code(answered(node))] for node in nodes if answered(node)]
    return table(["node", "", "a person's answer"], rows) if rows else []


def _stalls(nodes: Sequence[Node], state: State) -> list[str]:
    stalled = [node for node in nodes if node.stalls or node.phase is Phase.QUARANTINED]
    refunds = sum(state.campaign.refunds.values())
    lines = [f"{figures.plural(refunds, 'free ending')} counted against lineages."]
    if not stalled:
        return [*lines, "No node stalled or is in quarantine."]
    rows = [[node.id, look_of(node).word, str(node.stalls), code(node.why)] for node in stalled]
    return [*lines, "", *table(["node", "", "stalls", "why"], rows)]


def record(material: Material) -> dict[str, Any]:
    unsteady = machine_drift(material.state, material.run, material.ranking)
    return {
        "campaign": material.state.campaign.model_dump(mode="json"),
        "run": material.run.model_dump(mode="json"),
        "winner": node_record(material.state, material.winner) if material.winner else None,
        "diff": material.diff,
        "certified": asdict(certified(material.state, in_order(material.state, material.run))),
        "machine": asdict(unsteady) if unsteady else None,
        "goodput": material.goodput.record(),
        "control": control_record(material.comparison),
        "heldout": material.drift.record() if material.drift else None,
        "offers": offers_record(material.state.campaign),
        "pruning": material.savings.record(),
        "roles": roles_record(material.state, material.accounts, material.task, in_order(material.state, material.run)),
        "playbook": playbook_record(material.state, material.ranking, material.run.number),
        "accounts": material.accounts.as_rows(),
    }


def material_of(reading: Reading, run: Run) -> Material:
    winner = reading.state.champion(run)
    root = reading.state.nodes.get(run.root)
    changed = winner and root and winner.id != root.id and winner.commit and root.commit
    diff = diff_of(reading, winner, root) if changed and winner else ""
    return Material(reading.state, reading.accounts, run, ranking_of(reading, run), task_of(reading, run), diff)


@click.command("report", cls=CampaignCommand)
@click.option("--out", type=click.Path(path_type=Path), default=STDOUT, help="File to write to; defaults to stdout.")
@run_option
@json_option
@task_argument
def command(task: Path, out: Path, number: int | None, as_json: bool) -> None:
    """Write a report in Markdown: the winner, every node, what it cost, and whether it beats the control."""
    with open_campaign(task) as reading:
        material = material_of(reading, chosen_run(reading.state, number))
    text = json_text(record(material)) + "\n" if as_json else report(material)
    with writing(out) as stream:
        stream.write(text)
    if out != STDOUT:
        click.echo(f"written to {out}")
