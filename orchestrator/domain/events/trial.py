"""What runs in chambers, what the judge makes of it, and what is kept of its outputs."""

from typing import Literal

from pydantic import Field

from orchestrator.domain import figures
from orchestrator.domain.ending import Ending
from orchestrator.domain.events.base import NAMED, Event, because, cost
from orchestrator.domain.records import Calibration, Purpose, Spent, Trial
from orchestrator.domain.reports import Look, Reports
from orchestrator.domain.state import State
from orchestrator.domain.verdict import Verdict
from orchestrator.units import format_size


class TrialIntended(Event):
    """`subject` is the node whose files run where that is not the node itself; `attempts` is how many the search had
    opened by then.
    """

    kind: Literal["trial intended"] = "trial intended"
    trial: str
    node: str
    purpose: Purpose
    draft: int
    subject: str = ""
    attempts: int = 0

    def apply(self, state: State, at: str, /) -> None:
        record = Trial(
            id=self.trial,
            node=self.node,
            purpose=self.purpose,
            draft=self.draft,
            subject=self.subject,
            attempts=self.attempts,
            started_at=at,
        )
        state.new("trial", self.trial, record)
        node = state.nodes[self.node]
        submitted = self.trial if self.purpose is Purpose.SUBMIT else node.submitted
        state.set_node(self.node, trials=node.trials + 1, submitted=submitted)

    @property
    def said(self) -> str:
        return f"trial {self.trial} starts ({self.purpose}, draft {self.draft})"


class TrialEnded(Event):
    """`ending` is None for a trial whose outputs go to the judge. `pruning` is None for one that no rule watched."""

    kind: Literal["trial ended"] = "trial ended"
    trial: str
    ending: Ending | None
    reason: str = ""
    exit_code: int | None = None
    outputs: str | None = None
    outputs_bytes: int = 0
    log: str | None = None
    fingerprint: dict[str, str] = Field(default_factory=dict)
    spent: Spent = Spent()
    reports: Reports | None = None
    pruning: Look | None = None

    def apply(self, state: State, at: str, /) -> None:
        state.set_trial(
            self.trial,
            ended=True,
            ending=self.ending,
            reason=self.reason,
            exit_code=self.exit_code,
            outputs=self.outputs,
            outputs_bytes=self.outputs_bytes,
            log=self.log,
            fingerprint=self.fingerprint,
            spent=self.spent.plain,
            reports=self.reports,
            pruning=self.pruning,
        )
        state.spend(state.trials[self.trial].node, self.spent, at, trial=self.trial)

    @property
    def said(self) -> str:
        well = "its outputs go to the judge" if self.outputs else "the judge has called it"
        ending = f"{self.ending}{because(self.reason)}" if self.ending else well
        return f"trial {self.trial} ended{cost(self.spent)}: {ending}"


class JudgingIntended(Event):
    kind: Literal["judging intended"] = "judging intended"
    trial: str
    judging: str
    on_baseline: bool = False

    def apply(self, state: State, at: str, /) -> None:
        state.set_trial(self.trial, judging=self.judging, judging_since=at)

    @property
    def said(self) -> str:
        return f"judge looks at {'the baseline for ' * self.on_baseline}{self.trial}"


class JudgingEnded(Event):
    """A verdict, or the fixed code of what was wrong; the judge's own text is never recorded with a fault.

    `interrupted`: nothing was learnt, only spent.
    """

    kind: Literal["judging ended"] = "judging ended"
    trial: str
    judging: str
    on_baseline: bool = False
    verdict: Verdict | None = None
    fault: str | None = None
    traces: str | None = None
    traces_bytes: int = 0
    spent: Spent = Spent()
    interrupted: bool = False
    calibration: Calibration | None = None

    def apply(self, state: State, at: str, /) -> None:
        trial = state.trials[self.trial]
        state.spend(trial.node, self.spent, at)
        if self.on_baseline or self.interrupted:
            state.set_trial(self.trial, judging=None)
            return
        state.set_trial(
            self.trial,
            judging=None,
            judged=True,
            verdict=self.verdict,
            fault=self.fault,
            traces=self.traces,
            traces_bytes=self.traces_bytes,
            calibration=self.calibration,
        )
        if self.verdict:
            _take_verdict(state, trial, self.verdict)

    @property
    def said(self) -> str:
        where = " (asked about the baseline)" if self.on_baseline else ""
        told = f"fault: {self.fault}" if self.fault else _told(self.verdict)
        return f"judge on {self.trial}{where}: {'well' if self.on_baseline and not self.fault else told}"


def _take_verdict(state: State, trial: Trial, verdict: Verdict) -> None:
    node, draft = state.nodes[trial.node], f"{trial.node}#{trial.draft}"
    if trial.purpose is Purpose.TUNE:
        state.set_draft(draft, verdict=verdict)
    elif trial.purpose is Purpose.MINIMISE:
        found = state.draft(draft)
        if found and found.verdict is None:  # of several runs of what is noisy, the first
            state.set_draft(draft, verdict=verdict)
    elif trial.purpose is Purpose.REFERENCE:
        subject = state.nodes[trial.subject]
        state.set_node(subject.id, measured=(*subject.measured, trial.id))
    else:
        first = verdict if trial.purpose is Purpose.SUBMIT else node.verdict
        # The first one of a cohort stands: a re-run that lands there again must not move the bar.
        of_cohort = {verdict.cohort: verdict} if verdict.valid else {}
        state.set_node(node.id, verdicts={**of_cohort, **node.verdicts}, verdict=first)


def _told(verdict: Verdict | None) -> str:
    if verdict is None:
        return "no verdict"
    doubts = "" if verdict.valid else ", not a solution"
    doubts += f", not believed: {', '.join(verdict.suspect)} beyond the ceiling" if verdict.suspect else ""
    return f"{figures.metrics(verdict.metrics)}{doubts} ({verdict.tier}, {verdict.mode})"


class OutputsLetGo(Event):
    """What these trials left is removed from now on, to keep within the budget; `bytes` is what that frees at most."""

    kind: Literal["outputs let go"] = "outputs let go"
    trials: tuple[str, ...]
    bytes: int

    def apply(self, state: State, _: str, /) -> None:
        for name in self.trials:
            state.set_trial(name, let_go=True)
        now = state.campaign
        state.set_campaign(let_go=now.let_go + len(self.trials), let_go_bytes=now.let_go_bytes + self.bytes)

    @property
    def said(self) -> str:
        names = f"{', '.join(self.trials[:NAMED])}{', …' * (len(self.trials) > NAMED)}"
        discarded = figures.plural(len(self.trials), "discarded trial")
        return f"outputs of {discarded} are let go, {format_size(self.bytes)}: {names}"


class ArtifactsOverBudget(Event):
    """More is kept than the budget allows, and nothing of it may be let go. Said once a session."""

    kind: Literal["artifacts over budget"] = "artifacts over budget"
    kept: int
    cap: int

    def apply(self, state: State, _: str, /) -> None:
        state.set_campaign(over_budget=self.kept)

    @property
    def said(self) -> str:
        return (
            f"{format_size(self.kept)} of outputs are kept where --artifacts allows {format_size(self.cap)}, and all "
            "of them are needed; those of discarded attempts are let go as they end"
        )
