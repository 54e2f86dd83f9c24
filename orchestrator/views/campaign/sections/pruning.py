"""What pruning did, and whether it was right; what a trial reported, in one line."""

from orchestrator.domain import figures
from orchestrator.domain.records import Node, Trial
from orchestrator.domain.reports import Reports
from orchestrator.domain.savings import Savings
from orchestrator.domain.state import State
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.render.model import Prose, Section

_NONE = "No trial was watched by a pruning rule."


def pruning(it: Material) -> Section:
    found = it.savings
    body = [_basis(found), _evidence(found), _winner(found)] if found.watched else [_NONE]
    told = [Prose(" ".join(filter(None, body)))]
    return Section("pruning", "Pruning", _line(found), told, {"pruning": found.record()})


def _line(found: Savings) -> str:
    """Empty where no rule watched anything."""
    if not found.watched:
        return ""
    line = f"{found.pruned:,} of {figures.plural(found.watched, 'watched trial')} pruned"
    if found.pruned and found.seconds is not None:
        line += f", about {_saved(found)} saved"
    if found.misjudged:
        line += f"; it would have ended {', '.join(found.misjudged)}, kept only because spared or sooner done"
    return line


def _basis(found: Savings) -> str:
    if not found.pruned:
        return ""
    if found.seconds is None:
        return "What that saved is unknown: no watched trial ran to its end."
    median = f"the median length of the {figures.plural(found.basis, 'watched trial')} that ran to the end"
    return f"What that saved is estimated as what was left of {median}."


def _saved(found: Savings) -> str:
    money = f" and {figures.dollars(round(found.dollars * 1_000_000))}" if found.dollars else ""
    return f"{figures.duration(found.seconds or 0.0)} of chambers{money}"


def _evidence(found: Savings) -> str:
    """Only trials that were let go tell whether the rule is right: nobody knows how a pruned one would have ended."""
    if not found.spared and not found.late:
        return "No trial was spared, so nothing tells whether a good one was ended."
    told = f"Of {figures.plural(found.spared, 'spared trial')} it would have ended {found.let_go:,}"
    told += f", and {found.late:,} were done before the order came" if found.late else ""
    if found.misjudged:
        return f"{told}; kept in the end: {', '.join(found.misjudged)}. The rule is too strict here."
    return f"{told}; none of them was kept in the end." if found.let_go or found.late else f"{told}."


def _winner(found: Savings) -> str:
    if found.winner is None:
        return "There is no winner yet that it could have ended."
    if not found.winner_watched:
        return f"The best, {found.winner}, was not watched, so the rule could not have ended it."
    if found.winner_cut is None:
        return f"It would not have ended the winner {found.winner}: it watched it and let it live."
    why = "it was spared" if found.winner_spared else "it was done before the order came"
    return (
        f"It would have ended the winner {found.winner} at step {found.winner_cut}, which is there only because {why}."
    )


def reports_of(state: State, node: Node) -> dict[str, str]:
    """A line a trial that reported anything."""
    lines = {trial.id: _reported(trial) for trial in state.trials_of(node.id)}
    return {name: line for name, line in lines.items() if line}


def _reported(trial: Trial) -> str:
    parts = [_told(trial.reports)] if trial.reports else []
    look = trial.pruning
    if look and look.cut:
        what = "spared, though the rule said" if look.spared else "the rule said"
        parts.append(f"{what} stop at {look.why}")
    elif look and look.spared:
        parts.append("spared, and the rule had nothing against it")
    return "; ".join(parts)


def _told(reports: Reports) -> str:
    text = figures.plural(reports.count, "report")
    if reports.points:
        (first, start), (last, end) = reports.points[0], reports.points[-1]
        text += f", {figures.score(start)} at step {first} to {figures.score(end)} at step {last}"
    if reports.refused:
        bad = ", ".join(f"{count:,} {why}" for why, count in reports.bad.items())
        text += f"; {reports.refused:,} bad: {bad}"
    return text
