"""`blastdoor status`: where a campaign stands, on one screen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.budget import Account, Accounts, shown
from orchestrator.budget.amounts import SLOTS
from orchestrator.domain.control import compare
from orchestrator.domain.drift import drift
from orchestrator.domain.ending import Ending
from orchestrator.domain.goodput import in_order
from orchestrator.domain.headline import LEGEND, headline
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Node, Phase, Role, Run
from orchestrator.domain.savings import savings
from orchestrator.domain.state import State
from orchestrator.domain.steadiness import machine_drift
from orchestrator.domain.verdict import Tier
from orchestrator.task import Task
from orchestrator.text import printable, short
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.bars import bar
from orchestrator.views.campaign.certified import certified
from orchestrator.views.campaign.control import control_record, control_sentence
from orchestrator.views.campaign.frontier import best_at, frontier_line
from orchestrator.views.campaign.happenings import away_because, how_it_goes_on
from orchestrator.views.campaign.heldout import heldout_sentence
from orchestrator.views.campaign.looks import legend, look_of
from orchestrator.views.campaign.offers import offers_line
from orchestrator.views.campaign.opening import (
    CampaignCommand,
    holder_of,
    json_option,
    node_record,
    open_campaign,
    print_json,
    ranking_of,
    task_argument,
)
from orchestrator.views.campaign.playbook import playbook_line, playbook_record
from orchestrator.views.campaign.promotion import waiting_line, who_waits
from orchestrator.views.campaign.pruning import pruning_line
from orchestrator.views.campaign.roles import findings_of, roles_lines, roles_record
from orchestrator.views.campaign.screen import open_screen
from orchestrator.views.campaign.sites import site_lines
from orchestrator.views.campaign.standing import let_go_line, standing_line
from orchestrator.wiring import Reading

_LAST = 5
_BAR = 24


@dataclass(frozen=True)
class Standing:
    """What a status is made from; `asked` are the kinds of requests that nobody took yet."""

    state: State
    accounts: Accounts
    ranking: Ranking
    task: Task
    holder: str | None
    folder: Path
    asked: Sequence[str] = ()

    @property
    def metrics(self) -> Sequence[Metric]:
        return self.ranking.metrics


def status(standing: Standing, width: int = 100, unicode: bool = True) -> RenderableType:
    state = standing.state
    nodes = in_order(state, state.run)
    unsteady = machine_drift(state, state.run, standing.ranking)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in (
        ("task", _task_line(state)),
        ("shape", Text(printable(state.run.why))),
        ("site", Text("\n".join(printable(line) for line in site_lines(state.run.site)))),
        ("tier", Text(Tier(standing.task.judge.mode).caveat, "yellow")),
        ("now", _work_line(standing)),
        ("waits", _waiting_lines(standing)),
        ("requests", Text(_asked_line(standing.asked))),
        ("best", _best_line(state, standing.metrics)),
        ("steering", Text(_steering_line(state))),
        ("tasks", Text(frontier_line(state, state.run))),
        ("nodes", Text("\n").join(legend(map(look_of, nodes), unicode, width - 8))),
        ("pace", _pace_line(state)),
        ("control", _control_line(standing)),
        *_heldout_line(standing),
        ("models", roles_lines(state, standing.accounts, standing.task)),
        ("verifier", _findings_line(nodes)),
        ("rented", Text(standing_line(state.campaign, len(state.standing)))),
        ("offers", Text(offers_line(state.campaign))),
        ("outputs", Text(let_go_line(state.campaign).removeprefix("outputs: "))),
        ("pruning", Text(pruning_line(savings(state)))),
        ("playbook", Text(playbook_line(state, standing.ranking))),
        ("tested", Text(tested.words if (tested := certified(state, nodes)).tested else "")),
        ("machine", Text(unsteady.words if unsteady else "")),
        ("screened", Text(LEGEND if state.run.noisy else "")),
    ):
        if value:
            table.add_row(name, value)
    return Group(
        table,
        Text(),
        _books(standing.accounts, state.run, unicode),
        Text(),
        *_last_lines(nodes, standing, width, unicode),
    )


def _task_line(state: State) -> Text:
    run = state.run
    beside = f" beside {run.control}" if run.control else ""
    text = Text.assemble((printable(state.campaign.name), "bold"), f"  run {run.number}, {run.proposer}{beside}")
    return text.append(f"  ({len(state.runs)} runs)" if len(state.runs) > 1 else "")


def _work_line(standing: Standing) -> Text:
    campaign = standing.state.campaign
    text = Text()
    if standing.holder:
        text.append(f"{printable(standing.holder)} works on it", "green")
    else:
        text.append(f"nobody works on it; {how_it_goes_on(standing.state)}", "yellow")
    if campaign.paused:
        why = printable(f": {campaign.pause_why}") if campaign.pause_why else ""
        text.append(f"; paused{why}" + (" (blastdoor pause --off goes on)" if standing.holder else ""), "bold yellow")
    if away := away_because(campaign):
        text.append(f"; {printable(away)}", "bold yellow")
    if campaign.stopped:
        text.append(f"; stopped: {printable(campaign.stopped)}", "bold")
    elif not standing.holder and campaign.session_open:
        text.append("; it died at its work, and what was running will be run again", "bold")
    return text


def _waiting_lines(standing: Standing) -> Text:
    state, metric = standing.state, standing.metrics[0]
    lines = (waiting_line(state, node, metric, standing.folder) for node in who_waits(state))
    return Text("\n".join(lines), "bold yellow")


def _asked_line(kinds: Sequence[str]) -> str:
    told = ", ".join(f"{count} {printable(kind)}" for kind, count in Counter(kinds).items())
    return f"{told}; taken within a second of work, or at the next blastdoor resume" if told else ""


def _steering_line(state: State) -> str:
    said = state.campaign.steering
    more = f" (and {len(said) - 1} before; blastdoor steer --list shows all)" if len(said) > 1 else ""
    return f"{short(said[-1], 160)}{more}" if said else ""


def _best_line(state: State, metrics: Sequence[Metric]) -> Text:
    best = state.champion()
    found = headline(state, best, state.run.cohort) if best else None
    if not best or not found:
        return Text("nothing is kept yet", "bright_black")
    text = Text.assemble((figures.headline(found, metrics), "bold green"), f" at {best.id}")
    root = state.nodes.get(state.run.root)
    baseline = headline(state, root, state.run.cohort) if root else None
    first = metrics[0].name
    if baseline and best.id != state.run.root and {first} <= baseline.metrics.keys() & found.metrics.keys():
        start = baseline.metrics[first]
        gain = figures.signed(found.metrics[first] - start)
        text.append(f"  ({gain} on the baseline's {baseline.mark}{figures.score(start)})")
    since = state.campaign.since_improvement
    return text.append(f"; {figures.plural(since, 'attempt')} since", "bright_black") if since else text


def _heldout_line(standing: Standing) -> list[tuple[str, Text]]:
    found = drift(standing.state, standing.metrics[0])
    return [("held-out", Text(heldout_sentence(found), "yellow" if found.worst else ""))] if found else []


def _findings_line(nodes: Sequence[Node]) -> Text:
    return Text(", ".join(f"{count:,} {finding}" for finding, count in findings_of(nodes).items()))


def _pace_line(state: State) -> Text:
    """Of all runs, as the clock is."""
    elapsed = state.campaign.elapsed_s
    ended = (node for node in state.nodes.values() if node.phase is Phase.ENDED and node.role is not Role.BASELINE)
    over = sum(node.ending is not Ending.CANCELLED for node in ended)
    rate = f", {over * 3600 / elapsed:,.0f} attempts an hour" if elapsed > 0 and over else ""
    return Text(f"{figures.plural(over, 'attempt')} ended in {figures.duration(elapsed)} of work{rate}")


def _control_line(standing: Standing) -> Text | None:
    run = standing.state.run
    if not run.control:
        return None
    return Text(control_sentence(compare(standing.state, standing.ranking), run, standing.metrics))


def _books(accounts: Accounts, run: Run, unicode: bool) -> Table:
    """Every account that has a cap or was used. Slots are a run's own: what earlier runs used of them is left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for account in Account:
        earlier = run.before.get(account.value, 0)
        if account is Account.CONTROL and run.control is None:
            continue
        limit, used, held = accounts.limit(account), accounts.used(account) - earlier, accounts.held(account)
        if limit is None and not used and not held:
            continue
        cap = None if limit is None else limit - earlier
        gauge = Text("no cap", "dim") if cap is None else bar(used, held, cap, _BAR, unicode)
        parts = [f"{_units(account, used)} used"]
        parts += [f"{_units(account, held)} held"] if held else []
        parts += (
            [f"{_units(account, max(0, cap - used - held))} left of {_units(account, cap)}"] if cap is not None else []
        )
        table.add_row(account.value, gauge, ", ".join(parts))
    return table


