"""What a run brought: the best and the way to it, every node, how attempts ended, and what one useful result cost."""

from collections import Counter
from collections.abc import Sequence

from orchestrator.domain import figures
from orchestrator.domain.census import Sort
from orchestrator.domain.ending import Ending
from orchestrator.domain.frontier import frontier_of
from orchestrator.domain.goodput import is_attempt
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.node import path_to
from orchestrator.domain.records import Node, Phase, Run
from orchestrator.domain.state import State
from orchestrator.views.campaign.looks import LOOKS, look_of
from orchestrator.views.campaign.points import series_of
from orchestrator.views.campaign.sections.material import Material, node_record, typed
from orchestrator.views.render.model import (
    Block,
    Figure,
    Lines,
    Listing,
    Own,
    Part,
    Prose,
    Quote,
    Section,
    Table,
    Words,
    facts,
    join,
)

_LAST = 5
_FAINT = "bright_black"
_NOTHING = "nothing is kept yet"


def best(it: Material) -> Section:
    node, run = it.winner, it.run
    found = headline(it.state, node, run.cohort) if node else None
    data = {"best": node_record(it.state, node) if node else None}
    if node is None or found is None:
        return Section("best", "Winner", Own(_NOTHING, _FAINT), data=data)
    line: list[Part] = [Quote(figures.headline(found, it.metrics), 400, "bold green"), f" at {node.id}"]
    since = it.state.campaign.since_improvement if run is it.state.run else 0
    ago = Own(f"; {figures.plural(since, 'attempt')} since", _FAINT) if since else ""
    if node.id == run.root:
        return Section("best", "Winner", [*line, ", the baseline: no change beat it", ago], data=data)
    root = it.state.nodes.get(run.root)
    before = headline(it.state, root, run.cohort) if root and run.cohort in root.verdicts else None
    line += [_gain(it, found, before), ": " if node.description else "", Quote(node.description), ago]
    return Section("best", "Winner", line, [*_values(it, node, found, before), *_about(node, run)], data)


def _gain(it: Material, found: Headline, before: Headline | None) -> str:
    first = it.metrics[0].name
    if not before or not {first} <= before.metrics.keys() & found.metrics.keys():
        return ""
    start = before.metrics[first]
    gain = figures.signed(found.metrics[first] - start)
    return f" ({gain} on the baseline's {before.mark}{figures.score(start)})"


def _values(it: Material, node: Node, found: Headline, before: Headline | None) -> list[Block]:
    rows: list[list[Words]] = []
    for metric in it.metrics:
        value, start = found.metrics.get(metric.name), before.metrics.get(metric.name) if before else None
        gain = value - start if value is not None and start is not None else None
        rows.append(
            [
                [Quote(metric.name), f" ({metric.goal} is better)"],
                Figure(value, figures.score(value)),
                Figure(start, figures.score(start)),
                Figure(gain, figures.signed(gain) if gain is not None else ""),
            ]
        )
    table = Table(["metric", node.id, "baseline", "difference"], rows)
    medians = f"Values are medians of repeats, {found.runs} of {node.id}; a first run decides nothing."
    return [table, *([Prose(medians)] if found.runs else [])]


def _about(node: Node, run: Run) -> Sequence[Block]:
    verdict = node.verdicts.get(run.cohort or "", node.verdict)
    params: Part = Quote(", ".join(f"{name}={value!r}" for name, value in (node.params or {}).items()), 1000)
    judged = {"tier": verdict.tier, "cohort": verdict.cohort} if verdict else {}
    return facts({**judged, "operator": Quote(node.operator), "parameters": params})


def change(it: Material) -> Section:
    """What the best changed against the baseline."""
    node = it.winner
    if node is None or node.id == it.run.root:
        return Section("change", data={"diff": it.diff})
    more = typed(it.folder, "diff", node.id, "--from", it.run.root)
    body: Block = Listing(it.diff, "diff", more) if it.diff else Prose("No difference is stored.")
    return Section("change", "What the winner changed", "", [body], {"diff": it.diff}, open=True)


def frontier(it: Material) -> Section:
    """`1.3 at a, b; 1.5.2 at c`: the nodes that are best at most tasks first."""
    found = best_at(it.state, it.run)
    most = sorted(found.items(), key=lambda item: -len(item[1]))
    told = [[f"{node} at ", *_some([Quote(task, 24) for task in tasks], 4, ", ")] for node, tasks in most]
    return Section("frontier", line=_some(told, 8, "; "), data={"frontier": found}, name="tasks")


def best_at(state: State, run: Run) -> dict[str, list[str]]:
    """Empty where verdicts have fewer than two tasks: then who is best at one is the best."""
    found = frontier_of(state, run).best_at
    return found if len({task for tasks in found.values() for task in tasks}) > 1 else {}


def _some(items: Sequence[Words], most: int, between: str) -> list[Part]:
    if len(items) <= most:
        return join(items, between)
    return [*join(items[: most - 1], between), f"{between}and {len(items) - most + 1} more"]


def every_node(it: Material) -> Section:
    return Section("chart", "Every node", "", [series_of(it.state, it.metrics[0], it.run)])


def path(it: Material) -> Section:
    rows: list[list[Words]] = []
    for name in path_to(it.winner.id) if it.winner else ():
        node = it.state.nodes[name]
        scores = figures.headline(headline(it.state, node), it.metrics)
        rows.append([name, look_of(node).word, Quote(scores), Quote(node.operator), Quote(node.description)])
    table = Table(["node", "", "metrics", "operator", "description"], rows)
    return Section("path", "The way to the best", "", [table if rows else Prose("None yet.")])


