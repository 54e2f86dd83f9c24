"""Two runs of a baseline: whether the same program gets the same score."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from orchestrator.examine.checkup import named_failure, why_not
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.loop.workbench import Parts
from orchestrator.task import TaskError
from orchestrator.text import short
from sandbox import SandboxError


@dataclass(frozen=True)
class TwoRuns:
    """`scores` of the first metric, or `why` there are not two of them."""

    scores: tuple[float, ...] = ()
    why: str = ""

    @property
    def noisy(self) -> bool:
        return len(set(self.scores)) > 1


async def score_twice(open_parts: Callable[[], AbstractAsyncContextManager[Parts]]) -> TwoRuns:
    """Records nothing. Trouble of the engine is an answer, too."""
    scores: list[float] = []
    try:
        async with open_parts() as parts:
            name = parts.task.metrics[0].name
            for _ in range(2):
                run = await rehearse(parts)
                result = run.judgement.result if run.judgement else None
                if not run.scored or result is None:
                    return TwoRuns(why=f"the baseline got no score ({_why_not(run)})")
                if said := named_failure(parts, run):
                    return TwoRuns(why=f"the baseline gets the score of a failure: {said}")
                scores.append(result.metrics.get(name, result.score or 0.0))
    except (SandboxError, TaskError) as error:
        return TwoRuns(why=f"no chamber could be had ({error})")
    return TwoRuns(tuple(scores))


def _why_not(run: Rehearsal) -> str:
    """With the last line of a judge that broke: no log is shown beside this."""
    judged = run.judgement
    if run.ending is not None or judged is None or judged.result is not None:
        return why_not(run)
    last = next((short(it, 300) for it in reversed(judged.log.split(b"\n")) if it.strip()), "")
    return f"{judged.fault}: {last}" if last else why_not(run)
