"""Where the work on a campaign stands: what it is, who works on it, what it waits for, and what people said to it."""

from collections import Counter
from pathlib import Path

from orchestrator.domain import figures
from orchestrator.domain.headline import headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Node, SiteRecord
from orchestrator.domain.state import State
from orchestrator.text import printable
from orchestrator.views.campaign.looks import look_of
from orchestrator.views.campaign.sections.material import Material, typed
from orchestrator.views.campaign.waiting import away_because, how_it_goes_on, silent_because
from orchestrator.views.render.model import BREAK, Lines, Own, Part, Prose, Quote, Section, Table, Words, join

_ALERT = "bold yellow"


def task(it: Material) -> Section:
    campaign, run = it.state.campaign, it.run
    who: list[Part] = [Quote(run.proposer)]
    who += [" beside ", Quote(run.control)] if run.control else []
    runs = f"  ({len(it.state.runs)} runs)" if len(it.state.runs) > 1 else ""
    line = [Quote(campaign.name, style="bold"), f"  run {run.number}, ", *who, runs]
    title: list[Part] = [Quote(campaign.name), f", run {run.number}"]
    data = {"campaign": campaign.model_dump(mode="json"), "run": run.model_dump(mode="json")}
    return Section("task", title, line, [Prose(["Proposer ", *who])], data, body_says_all=True)


def shape(it: Material) -> Section:
    return Section("shape", line=Quote(it.run.why, 400), data={})


def site(it: Material) -> Section:
    """The present place in a line, where not all is at home; every place in the body."""
    rows: list[list[Part]] = []
    for place in it.run.sites:
        rows.append([Quote(site_line(place), 400)])
        rows += [["note: ", Quote(caveat, 400)] for caveat in place.caveats]
    return Section("site", "Where it ran", _here(it.run.site), [Lines(rows)] if rows else [], {}, body_says_all=True)


def _here(place: SiteRecord | None) -> list[Part]:
    return join([Quote(line, 400) for line in site_lines(place)], BREAK)


def site_line(place: SiteRecord) -> str:
    """What holds the candidates, and where the judge is, if not with them."""
    judge = "" if place.judge == place.backend else f"; judge, gold and agents stay on {place.judge}"
    return f"candidates run on {place.boundary}{judge}"


def site_lines(place: SiteRecord | None) -> list[str]:
    """The same with every caveat; nothing where all is at home, as it was before there were other places."""
    if place is None or (place.judge == place.backend and not place.caveats):
        return []
    return [site_line(place), *(f"note: {caveat}" for caveat in place.caveats)]


def tier(it: Material) -> Section:
    caveat = it.criteria.judge.mode.terms.caveat
    return Section("tier", line=Own(caveat, "yellow") if caveat else "")


def now(it: Material) -> Section:
    campaign = it.state.campaign
    line: list[Part] = [Own(f"nobody works on it; {how_it_goes_on(it.state)}", "yellow")]
    if it.holder:
        line = [Quote(it.holder, style="green"), Own(" works on it", "green")]
    if campaign.paused:
        why = f": {campaign.pause_why}" if campaign.pause_why else ""
        off = " (blastdoor pause --off goes on)" if it.holder else ""
        line += [Own("; paused", _ALERT), Quote(why, 500, _ALERT), Own(off, _ALERT)]
    if away := away_because(campaign) or (silent_because(campaign) if it.holder else ""):
        line += ["; ", Quote(away, 500, _ALERT)]
    if campaign.stopped:
        line += [Own("; stopped: ", "bold"), Quote(campaign.stopped, 500, "bold")]
    elif not it.holder and campaign.session_open:
        line += [Own("; it died at its work, and what was running will be run again", "bold")]
    return Section("now", line=line, data={"holder": it.holder})


def stopped(it: Material) -> Section:
    """With what to type next, where it stopped to be looked at."""
    line: list[Part] = [Quote(it.reason, 500)] if it.reason else []
    line += [f"; {next_round(it.folder)}"] if round_is_over(it) else []
    return Section("stopped", line=line, data={"stopped": it.reason})


def waits(it: Material) -> Section:
    nodes = who_waits(it.state)
    lines = [Own(waiting_line(it.state, node, it.metrics[0], it.folder), _ALERT) for node in nodes]
    return Section("waits", line=join(lines, BREAK), data={"waits": [node.id for node in nodes]})


def who_waits(state: State) -> list[Node]:
    """Those of the present run that a person is asked about, in the order of asking."""
    nodes = (state.nodes[name] for name in state.unfinished)
    found = [node for node in nodes if node.waits_for_person and run_of(node.id) == state.campaign.run]
    return sorted(found, key=lambda node: node.promotion_since)


def waiting_line(state: State, node: Node, metric: Metric, folder: Path) -> str:
    """Its score against the best, and what to type."""
    champion = state.champion()
    mine, best = (headline(state, it) if it else None for it in (node, champion))
    values = [f"{it.mark}{figures.score(it.metrics.get(metric.name))}" if it else "none" for it in (mine, best)]
    scored = f" {printable(metric.name)}={values[0]} (best {values[1]})" if mine else ""
    accepted, shown = typed(folder, "accept", node.id), typed(folder, "diff", node.id)
    return f"{node.id}{scored} waits for your word: {accepted}, or decline; {shown}"


def requests(it: Material) -> Section:
    told: list[list[Part]] = [[f"{count} ", Quote(kind)] for kind, count in Counter(it.asked).items()]
    then = "; taken within a second of work, or at the next blastdoor resume"
    line = [*join(told, ", "), then] if told else ""
    return Section("requests", line=line, data={"asked": list(it.asked)})


def steering(it: Material) -> Section:
    said = it.state.campaign.steering
    more = f" (and {len(said) - 1} before; blastdoor steer --list shows all)" if len(said) > 1 else ""
    line: list[Part] = [Quote(said[-1], 160), more] if said else []
    body = [Lines([Quote(text, None) for text in said], numbered=True)] if said else []
    return Section("steering", "Instructions", line, body, {}, body_says_all=True)


def answers(it: Material) -> Section:
    """Of those that a person was asked about before they could become the best."""
    rows: list[list[Words]] = [
        [node.id, look_of(node).word, Quote(answered(node))] for node in it.nodes if answered(node)
    ]
    table = [Table(["node", "", "a person's answer"], rows)] if rows else []
    return Section("answers", "A person's word", "", table)


def answered(node: Node) -> str:
    """What a person said of a node; empty where nobody was asked."""
    if node.promotion is None:
        return "waits for an answer" if node.waits_for_person else ""
    why = f": {node.promotion_why}" if node.promotion_why else ""
    return f"{'accepted' if node.promotion else 'declined'}{why}"


def next_round(folder: Path) -> str:
    """What to type after a round that is over."""
    resume, without = typed(folder, "resume"), typed(folder, "resume", "--no-review")
    return f"{resume} goes on with the next one, {without} without stops"


def round_is_over(it: Material) -> bool:
    # A status has no reason, and the loop takes long to load.
    if not it.reason:
        return False
    from orchestrator.loop.rounds import over

    made = it.state.campaign.round
    return made is not None and it.reason == over(made)
