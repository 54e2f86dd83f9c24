"""The held-out split in words: how often it was asked, what the ladder said, and whether development runs away."""

from orchestrator.domain.drift import Asked, Drift
from orchestrator.domain.metric import Metric
from orchestrator.views.campaign import figures
from orchestrator.views.campaign.markdown import code, table


def heldout_section(found: Drift | None, metric: Metric) -> list[str]:
    """For the report."""
    if found is None:
        return ["The task has no held-out split, or it was not asked yet."]
    lines = [heldout_sentence(found)]
    if found.nodes:
        rows = [
            [it.node, "kept" if it.kept else "", figures.score(it.development), released(it), growth(it)]
            for it in (*((found.baseline,) if found.baseline else ()), *found.nodes)
        ]
        columns = ["node", "", f"{code(metric.name)} in development", "held-out", "gap against the baseline's"]
        lines += ["", *table(columns, rows)]
    return lines


def heldout_sentence(found: Drift) -> str:
    """One line: the count, then the drift."""
    told = f"Asked {found.asked} of {figures.plural(found.askable, 'time')}"
    if found.asked >= found.askable:
        told += ", all that heldout.queries allows: nothing more is promoted past a gate"
    if not found.nodes:
        return f"{told}; no candidate yet."
    better = len(found.nodes) - found.refused
    told += (
        f"; of {figures.plural(len(found.nodes), 'candidate')} that development would keep, {better} were better there."
    )
    return f"{told} {drift_sentence(found)}"


def drift_sentence(found: Drift) -> str:
    if worst := found.worst:
        least = "" if worst.better else "at least "
        grown = figures.score(worst.growth)
        return (
            f"At {worst.node} development runs {least}{grown} further ahead of the held-out split than at the "
            f"baseline, more than a step ({figures.score(worst.step)}): that gain is overfitting."
        )
    return "Development and held-out split have not drifted apart by more than a step."


def released(asked: Asked) -> str:
    if asked.released is None:
        return "not comparable"
    value = figures.score(asked.released)
    return value if asked.better or asked.growth is None else f"not better than {value}"


def growth(asked: Asked) -> str:
    if asked.growth is None:
        return ""
    if asked.better:
        return figures.signed(asked.growth) + (", overfitting" if asked.overfits else "")
    return f"at least {figures.signed(asked.growth)}, overfitting" if asked.overfits else "within a step"


def heldout_facts(asked: Asked | None) -> dict[str, str]:
    """For `show`."""
    if asked is None:
        return {}
    return {
        "query": str(asked.query),
        "answer": "better" if asked.better else "not better",
        "released": released(asked),
        "gap against the baseline's": growth(asked),
    }
