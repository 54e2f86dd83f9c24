"""What a combination stage stands on, and whether it was worth it."""

from orchestrator.domain import figures
from orchestrator.domain.headline import Headline, headline
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node, Run
from orchestrator.domain.state import State
from orchestrator.views.campaign.sections.material import Material, NodeMaterial
from orchestrator.views.render.model import Figure, Part, Quote, Section, Table, Words, facts


def combination(it: Material) -> Section:
    """The pool, and the best combination beside the best base; nothing for a run that is no such stage."""
    run = it.run
    if run.combine is None:
        return Section("combination", "Combination", data={})
    base = best_base(it.state, run, it.ranking)
    data = {
        "base_run": run.combine.base,
        "best_base": base.id if base else None,
        "beats_base": _beats(it, base),
        "members": [member.model_dump(mode="json") for member in run.pool],
        "member_runs": len(run.member_outputs),
    }
    if not run.pool:
        line: list[Part] = [f"the pool of run {run.combine.base} is not frozen yet"]
    else:
        line = [f"of {', '.join(member.node for member in run.pool)}{_runs(run)}", *_compared(it, base)]
    return Section("combination", "Combination", line, [_table(it)] if run.pool else [], {"combination": data})


def _runs(run: Run) -> str:
    """So that nobody looks for the nodes of these attempts."""
    if not (count := len(run.member_outputs)):
        return ""
    return f" ({count} {'run' if count == 1 else 'runs'} of members on other data took an attempt each)"


def best_base(state: State, run: Run, ranking: Ranking) -> Node | None:
    """What a combination has to beat: the champion of the base stage, or a member that is better. Such a one is of the
    control, which has no champions; a single run of a noisy task says too little.
    """
    if run.combine is None:
        return None
    best = state.champion(state.runs[str(run.combine.base)])
    found = headline(state, best, run.cohort) if best else None
    for node in (state.nodes[member.node] for member in run.pool):
        other = headline(state, node, run.cohort)
        if found and other and not other.screened and other.cohort == found.cohort:
            best, found = (node, other) if ranking.better(other.metrics, found.metrics) else (best, found)
    return best


def members(it: NodeMaterial) -> Section:
    """What a node of such a stage stands on."""
    run = it.run
    if not run.pool:
        return Section("members", "members", data={})
    base = best_base(it.state, run, it.ranking)
    found = headline(it.state, base, run.cohort) if base else None
    names = ", ".join(member.node for member in run.pool)
    rows: dict[str, Words] = {"pool": f"{names} of run {run.combine.base if run.combine else ''}"}
    if run.combine and run.combine.serve:
        rows["calls them"] = ["by ", Quote(" ".join(run.combine.serve), 400), ", each in a chamber of its own"]
    if base and found:
        rows["best base"] = [f"{base.id} ", Quote(figures.headline(found, it.metrics), 400)]
    listed = [member.model_dump(mode="json") for member in run.pool]
    return Section("members", "members", "", facts(rows), {"members": listed})


def _pair(it: Material, base: Node | None) -> tuple[Headline, Headline] | None:
    """The best combination and the best base, where they may be compared."""
    cohort, winner = it.run.cohort, it.winner
    mine = headline(it.state, winner, cohort) if winner else None
    other = headline(it.state, base, cohort) if base else None
    return (mine, other) if mine and other and mine.cohort == other.cohort else None


def _beats(it: Material, base: Node | None) -> bool | None:
    pair = _pair(it, base)
    return it.ranking.better(pair[0].metrics, pair[1].metrics) if pair else None


def _compared(it: Material, base: Node | None) -> list[Part]:
    if base is None or it.winner is None:
        return []
    pair = _pair(it, base)
    if pair is None:
        return [f"; not comparable with the best base {base.id}: they were measured in different cohorts"]
    verb = "beats" if _beats(it, base) else "does not beat"
    values = (Quote(figures.headline(found, it.metrics), 400) for found in pair)
    return [f"; {it.winner.id} with ", next(values), f" {verb} the best base, {base.id} with ", next(values)]


def _table(it: Material) -> Table:
    rows: list[list[Words]] = []
    for member in it.run.pool:
        found = headline(it.state, it.state.nodes[member.node], it.run.cohort)
        told: Words = Quote(figures.headline(found, it.metrics), 400) if found else ""
        apart = "" if member.distance is None else figures.score(member.distance)
        rows.append([member.node, told, Figure(member.distance, apart), member.commit[:12]])
    return Table(["member", "score", "distance", "commit"], rows)
