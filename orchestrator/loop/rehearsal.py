"""A candidate run and judged for somebody who looks on: every figure and every log, and nothing is recorded."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from orchestrator.change import Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import Fingerprint
from orchestrator.domain.records import Calibration, Spent
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.door import BrokeOff, NotStarted, TooLarge
from orchestrator.judge.data import Judgement
from orchestrator.judge.relay import Met
from orchestrator.judge.tape import Tape
from orchestrator.loop.endings import ENDINGS
from orchestrator.loop.judging import verdict_of
from orchestrator.loop.relaying import StandIn, ended_by, freed_by, relayed, scored
from orchestrator.loop.workbench import Parts
from sandbox import Refused, Unavailable, Usage

# A node that no campaign has: the judge is told one in any case.
NODE = "0"
NO_OUTPUT = "it left no output"
BROKE_OFF = "judge broke off"


@dataclass(frozen=True)
class Rehearsal:
    """`ending` says why the judge was not asked; None where it was. `clock_s` includes the start of both chambers."""

    ending: Ending | None
    reason: str
    usage: Usage
    log: bytes
    clock_s: float
    spent: Spent
    fingerprint: Fingerprint = field(default_factory=dict)
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    judgement: Judgement | None = None
    verdict: Verdict | None = None
    missing: tuple[str, ...] = ()
    calibration: Calibration | None = None
    functions: tuple[str, ...] = ()
    tape: Tape | None = None

    @property
    def scored(self) -> bool:
        """Whether there is a verdict that can be ranked."""
        return self.verdict is not None and self.verdict.valid and not self.missing

    @property
    def judge_s(self) -> float:
        return self.judgement.spent.milliseconds / 1000 if self.judgement else 0.0

    @property
    def total(self) -> Spent:
        return self.spent + self.judgement.spent if self.judgement else self.spent


async def rehearse(parts: Parts, mode: Mode = Mode.SUBMIT, *, tree: Tree | None = None, node: str = NODE) -> Rehearsal:
    """Once: the tree that is given, or the workspace as it stands. Raises Unavailable when the engine fails."""
    return await parts.judge_mode.rehearse(parts, mode, parts.jobs.snapshot.tree if tree is None else tree, node)


async def rehearse_outputs(parts: Parts, mode: Mode, tree: Tree, node: str) -> Rehearsal:
    """Where the judge is given what the candidate left."""
    started = time.monotonic()
    job, bundle = parts.judge_mode.job_of(parts, node, mode, tree)
    try:
        with engine_trouble_is_no_finding():
            ran = await parts.door.run(job, bundle)
    except (TooLarge, Refused) as error:
        return Rehearsal(Ending.INVALID, str(error), Usage(), b"", time.monotonic() - started, Spent())
    outcome = ran.outcome
    outputs = parts.judge_mode.for_judge(parts.task, outcome.outputs)
    ending = ENDINGS[outcome.ending]
    if ending is None and not outputs:
        ending = Ending.INVALID
    if ending is not None:
        reason = outcome.reason or (NO_OUTPUT if ending is Ending.INVALID else f"exit code {outcome.exit_code}")
        clock = time.monotonic() - started
        return Rehearsal(ending, reason, outcome.usage, outcome.log_tail, clock, ran.spent, outputs=outcome.outputs)
    judgement = await judged(parts, outputs, mode, node)
    fingerprint = parts.jobs.fingerprint(outcome.facts, mode)
    verdict = verdict_of(parts, judgement.result, fingerprint, mode) if judgement.result else None
    return Rehearsal(
        ending=None,
        reason="",
        usage=outcome.usage,
        log=outcome.log_tail,
        clock_s=time.monotonic() - started,
        spent=ran.spent,
        fingerprint=fingerprint,
        outputs=outputs,
        judgement=judgement,
        verdict=verdict,
        missing=tuple(parts.ranking.missing(verdict.metrics)) if verdict else (),
    )


async def rehearse_calls(parts: Parts, mode: Mode, tree: Tree, node: str, stand_in: StandIn | None = None) -> Rehearsal:
    """Where the judge calls the candidate, or what stands in for it."""
    started = time.monotonic()
    try:
        met = await relayed(parts, node, mode, tree, stand_in=stand_in, tape=Tape())
    except Refused as error:
        return Rehearsal(Ending.INVALID, str(error), Usage(), b"", time.monotonic() - started, Spent())
    if free := freed_by(met):
        raise Unavailable(str(free))
    outcome = met.candidate.outcome
    seen = Rehearsal(
        ending=None,
        reason="",
        usage=replace(outcome.usage, run_s=met.candidate.busy_s) if outcome else Usage(),
        log=outcome.log_tail if outcome else b"",
        clock_s=time.monotonic() - started,
        spent=met.candidate.spent,
        fingerprint=parts.jobs.fingerprint(outcome.facts, mode) if outcome else {},
        calibration=met.calibration,
        functions=met.functions,
        tape=met.tape,
    )
    if ended := ended_by(met, parts.task.target(mode).limits.wall):
        return replace(seen, ending=ended.ending, reason=ended.reason)
    return _judged_calls(parts, met, seen, mode)


def _judged_calls(parts: Parts, met: Met, seen: Rehearsal, mode: Mode) -> Rehearsal:
    found = scored(parts, met, seen.fingerprint, mode)
    if found.fault == BROKE_OFF:
        raise Unavailable(found.judgement.detail)
    judgement = found.judgement
    if found.fault and judgement.result is not None:
        judgement = replace(judgement, result=None, fault=found.fault)
    return replace(seen, judgement=judgement, verdict=found.verdict)


async def judged(parts: Parts, outputs: Mapping[str, bytes], mode: Mode = Mode.SUBMIT, node: str = NODE) -> Judgement:
    """What the judge makes of some outputs. Raises Unavailable when the engine fails."""
    with engine_trouble_is_no_finding():
        judgement = await parts.judge_mode.judge(parts, outputs, mode, node)
    if judgement.fault == BROKE_OFF:
        raise Unavailable(judgement.detail)
    return judgement


@contextmanager
def engine_trouble_is_no_finding() -> Iterator[None]:
    """A provider's failure says nothing about the task, so it must not become a row."""
    try:
        yield
    except (NotStarted, BrokeOff) as error:
        raise Unavailable(str(error)) from error
