"""One candidate run and judged without a campaign: for a replay, and whoever only wants to know."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.change import Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.fingerprint import Fingerprint
from orchestrator.domain.records import Spent
from orchestrator.domain.verdict import Mode, Tier, Verdict
from orchestrator.judge.data import Judgement, read_result
from orchestrator.loop.judging import verdict_of
from orchestrator.loop.trial import ENDINGS, for_judge, job_of
from orchestrator.loop.workbench import Parts


@dataclass(frozen=True)
class Measured:
    """`ending` is SCORED where there is a verdict that counts; `log` is the trial's, `judge_log` the judge's."""

    ending: Ending
    reason: str
    spent: Spent
    fingerprint: Fingerprint = field(default_factory=dict)
    verdict: Verdict | None = None
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    log: bytes = b""
    judge_log: bytes = b""


async def measure(parts: Parts, tree: Tree, node: str, mode: Mode = Mode.SUBMIT) -> Measured:
    """Raises NotStarted, BrokeOff and TooLarge: there is nobody here to charge."""
    job, bundle = job_of(parts, node, mode, tree)
    ran = await parts.door.run(job, bundle)
    outcome = ran.outcome
    fingerprint = parts.jobs.fingerprint(outcome.facts, mode)
    outputs = for_judge(parts, outcome.outputs)
    ending = ENDINGS[outcome.ending]
    if ending is None and not outputs:
        ending = Ending.INVALID
    if ending is not None:
        reason = outcome.reason or "it left no output"
        return Measured(ending, reason, ran.spent, fingerprint, log=outcome.log_tail)
    judgement = await _judged(parts, outputs, mode, node)
    verdict = verdict_of(parts, judgement.result, fingerprint, mode) if judgement.result else None
    good = verdict is not None and verdict.valid and not parts.ranking.missing(verdict.metrics)
    return Measured(
        ending=Ending.SCORED if good else Ending.INVALID,
        reason=judgement.fault or ("" if good else "the judge says that it is no solution"),
        spent=ran.spent + judgement.spent,
        fingerprint=fingerprint,
        verdict=verdict,
        outputs=outputs,
        log=outcome.log_tail,
        judge_log=judgement.log,
    )


async def _judged(parts: Parts, outputs: Mapping[str, bytes], mode: Mode, node: str) -> Judgement:
    if parts.tier is Tier.SHARED:
        return read_result(outputs, Spent())
    return await parts.judge.judge(outputs, mode, node)
