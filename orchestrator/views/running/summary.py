"""What a session ends with: the chart, the tree, the winner with its diff, and what it cost."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from orchestrator.budget import Account, Accounts, shown
from orchestrator.domain.control import compare
from orchestrator.domain.drift import drift
from orchestrator.domain.headline import headline
from orchestrator.domain.records import Campaign, Node, Run
from orchestrator.domain.savings import savings
from orchestrator.domain.verdict import Tier
from orchestrator.loop.rounds import over
from orchestrator.text import printable
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.chart import chart
from orchestrator.views.campaign.control import control_record, control_sentence
from orchestrator.views.campaign.diff import coloured, diff_of
from orchestrator.views.campaign.heldout import heldout_sentence
from orchestrator.views.campaign.offers import offers_line, offers_record
from orchestrator.views.campaign.opening import metrics_of, node_record, ranking_of, typed
from orchestrator.views.campaign.opening import open_campaign as read
from orchestrator.views.campaign.promotion import waiting_line, who_waits
from orchestrator.views.campaign.pruning import pruning_line
from orchestrator.views.campaign.rounds import next_round, round_lines, round_record
from orchestrator.views.campaign.screen import Screen, open_screen
from orchestrator.views.campaign.standing import standing_line
from orchestrator.views.campaign.tree import Layout, tree
from orchestrator.wiring import Reading

_DIFF_LINES = 40
_WHOLE_TREE = 20


def show_summary(task: Path, reason: str) -> None:
    screen = open_screen()
    with read(task) as reading:
        metrics = metrics_of(reading)
        screen.show(chart(reading.state, metrics[0], width=screen.width, height=18, unicode=screen.unicode), "")
        small = len(reading.state.nodes) <= _WHOLE_TREE
        layout = Layout(screen.width, screen.unicode, family=None if small else 1)
        screen.show(tree(reading.state, metrics, layout), "")
        _show_winner(screen, reading)
        if caveat := Tier(reading.task.judge.mode).caveat:
            screen.line(Text.assemble(("tier: ", "bold"), (caveat, "yellow")))
        if reading.state.run.control:
            screen.line(Text.assemble(("control: ", "bold"), _control_line(reading)))
        if found := drift(reading.state, metrics[0]):
            screen.line(Text.assemble(("held-out: ", "bold"), heldout_sentence(found)))
        if offers := offers_line(reading.state.campaign):
            screen.line(Text.assemble(("offers: ", "bold"), offers))
        if pruned := pruning_line(savings(reading.state)):
            screen.line(Text.assemble(("pruning: ", "bold"), pruned))
        made = reading.state.campaign.round
        is_round = made is not None and reason == over(made)
        for line in round_lines(reading.state, metrics, task, screen.unicode) if is_round else ():
            screen.line(line)
        for node in who_waits(reading.state):
            screen.line(Text(waiting_line(reading.state, node, metrics[0], task), "bold yellow"))
        hint = f"; {next_round(task)}" if is_round else ""
        screen.line(Text.assemble(("stopped: ", "bold"), f"{printable(reason)}{hint}"))
        screen.line(
            Text.assemble(
                ("cost: ", "bold"),
                cost_line(reading.accounts, reading.state.campaign, list(reading.state.runs.values())),
            )
        )


def summary_record(task: Path, reason: str) -> dict[str, object]:
    with read(task) as reading:
        champion = reading.state.champion()
        return {
            "stopped": reason,
            "champion": node_record(reading.state, champion) if champion else None,
            "nodes": len(reading.state.nodes),
            "accounts": reading.accounts.as_rows(),
            "control": control_record(compare(reading.state, ranking_of(reading)))
            if reading.state.run.control
            else None,
            "round": round_record(reading.state),
            "waits": [node.id for node in who_waits(reading.state)],
            "offers": offers_record(reading.state.campaign),
            "elapsed_s": reading.state.campaign.elapsed_s,
            "head": {"seq": reading.head.seq, "hash": reading.head.hash},
        }


def cost_line(accounts: Accounts, campaign: Campaign, runs: Sequence[Run] = ()) -> str:
    """A cap on attempts is one run's and all others are the campaign's, so with several runs both are told."""
    parts = [shown(account, accounts.used(account)) for account in (Account.ATTEMPTS, Account.USD)]
    parts.append(f"{shown(Account.SECONDS, accounts.used(Account.SECONDS))} in chambers")
    parts.append(f"{figures.duration(campaign.elapsed_s)} on the clock")
    parts += [stood] if (stood := standing_line(campaign)) else []
    if accounts.losses.cost:
        parts.append(f"stall losses: {accounts.losses}")
    whole = ", ".join(parts)
    if len(runs) < 2:
        return whole
    own = accounts.used(Account.ATTEMPTS) - runs[-1].before.get(Account.ATTEMPTS.value, 0)
    return f"{shown(Account.ATTEMPTS, own)} in run {runs[-1].number}; all {len(runs)} runs together: {whole}"


def _control_line(reading: Reading) -> str:
    ranking = ranking_of(reading)
    return control_sentence(compare(reading.state, ranking), reading.state.run, ranking.metrics)


def _show_winner(screen: Screen, reading: Reading) -> None:
    champion = reading.state.champion()
    root = reading.state.nodes.get(reading.state.run.root)
    if champion is None or root is None:
        screen.line("nothing was kept")
        return
    if champion.id == root.id:
        screen.line("no change beat the baseline")
        return
    screen.line(_winner_line(reading, champion, root))
    lines = coloured(diff_of(reading, champion, root))
    for line in lines[:_DIFF_LINES]:
        screen.line(line)
    if len(lines) > _DIFF_LINES:
        whole = typed(reading.named, "diff", champion.id, "--from", root.id)
        screen.line(f"… {len(lines) - _DIFF_LINES} more lines; {whole} shows all")


def _winner_line(reading: Reading, champion: Node, root: Node) -> Text:
    order = metrics_of(reading)
    cohort = reading.state.run.cohort
    scores = [figures.headline(headline(reading.state, node, cohort), order) for node in (champion, root)]
    told = printable(champion.description)
    return Text.assemble(
        ("winner ", "bold"), (champion.id, "bold green"), f" {scores[0]} (baseline {scores[1]}): {told}"
    )
