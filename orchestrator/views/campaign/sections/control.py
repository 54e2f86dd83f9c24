"""Whether the proposer beat its control, in one sentence: by how much, and with what confidence."""

from collections.abc import Sequence
from typing import Any

from orchestrator.domain import figures
from orchestrator.domain.chance import LEAST_ATTEMPTS, Lead
from orchestrator.domain.control import ERROR_RATE, Ahead, Best, Comparison
from orchestrator.domain.headline import MARK
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Run
from orchestrator.text import printable
from orchestrator.views.campaign.sections.material import Material
from orchestrator.views.render.model import Part, Prose, Quote, Section

_NONE = "No control ran beside the proposer, so nothing says whether it beats chance."


def control(it: Material) -> Section:
    told = control_sentence(it.comparison, it.run, it.metrics) if it.run.control else ()
    body = [] if told else [Prose(_NONE)]
    return Section("control", "Against the control", told, body, {"control": control_record(it.comparison)})


def control_sentence(found: Comparison, run: Run, metrics: Sequence[Metric]) -> list[Part]:
    """First runs are compared, since a control has no other."""
    told = _told(found, run, metrics)
    if found.better is None:
        return told
    node = found.better.node
    better = f"The control's {node} is better than the best that was kept, but was run only once"
    how = f"blastdoor replay {node} runs it again, blastdoor apply {node} takes it over"
    return [*told, f" {better}: {how}."]


def _told(found: Comparison, run: Run, metrics: Sequence[Metric]) -> list[Part]:
    if found.ahead is None or not found.attempts:
        return ["Nothing to compare with the control yet: one of the two has no ended attempt."]
    mine, theirs = Quote(run.proposer), Quote(run.control or "")
    mark = MARK if run.noisy else ""
    scores = f"best {_scores(found, metrics, mark)} after {figures.plural(found.attempts, 'attempt')} of each"
    if found.ahead is Ahead.NEITHER:
        return ["Neither ", mine, " nor the ", theirs, f" control is ahead: {scores}", *_own(found.lead, mine), "."]
    if found.ahead is Ahead.CONTROL:
        ahead = f" control, which is ahead: {scores}"
        return [mine, " did not beat the ", theirs, ahead, *_own(found.lead, mine), "."]
    if found.lead is None:
        return [mine, " is ahead of the ", theirs, f" control: {scores}; {_why_no_lead(found)}."]
    of_best = f"of the best {found.lead.looked_at} results {found.lead.own} are its own"
    if found.beaten:
        chance = f"which chance alone gives with p {_p(found.lead.p)}{_one_lucky_find(found.lead)}"
        return [mine, " beat the ", theirs, f" control: {scores}; {of_best}, {chance}."]
    luck = f"but chance alone gives as much with p {_p(found.lead.p)}: not beaten yet"
    return [mine, " is ahead of the ", theirs, f" control: {scores}; {of_best}, {luck}."]


def control_record(found: Comparison) -> dict[str, Any]:
    """The same for a program; `p` is None where none can be told."""
    return {
        "attempts": found.attempts,
        "ahead": found.ahead,
        "beaten": found.beaten,
        "proposer": found.proposer.node if found.proposer else None,
        "control": found.control.node if found.control else None,
        "better_than_kept": found.better.node if found.better else None,
        "best_looked_at": found.lead.looked_at if found.lead else None,
        "best_own": found.lead.own if found.lead else None,
        "p": found.lead.p if found.lead else None,
        "reach": found.lead.reach if found.lead else None,
    }


def _scores(found: Comparison, metrics: Sequence[Metric], mark: str) -> str:
    """`2.633 against 2.621 (+0.012)`; with names where there are several metrics."""
    mine, theirs = (_score(best, metrics, mark) for best in (found.proposer, found.control))
    gain = ""
    if found.proposer and found.control:
        ours, others = found.proposer.verdict.metrics, found.control.verdict.metrics
        names = [f"{printable(it.name)} " if len(metrics) > 1 else "" for it in metrics]
        gains = [figures.signed(ours[it.name] - others[it.name]) for it in metrics]
        gain = f" ({', '.join(name + it for name, it in zip(names, gains, strict=True))})"
    return f"{mine} against {theirs}{gain}"


def _score(best: Best | None, metrics: Sequence[Metric], mark: str) -> str:
    if best is None:
        return "no score"
    if len(metrics) == 1:
        return f"{mark}{figures.score(best.verdict.metrics[metrics[0].name])}"
    return figures.metrics({it.name: best.verdict.metrics[it.name] for it in metrics}, metrics, mark)


def _own(lead: Lead | None, mine: Quote) -> list[Part]:
    return [f"; of the best {lead.looked_at} results {lead.own} are ", mine, "'s"] if lead else []


def _one_lucky_find(lead: Lead) -> str:
    """Said where many good results may all come from one that was found by chance."""
    if lead.reach is None or lead.reach < ERROR_RATE:
        return ""
    return f"; the best itself may still be one lucky find, for blind draws get as far with p {_p(lead.reach)}"


def _why_no_lead(found: Comparison) -> str:
    if found.attempts < LEAST_ATTEMPTS:
        return f"too few to tell it from luck, which takes {LEAST_ATTEMPTS} of each"
    return "only a random control can tell it from luck"


def _p(value: float) -> str:
    """Never a zero: chance can do anything."""
    return f"= {value:.2g}" if value >= 0.0001 else "< 0.0001"
