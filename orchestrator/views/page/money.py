"""What the money and the time of a campaign went to, as far as its ledger tells.

Of each node and trial a few fields are read, one after the other: a campaign may be longer than memory.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import field

from orchestrator.domain import events as e
from orchestrator.domain.lines import Line, SpentLine
from orchestrator.domain.node import run_of
from orchestrator.domain.records import Phase, Run
from orchestrator.domain.state import State
from orchestrator.ledger import Ledger
from orchestrator.text import short
from orchestrator.views.page.followed import Followed

# In the order of an attempt's life. What a ledger does not tell apart stays together.
PARTS = ("queue", "models", "provision", "run", "judge")
_ANSWERED = e.ModelCallEnded.model_fields["kind"].default
_LONGEST = 120

# Seconds in which models answered, by node: when each answer was whole, and how long it took.
Answers = Mapping[str, list[tuple[float, float]]]


class _Paid(Line, frozen=True):
    """Fields as a Node has them."""

    id: str
    phase: Phase = Phase.OPEN
    spent: SpentLine = SpentLine()
    paid: dict[str, int] = field(default_factory=dict)
    opened_at: str = ""
    ended_at: str = ""


class _Tried(Line, frozen=True):
    """Fields as a Trial has them."""

    node: str
    started_at: str = ""
    judging_since: str = ""
    spent: SpentLine = SpentLine()


def money_and_time(it: Followed, run: Run) -> dict[str, Any]:
    """Dollars of the whole campaign, since its caps are; time of one run."""
    state = it.reading.state
    answers = _answers(it.reading.ledger) if state.campaign.calls else {}
    chambers: Counter[int] = Counter()
    time = dict.fromkeys(PARTS, 0.0)
    trials: dict[str, list[_Tried]] = {}
    for trial in it.lines("trial", _Tried):
        if run_of(trial.node) == run.number:
            trials.setdefault(trial.node, []).append(trial)
    for node in it.lines("node", _Paid):
        chambers[run_of(node.id)] += node.spent.microdollars - sum(node.paid.values())
        for part, seconds in _life(node, trials.get(node.id, ()), answers):
            time[part] += seconds
    return {
        "models": _models(state),
        "providers": _providers(state, chambers),
        "time": {part: round(seconds, 3) for part, seconds in time.items()},
    }


def _models(state: State) -> list[dict[str, Any]]:
    found = []
    for key, asked in state.campaign.asked_models.items():
        role, _, model = key.partition(" ")
        spent = {"calls": asked.calls, "microdollars": asked.spent.microdollars, "tokens": asked.tokens.total}
        found.append({"role": role, "model": short(model, _LONGEST), **spent})
    return found


def _providers(state: State, chambers: Mapping[int, int]) -> list[dict[str, Any]]:
    """Who was paid. A trial does not say at which of several sites its run had it; then all of them are named."""
    found: Counter[str] = Counter()
    for run in state.runs.values():
        names = dict.fromkeys(site.backend for site in run.sites)
        found[" or ".join(names) or "chambers"] += chambers.get(run.number, 0)
    found["kept ready"] += state.campaign.standing.microdollars
    found["models"] += sum(asked.spent.microdollars for asked in state.campaign.asked_models.values())
    return [{"provider": short(name, _LONGEST), "microdollars": paid} for name, paid in found.items() if paid]


def _life(node: _Paid, tried: Sequence[_Tried], answers: Answers) -> Iterator[tuple[str, float]]:
    """The parts of an attempt that ended, which add up to its whole time. `queue` is all until its first trial in which
    no model answered, `provision` what a trial took beyond the time that its chamber was held for it, `judge` what came
    after a trial: judging, guards, and what lies between two trials.
    """
    if node.phase is not Phase.ENDED or not tried:
        return
    opened, ended = _seconds(node.opened_at), _seconds(node.ended_at)
    trials = [(_seconds(it.started_at), it) for it in tried]
    trials = sorted((it for it in trials if it[0] <= ended), key=lambda it: it[0])
    if not trials:  # all of them were later, for another's sake
        return
    first = trials[0][0]
    before = max(0.0, first - opened)
    answered = min(before, sum(took for at, took in answers.get(node.id, ()) if at <= first))
    yield "models", answered
    yield "queue", before - answered
    nexts = [*(at for at, _ in trials[1:]), ended]
    for (began, trial), after in zip(trials, nexts, strict=True):
        over = min(after, _seconds(trial.judging_since)) if trial.judging_since else after
        whole = max(0.0, over - began)
        held = min(whole, trial.spent.milliseconds / 1000)
        yield "run", held
        yield "provision", whole - held
        yield "judge", max(0.0, after - max(over, began))


def _answers(ledger: Ledger) -> Answers:
    found: dict[str, list[tuple[float, float]]] = {}
    for record in ledger.read(kinds=[_ANSWERED]):
        event = e.read_event(record.body)
        if isinstance(event, e.ModelCallEnded) and event.node:
            found.setdefault(event.node, []).append((_seconds(record.at), max(0.0, event.seconds)))
    return found


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