def nodes(it: Material) -> Section:
    counts = Counter(look_of(node).word for node in it.counted.notable)
    for sort, count in it.counted.plain.items():
        counts[look_of(sort).word] += count
    found = [(look, counts[look.word]) for look in LOOKS if counts[look.word]]
    told: list[list[Part]] = [[look, f" {look.word} {count:,}"] for look, count in found]
    return Section("nodes", line=join(told, "   "), data={"nodes": {look.word: count for look, count in found}})


def endings(it: Material) -> Section:
    found = it.goodput.endings
    table = Table(["ending", "attempts"], [[ending, Figure(count, f"{count:,}")] for ending, count in found.items()])
    return Section("endings", "Endings", "", [table if found else Prose("No attempt has ended.")])


def pace(it: Material) -> Section:
    """Of all runs, as the clock is."""
    elapsed = it.state.campaign.elapsed_s
    over = sum(count for sort, count in it.every.plain.items() if _counts(sort))
    over += sum(_counts(node) for node in it.every.notable)
    rate = f", {over * 3600 / elapsed:,.0f} attempts an hour" if elapsed > 0 and over else ""
    runs = " of all runs" if len(it.state.runs) > 1 else ""
    line = f"{figures.plural(over, 'attempt')} ended in {figures.duration(elapsed)} of work{runs}{rate}"
    return Section("pace", line=line)


def _counts(node: AnyNode | Sort) -> bool:
    is_over = node.phase is Phase.ENDED and node.ending is not Ending.CANCELLED
    return is_over and is_attempt(node)


def goodput(it: Material) -> Section:
    counts, rates = it.goodput, it.goodput.rates
    spent = [
        ("dollars", counts.dollars, ".4f", rates.per_dollar),
        ("hours of work", counts.hours, ".3f", rates.per_hour),
        ("GPU-hours", counts.gpu_hours, ".3f", rates.per_gpu_hour),
        ("chamber-hours", counts.chamber_hours, ".3f", rates.per_chamber_hour),
    ]
    rows: list[list[Words]] = [
        [name, Figure(used, f"{used:{form}}"), Figure(rate, "" if rate is None else f"{rate:,.4g}")]
        for name, used, form, rate in spent
    ]
    ended = f"{figures.plural(counts.ended, 'attempt')} ended, {counts.kept} kept"
    charged = (figures.plural(counts.charged, "charged attempt"), figures.plural(counts.trials, "trial"))
    raw = f"{ended}; {', '.join(charged)}, {figures.plural(counts.scored, 'score')}"
    useful = figures.plural(counts.useful, "comparable useful result")
    line = f"{useful} (scored, valid, of the present cohort); raw: {raw}"
    table = Table(["spent", "", "useful results for one"], rows)
    return Section("goodput", "Goodput", line, [table], {"goodput": counts.record()})


def cohorts(it: Material) -> Section:
    scored = Counter(cohort for node in it.nodes for cohort in node.verdicts)
    rows: list[list[Words]] = [
        [cohort, Figure(count, f"{count:,}"), it.run.champions.get(cohort, ""), _present(cohort == it.run.cohort)]
        for cohort, count in scored.items()
    ]
    table = Table(["cohort", "nodes with a verdict", "best", ""], rows)
    return Section("cohorts", "Cohorts", "", [table if rows else Prose("No score yet.")])


def _present(so: bool) -> str:
    return "present" if so else ""


def stalls(it: Material) -> Section:
    stalled = [node for node in it.nodes if node.stalls or node.phase is Phase.QUARANTINED]
    refunds = sum(it.state.campaign.refunds.values())
    line = f"{figures.plural(refunds, 'free ending')} counted against lineages"
    rows: list[list[Words]] = [
        [node.id, look_of(node).word, Figure(node.stalls, str(node.stalls)), Quote(node.why)] for node in stalled
    ]
    table = Table(["node", "", "stalls", "why"], rows)
    return Section(
        "stalls", "Stalls and quarantine", line, [table if rows else Prose("No node stalled or is in quarantine.")]
    )


def recent(it: Material) -> Section:
    """The last that ended, and what is in quarantine."""
    over = it.counted.last_ended(_LAST)
    if over is None:
        ended = (node for node in it.lines if node.phase is Phase.ENDED)
        over = [node.id for node in sorted(ended, key=lambda node: node.ended_place)[-_LAST:]]
    waiting = [node.id for node in it.counted.notable if node.phase is Phase.QUARANTINED]
    last = [it.state.nodes[name] for name in (*over, *waiting)]
    body = [Lines([_ended(it, node) for node in last], cut=True)] if last else []
    return Section("recent", "The last", "", body, {"recent": [node.id for node in last]}, open=True)


def _ended(it: Material, node: Node) -> list[Part]:
    look = look_of(node)
    at = f"{figures.clock(node.ended_at) if node.ended_at else '':>8} "
    row: list[Part] = [Own(at, _FAINT), look, f" {node.id} {look.word}"]
    if node.ending and node.ending.scoreable:
        row.append(f" {figures.headline(headline(it.state, node), it.metrics)}")
    return [*row, "  ", Quote(node.why, 80, _FAINT)] if node.why else row
