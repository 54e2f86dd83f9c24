"""Whether the scores of a run can be trusted: the held-out split, tests before a candidate is kept, the machine."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from orchestrator.domain import figures
from orchestrator.domain.drift import Asked, Drift
from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import LEGEND, headline
from orchestrator.domain.lines import AnyNode
from orchestrator.domain.records import Purpose, Trial
from orchestrator.domain.state import State
from orchestrator.domain.steadiness import machine_drift
from orchestrator.views.campaign.sections.material import Material, typed
from orchestrator.views.render.model import Block, Figure, Own, Part, Prose, Quote, Section, Table, Words

if TYPE_CHECKING:
    from orchestrator.domain.audit import AuditRecord

_NEVER_ASKED = "The task has no held-out split, or it was not asked yet."


def audited(it: Material) -> Section:
    """What became of adversaries before this judge, if somebody let them loose, and whether that was this very one."""
    found, title = it.audit, "Audit of the judge"
    if found is None:
        text = f"Nobody tried to cheat the judge: {typed(it.folder, 'audit')} does."
        return Section("audit", title, "", [Prose(text)], {"audit": None})
    others = other_judge(it, found)
    holes: list[list[Words]] = [
        [Quote(hole.way), Quote(hole.how), "accepted" if hole.accepted else "", Quote(hole.mend)]
        for hole in found.holes
    ]
    body: list[Block] = [Table(["way to cheat", "what it got", "", "what to change"], holes)] if holes else []
    data = {
        "good": found.good and not others,
        "held": found.held,
        "tried": found.tried,
        "untried": [one.adversary for one in found.untried],
        "holes": [hole.way for hole in found.holes],
        "part": found.asked.part,
        "changed_since": others,
        "ended_at": found.ended_at,
    }
    style = "" if found.good and not others and not found.asked.part else "yellow"
    return Section("audit", title, _audit_sentence(found, others, style), body, {"audit": data})


def _audit_sentence(found: "AuditRecord", others: list[str], style: str) -> list[Part]:
    when, told = f"on {figures.moment(found.ended_at)}", f"the judge {found.score}"
    if others:
        changed = f"{', '.join(others)} changed since"
        told = f"An audit {when} is of another version ({changed}); of that one it says: {told}"
    else:
        told = f"Audited {when}: {told}"
    words: list[Part] = [Own(told, style)]
    if part := found.asked.part:
        words += [", of a part: ", Quote(part)]
    return [*words, "."]


def other_judge(it: Material, found: "AuditRecord") -> list[str]:
    """What is not as it was audited, in words. A combination's task is made from the other, so it is not compared."""
    task = found.digests.get("task", "") if it.run.combine else it.run.task
    parts = found.other_parts({**it.run.digests, "task": task})
    ran = next((trial.fingerprint for trial in it.state.trials_of(it.run.root) if trial.fingerprint), None)
    return parts or (found.other_terms(ran) if ran and found.fingerprint else [])


def heldout(it: Material) -> Section:
    """How often it was asked, what the ladder said, and whether development runs away."""
    found, title = it.drift, "Held-out split"
    if found is None:
        return Section("heldout", title, "", [Prose(_NEVER_ASKED)], {"heldout": None}, "held-out")
    rows: list[list[Words]] = [
        [
            asked.node,
            "kept" if asked.kept else "",
            Figure(asked.development, figures.score(asked.development)),
            released(asked),
            growth(asked),
        ]
        for asked in (*((found.baseline,) if found.baseline else ()), *found.nodes)
    ]
    development: list[Part] = [Quote(it.metrics[0].name), " in development"]
    columns: list[Words] = ["node", "", development, "held-out", "gap against the baseline's"]
    body: list[Block] = [Table(columns, rows)] if found.nodes else []
    line = Own(heldout_sentence(found), "yellow" if found.worst else "")
    return Section("heldout", title, line, body, {"heldout": found.record()}, "held-out")


def heldout_sentence(found: Drift) -> str:
    """The count, then the drift."""
    told = f"Asked {found.asked} of {figures.plural(found.askable, 'time')}"
    if found.asked >= found.askable:
        told += ", all that heldout.queries allows: nothing more is promoted past a gate"
    if not found.nodes:
        return f"{told}; no candidate yet."
    better = len(found.nodes) - found.refused
    candidates = figures.plural(len(found.nodes), "candidate")
    return f"{told}; of {candidates} that development would keep, {better} were better there. {_drift(found)}"


def _drift(found: Drift) -> str:
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


def certified(it: Material) -> Section:
    """How many candidates were better at first, and how many of them were kept."""
    tested = [node for node in it.counted.notable if node.certification or replays_of(it.state, node)]
    kept = sum(node.kept for node in tested)
    line = f"{figures.plural(len(tested), 'candidate')} put to the test, {kept} kept" if tested else ""
    return Section("certified", line=line, data={"certified": {"tested": len(tested), "kept": kept}}, name="tested")


def replays_of(state: State, node: AnyNode) -> list[Trial]:
    if node.trials <= 1:
        return []  # a replay comes after a first run
    return [trial for trial in state.trials_of(node.id) if trial.purpose is Purpose.REPLAY]


def machine(it: Material) -> Section:
    found = machine_drift(it.state, it.run, it.ranking)
    return Section("machine", line=found.words if found else "", data={"machine": asdict(found) if found else None})


def too_short(it: Material) -> Section:
    told = ((node.id, headline(it.state, node)) for node in it.nodes if node.ending is Ending.SCORED)
    names = [name for name, found in told if found and found.at_most]
    short = f"calls were too short for the channel, so they may be faster than is said: {figures.few(names)}"
    return Section("too_short", line=short if names else "", name="too short")


def screened(it: Material) -> Section:
    return Section("screened", line=LEGEND if it.run.noisy else "", data={})
