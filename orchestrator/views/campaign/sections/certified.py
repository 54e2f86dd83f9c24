"""What a candidate had to show before it was kept, in words and numbers."""

from collections.abc import Sequence

from orchestrator.domain import figures
from orchestrator.domain.certify import Certify, median
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict
from orchestrator.loop.certifying import evidence, samples, sides
from orchestrator.views.campaign.sections.evidence import replays_of


def facts_of(state: State, node: Node, ranking: Ranking, certify: Certify) -> dict[str, str]:
    """Name → value, for `show`; what does not apply is left out."""
    rows: dict[str, str] = {}
    if node.size is not None and node.parent:
        size = "" if node.size_bytes is None else f", {figures.plural(node.size_bytes, 'byte')}"
        rows["change"] = f"{figures.plural(node.size, 'line')}{size} against the root of its run"
    if replays := replays_of(state, node):
        told = [_score(trial.verdict, ranking.metrics[0]) for trial in replays]
        rows["replayed"] = ", ".join([*filter(None, told)] or ["without a score"])
    if node.certification:
        rows |= _test(state, node, ranking, certify)
    for cohort, number in node.references.items():
        count, asked = len(samples(state, node, cohort)), node.challenged.get(cohort, 0)
        measured = (
            f"; measured {figures.plural(count, 'time')}, {figures.plural(asked, 'test')} against it" if count else ""
        )
        rows["champion"] = f"number {number} of the campaign, in cohort {cohort}{measured}"
    return rows


def _test(state: State, node: Node, ranking: Ranking, certify: Certify) -> dict[str, str]:
    test = node.certification
    found = evidence(state, node, ranking)
    if test is None or found is None:
        return {}
    theirs, mine = sides(state, node)
    medians = {"its median": _median(mine, ranking), f"median of {test.champion}": _median(theirs, ranking)}
    when = ", in turn" if test.blocks else " beforehand"
    return {
        "test": f"{test.number} of the campaign, number {test.against} against {test.champion}",
        "level": f"{test.level:.3g} of the {certify.error:g} that the whole campaign has",
        "evidence": f"{found.words} ({found.stand})",
        "measured": f"{figures.plural(found.repeats, 'time')}; the champion {test.champion} {len(theirs)} times{when}",
        **medians,
    }


def _median(measured: Sequence[Verdict], ranking: Ranking) -> str:
    if not measured:
        return ""
    by_standing = {ranking.standing(verdict.metrics): verdict for verdict in measured}
    middle = median([ranking.standing(verdict.metrics) for verdict in measured])
    return figures.metrics(by_standing[middle].metrics, ranking.metrics)


def _score(verdict: Verdict | None, metric: Metric) -> str:
    return figures.score(verdict.metrics.get(metric.name)) if verdict else ""