def _units(account: Account, units: int) -> str:
    """Slots as a bare number: the line says already what they are."""
    return f"{units:,}" if account in SLOTS or account is Account.TOKENS else shown(account, units)


def _last_lines(nodes: Sequence[Node], standing: Standing, width: int, unicode: bool) -> list[Text]:
    over = sorted((node for node in nodes if node.phase is Phase.ENDED), key=lambda node: node.ended_at)
    waiting = [node for node in nodes if node.phase is Phase.QUARANTINED]
    return [_node_line(node, standing, width, unicode) for node in (*over[-_LAST:], *waiting)]


def _node_line(node: Node, standing: Standing, width: int, unicode: bool) -> Text:
    look = look_of(node)
    text = Text.assemble(
        (f"{figures.clock(node.ended_at) if node.ended_at else '':>8} ", "bright_black"),
        (look.mark(unicode), look.style),
        f" {node.id} {look.word}",
    )
    if node.ending and node.ending.scoreable:
        text.append(f" {figures.headline(headline(standing.state, node), standing.metrics)}")
    text.append(f"  {short(node.why, 80)}" if node.why else "", "bright_black")
    text.truncate(width, overflow="ellipsis")
    return text


def record(standing: Standing) -> dict[str, Any]:
    """The same as plain JSON."""
    state, accounts = standing.state, standing.accounts
    best = state.champion()
    found = drift(state, standing.metrics[0])
    unsteady = machine_drift(state, state.run, standing.ranking)
    counts = Counter(look_of(node).word for node in in_order(state, state.run))
    return {
        "campaign": state.campaign.model_dump(mode="json"),
        "run": state.run.model_dump(mode="json"),
        "holder": standing.holder,
        "waits": [node.id for node in who_waits(state)],
        "asked": list(standing.asked),
        "best": node_record(state, best) if best else None,
        "nodes": dict(counts),
        "frontier": best_at(state, state.run),
        "control": control_record(compare(state, standing.ranking)) if state.run.control else None,
        "heldout": found.record() if found else None,
        "pruning": savings(state).record(),
        "roles": roles_record(state, accounts, standing.task, in_order(state, state.run)),
        "playbook": playbook_record(state, standing.ranking),
        "certified": asdict(certified(state, in_order(state, state.run))),
        "machine": asdict(unsteady) if unsteady else None,
        "accounts": {
            account.value: {
                "limit": accounts.limit(account),
                "used": accounts.used(account),
                "held": accounts.held(account),
                "left": accounts.left(account),
            }
            for account in Account
        },
    }


def standing_of(reading: Reading) -> Standing:
    asked = [request.kind for request in reading.requests()]
    holder, folder = holder_of(reading), reading.named
    return Standing(reading.state, reading.accounts, ranking_of(reading), reading.task, holder, folder, asked)


@click.command("status", cls=CampaignCommand)
@json_option
@task_argument
def command(task: Path, as_json: bool) -> None:
    """Show where a campaign stands: the best node, what is open, what was spent, and which process works on it."""
    with open_campaign(task) as reading:
        standing = standing_of(reading)
    if as_json:
        print_json(record(standing))
        return
    screen = open_screen()
    screen.show(status(standing, screen.width, screen.unicode))
